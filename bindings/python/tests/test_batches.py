"""`select_batches`: layouts, types, streaming, errors, and equality with a naive implementation."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cupel
from batch_data import (
    ITEM_TYPES,
    RESULT,
    START,
    TIMESTAMP,
    Request,
    as_lists,
    as_rows,
    as_structs,
    newest,
    random_requests,
)
from command import ROOT, run


def select(data: Any, *args: Any, **options: Any) -> pa.Table:
    """Reads the whole result."""
    return pa.table(cupel.select_batches(data, *args, **options))


def expected(requests: list[Request]) -> pa.Table:
    """The rows of the naive implementation."""
    rows = [row for request in requests for row in newest(request)]
    return pa.Table.from_pylist(rows, schema=RESULT)


def rows_of(result: pa.Table, request: int) -> pa.Table:
    """Returns the rows of one request."""
    ids = result["request_id"].to_pylist()
    return result.filter(pa.array([number == request for number in ids], pa.bool_()))


def cut(table: pa.Table, at: list[int]) -> Iterator[pa.RecordBatch]:
    """Cuts a table into batches at these rows."""
    bounds = [0, *sorted(at), table.num_rows]
    for start, end in itertools.pairwise(bounds):
        yield from table.slice(start, end - start).combine_chunks().to_batches()


LAYOUTS: list[Callable[[list[Request]], pa.Table]] = [as_rows, as_lists, as_structs]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(20))
def test_decisions_equal_a_naive_implementation(
    layout: Callable[[list[Request]], pa.Table], seed: int
) -> None:
    requests = random_requests(seed, 50)
    result = select(layout(requests), policy="newest")
    assert result.schema == RESULT
    assert result.to_pylist() == expected(requests).to_pylist()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), data=st.data())
def test_batch_boundaries_do_not_change_the_result(seed: int, data: st.DataObject) -> None:
    requests = random_requests(seed, data.draw(st.integers(1, 12)))
    layout = data.draw(st.sampled_from(LAYOUTS))
    table = layout(requests)
    cuts = data.draw(st.lists(st.integers(0, table.num_rows), max_size=8))
    whole = select(table, policy="newest")
    parts = select(cut(table, cuts), policy="newest")
    assert parts.equals(whole)
    reader = pa.RecordBatchReader.from_batches(table.schema, cut(table, cuts))
    assert select(reader, policy="newest").equals(whole)
    assert whole.to_pylist() == expected(requests).to_pylist()


def test_the_number_of_threads_does_not_change_the_result() -> None:
    table = as_lists(random_requests(7, 3000))
    batches = [list(cupel.select_batches(table, policy="newest", threads=n)) for n in (1, 2, 3)]
    assert len(batches[0]) > 2, "several chunks"
    assert batches[0] == batches[1] == batches[2]


def test_one_request_may_span_many_batches() -> None:
    request = Request("long", random_requests(1, 1, most=12)[0].items * 40, 300)
    table = as_rows([request])
    result = select(cut(table, list(range(table.num_rows))), policy="newest")
    assert result.to_pylist() == expected([request]).to_pylist()


STRINGS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.uint32(), pa.large_string()),
]
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def recast(table: pa.Table, name: str, data_type: pa.DataType) -> pa.Table:
    """Changes the type of a column; dictionaries are encoded."""
    column = table[name].combine_chunks()
    if pa.types.is_dictionary(data_type):
        encoded = column.cast(data_type.value_type).dictionary_encode()
        column = encoded.cast(data_type)
    else:
        column = column.cast(data_type)
    return table.set_column(table.schema.get_field_index(name), name, column)


@pytest.mark.parametrize("text", STRINGS, ids=str)
def test_strings_of_any_encoding(text: pa.DataType) -> None:
    requests = random_requests(3, 30)
    table = recast(as_rows(requests), "content", text)
    assert select(table, policy="newest").to_pylist() == expected(requests).to_pylist()


@pytest.mark.parametrize("number", [*INTEGERS, pa.float64(), pa.float32()], ids=str)
def test_integers_of_any_width(number: pa.DataType) -> None:
    requests = random_requests(3, 30)
    table = recast(as_rows(requests), "tokens", number)
    assert select(table, policy="newest").to_pylist() == expected(requests).to_pylist()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_timestamps_of_any_unit_and_zone(unit: str, zone: str) -> None:
    requests = random_requests(3, 30)
    table = recast(as_rows(requests), "timestamp", pa.timestamp(unit, zone))
    assert select(table, policy="newest").to_pylist() == expected(requests).to_pylist()


def large(column: pa.ChunkedArray) -> pa.Array:
    lists = column.combine_chunks()
    return lists.cast(pa.large_list(lists.type.value_type))


def view(column: pa.ChunkedArray) -> pa.Array:
    lists = column.combine_chunks()
    # In reverse: the lists of a view need not be in order.
    offsets = lists.offsets.to_pylist()
    reverse = [offsets[row] for row in reversed(range(len(lists)))]
    sizes = [offsets[row + 1] - offsets[row] for row in reversed(range(len(lists)))]
    views = pa.ListViewArray.from_arrays(
        pa.array(reverse, pa.int32()), pa.array(sizes, pa.int32()), lists.values
    )
    return views.take(pa.array(list(reversed(range(len(lists))))))


@pytest.mark.parametrize("convert", [large, view])
def test_lists_of_any_encoding(convert: Callable[[pa.ChunkedArray], pa.Array]) -> None:
    requests = random_requests(5, 40)
    table = as_lists(requests)
    for name in ITEM_TYPES:
        table = table.set_column(table.schema.get_field_index(name), name, convert(table[name]))
    assert select(table, policy="newest").to_pylist() == expected(requests).to_pylist()


def test_lists_of_fixed_size() -> None:
    requests = [Request(r.id, (r.items * 3)[:3], r.budget) for r in random_requests(5, 40, most=3)]
    requests = [Request(r.id, [{**i, "pinned": False} for i in r.items], 50) for r in requests]
    table = as_lists(requests)
    for name, data_type in ITEM_TYPES.items():
        fixed = table[name].combine_chunks().cast(pa.list_(data_type, 3))
        table = table.set_column(table.schema.get_field_index(name), name, fixed)
    assert select(table, policy="newest").to_pylist() == expected(requests).to_pylist()


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([7, 7, 9], pa.int64()),
        pa.array([7, 7, 9], pa.uint16()),
        pa.array(["a", "a", "ü"], pa.large_string()),
        pa.array(["a", "a", "b"], pa.string_view()),
        pa.array(["a", "a", "b"]).dictionary_encode(),
        pa.array([b"a", b"a", b"b"], pa.binary()),
        pa.array([START, START, datetime.now(UTC)], TIMESTAMP),
    ],
    ids=lambda ids: str(ids.type),
)
def test_the_request_id_keeps_its_name_and_type(ids: pa.Array) -> None:
    table = pa.table({"id": ids, "content": ["a", "b", "c"], "tokens": [1, 2, 3]})
    result = select(table, 100, request_id="id")
    assert result.schema.names[0] == "id"
    assert result["id"].type == ids.type
    assert result["id"].to_pylist() == ids.to_pylist()
    assert result["index"].to_pylist() == [0, 1, 0]


def test_missing_tokens_are_counted() -> None:
    table = pa.table(
        {
            "request_id": [1, 1],
            "content": ["The quick brown fox jumps over the lazy dog.", "x"],
            "tokens": pa.array([None, 7], pa.int32()),
        }
    )
    # o200k_base by the tokenizer of its publisher: 10 tokens.
    assert select(table, 100)["tokens"].to_pylist() == [10, 7]
    assert select(table.drop(["tokens"]), 100)["tokens"].to_pylist() == [10, 1]


def test_a_log_without_texts_runs_with_a_policy_that_reads_none() -> None:
    table = pa.table({"request_id": [1, 1, 2], "tokens": [5, 6, 7]})
    result = select(table, 10, "chat")
    assert result["status"].to_pylist() == ["included", "excluded", "included"]
    message = "missing column `content`: deduplication of the policy reads the texts"
    with pytest.raises(ValueError, match=message):
        cupel.select_batches(table, 10, "newest")
    with pytest.raises(ValueError, match="missing column `content`"):
        cupel.select_batches(table, 10, "memory", query="when?")


RECENCY = {"type": "recency"}
STRATEGIES: dict[str, dict[str, dict[str, Any]]] = {
    "reads no texts": {
        "scorer.recency": {},
        "scorer.priority": {},
        "scorer.kind": {},
        "scorer.tag": {"tag_weights": {"a": 1}},
        "scorer.frequency": {},
        "scorer.reflexive": {},
        "scorer.composite": {"entries": [{"scorer": RECENCY}]},
        "scorer.scaled": {"inner": RECENCY},
        "scorer.decay": {"curve": {"type": "exponential", "half_life": "1h"}},
        "scorer.metadata_trust": {},
        "scorer.metadata_key": {"key": "k", "value": "v", "boost": 2},
        "scorer.product": {"scorers": [RECENCY]},
        "scorer.fusion": {"entries": [{"scorer": RECENCY}]},
        "scorer.embedding": {"vector": [1.0]},
        "slicer.greedy": {},
        "slicer.rank": {},
        "slicer.density": {"exponent": 0.5},
        "slicer.knapsack": {},
        "slicer.quota": {"quotas": []},
        "slicer.count_quota": {"entries": []},
        "slicer.count_constrained_knapsack": {"entries": []},
        "slicer.group": {},
        "slicer.ladder": {"steps": []},
        "slicer.choice": {},
    },
    "reads texts": {
        "scorer.relevance": {"query": "keys"},
        "scorer.neighbor": {"inner": {"type": "relevance", "query": "keys"}},
        "scorer.conversation": {"query": "keys"},
        "slicer.diversity": {},
        "slicer.near_duplicates": {},
    },
}
"""Every strategy. One that reads texts says so in ``reads_content``."""


def test_every_strategy_that_reads_texts_is_refused_without_them() -> None:
    schema = json.loads((ROOT / "crates/cupel/schema/policy.schema.json").read_text())
    known = {name for name in schema["$defs"] if name.startswith(("scorer.", "slicer."))}
    assert known == {name for names in STRATEGIES.values() for name in names}
    table = pa.table({"request_id": [1, 1], "tokens": [5, 6]})
    for effect, strategies in STRATEGIES.items():
        for name, fields in strategies.items():
            role, _, kind = name.partition(".")
            strategy = {"type": kind, **fields}
            # A callable beside it does not hide it.
            policy = (
                cupel.Policy(strategy, deduplication=False)
                if role == "scorer"
                else cupel.Policy(lambda items: [1.0] * len(items), strategy, deduplication=False)
            )
            if effect == "reads no texts":
                assert select(table, 20, policy).num_rows == 2, name
            else:
                message = f"missing column `content`: the {role} of the policy reads the texts"
                with pytest.raises(ValueError, match=message):
                    cupel.select_batches(table, 10, policy)


def test_every_item_field_is_read() -> None:
    item = {
        "content": "rules",
        "tokens": 5,
        "kind": "SystemPrompt",
        "source": "Config",
        "priority": 3,
        "tags": ["a", "b"],
        "metadata": {"cupel:trust": "0.25", "n": "1"},
        "timestamp": START,
        "future_relevance_hint": 0.5,
        "pinned": None,
        "original_tokens": 50,
    }
    table = pa.Table.from_pylist([{"request_id": 1, **item}])
    struct = pa.table({"request_id": [1], "items": [[item]]})
    # rag: (4 * hint + 1 * trust + 0.5 * recency) / 5.5; the only timestamp scores 1.
    for data in (table, struct):
        [row] = select(data, 10, "rag").to_pylist()
        assert row["score"] == pytest.approx((4 * 0.5 + 0.25 + 0.5) / 5.5)


def test_metadata_may_be_a_map_or_a_struct() -> None:
    maps = pa.array([[("cupel:trust", 0.75), ("x", None)]], pa.map_(pa.string(), pa.float64()))
    structs = pa.array([{"cupel:trust": 0.75, "x": None}])
    scores = []
    for metadata in (maps, structs):
        table = pa.table({"request_id": [1], "content": ["a"], "metadata": metadata})
        scores += select(table, 10, "rag")["score"].to_pylist()
    assert scores == [0.75 / 5.5, 0.75 / 5.5]


def test_a_budget_column_takes_precedence_and_null_falls_back() -> None:
    table = pa.table(
        {
            "request_id": ["a", "b"],
            "content": [["x", "y"], ["x", "y"]],
            "tokens": [[4, 4], [4, 4]],
            "budget": pa.array([4, None], pa.int16()),
        }
    )
    result = select(table, 100)
    assert result["status"].to_pylist() == ["included", "excluded", "included", "included"]
    with pytest.raises(ValueError, match='request "b": missing budget'):
        select(table)
    with pytest.raises(ValueError, match="missing budget"):
        cupel.select_batches(table.drop(["budget"]))


def test_queries_come_from_the_column_or_the_argument() -> None:
    table = pa.table(
        {
            "request_id": ["a", "b"],
            "content": [["the cat sleeps", "the dog barks"]] * 2,
            "tokens": [[4, 4]] * 2,
            "query": ["dog", None],
        }
    )
    result = select(table, 4, "memory", query="cat").to_pylist()
    assert [row["status"] for row in result] == ["excluded", "included", "included", "excluded"]
    with pytest.raises(ValueError, match='request "b": the policy memory needs a query'):
        select(table, 4, "memory")
    with pytest.raises(ValueError, match="the policy memory needs a query"):
        cupel.select_batches(table.drop(["query"]), 4, "memory")


def test_an_empty_input_gives_an_empty_result_of_the_same_schema() -> None:
    table = as_lists(random_requests(1, 1)).slice(0, 0)
    assert select(table, 10).schema == RESULT
    assert select(table, 10).num_rows == 0
    assert list(cupel.select_batches(iter([]), 10)) == []
    nothing = pa.table({"request_id": ["a"], "content": pa.array([[]], pa.list_(pa.string()))})
    assert select(nothing, 10).num_rows == 0


def lists(**columns: Any) -> pa.Table:
    return pa.table({"request_id": ["r1", "r2"], **columns})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            lists(content=[["a"], ["a", None]], tokens=[[1], [1, 1]]),
            'request "r2", items[1].content: missing',
        ),
        (
            lists(content=[["a"], ["a", ""]], tokens=[[1], [1, 1]]),
            'request "r2", items[1].content: content must be non-empty',
        ),
        (
            lists(content=[["a"], ["a", "b"]], tokens=[[1.0], [2.5, 1.0]]),
            'request "r2", items[0].tokens: expected an integer, got 2.5',
        ),
        (
            lists(content=[["a"], ["a", "b"]], tokens=[[1], [1]]),
            'request "r2": `content` has 2 elements and `tokens` has 1',
        ),
        (
            lists(content=[["a"], ["a"]], kind=[["Memory"], [" "]]),
            'request "r2", items[0].kind: kind must be a non-empty',
        ),
        (
            lists(
                content=[["a"], ["a"]],
                tokens=pa.array([[1], [2**64 - 1]], pa.list_(pa.uint64())),
            ),
            'request "r2", items[0].tokens: 18446744073709551615 exceeds the 64-bit range',
        ),
        (
            lists(content=[["a"], ["a"]], tokens=[[1], [500]], pinned=[[True], [True]]),
            'request "r2": pinned tokens (500) exceed available budget (100)',
        ),
        (
            lists(items=pa.array([[{"content": "a"}], [{"content": "a"}, None]])),
            'request "r2", items[1]: the item is null',
        ),
    ],
)
def test_an_invalid_request_is_named_or_reported(table: pa.Table, message: str) -> None:
    with pytest.raises(pa.ArrowInvalid) as raised:
        select(table, 100)
    assert message in str(raised.value)
    with pytest.raises(cupel.CupelError) as itself:
        list(cupel.select_batches(table, 100))
    assert str(itself.value).startswith(message)
    assert isinstance(itself.value, cupel.OverBudgetError) == ("exceed available" in message)

    result = select(table, 100, errors="report").to_pylist()
    good = [row for row in result if row["request_id"] == "r1"]
    [bad] = [row for row in result if row["request_id"] == "r2"]
    assert [row["status"] for row in good] == ["included"]
    assert bad["status"] == "error"
    assert bad["reason"].startswith(message)
    assert bad["tokens"] is None and bad["score"] is None and bad["position"] is None
    assert (f"items[{bad['index']}]" in message) == (bad["index"] is not None)


def test_requests_before_the_invalid_one_are_answered_first() -> None:
    requests = random_requests(2, 5000)
    bad = Request("bad", [{**requests[0].items[0], "content": ""}], 10)
    batches = cupel.select_batches(as_rows([*requests, bad, *requests[:1]]), policy="newest")
    rows = 0
    with pytest.raises(ValueError, match='request "bad", items'):
        for batch in batches:
            rows += batch.num_rows
    assert 0 < rows < sum(len(request.items) for request in requests)
    assert list(batches) == []


def test_an_id_that_comes_back_is_an_error_that_names_it() -> None:
    requests = random_requests(2, 3)
    table = pa.concat_tables([as_rows(requests), as_rows(requests[1:2])])
    for errors in ("raise", "report"):
        for batches in (table, cut(table, [3, 5]), table.combine_chunks()):
            with pytest.raises(
                pa.ArrowInvalid, match='the rows of request "r1" are not contiguous'
            ):
                select(batches, policy="newest", errors=errors)


def test_rows_of_a_request_that_disagree_on_the_budget_are_an_error() -> None:
    table = pa.table({"request_id": [1, 1], "content": ["a", "b"], "budget": [5, 6]})
    with pytest.raises(
        ValueError, match="request 1: budget: the rows of a request must have the same"
    ):
        select(table)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"content": ["a"]}, "missing column `request_id`, the request id; the data has `content`"),
        ({"request_id": [1]}, "missing column `content`"),
        ({"request_id": [1], "text": ["a"]}, "missing column `content`"),
        (
            {"request_id": [1], "content": ["a"], "Token": [1]},
            "unknown column `Token`; did you mean `tokens`?",
        ),
        (
            {"request_id": [1], "content": ["a"], "originalTokens": [1]},
            "did you mean `original_tokens`?",
        ),
        (
            {"request_id": [1], "content": [5]},
            "column `content`: expected strings, got Int64",
        ),
        (
            {"request_id": [1], "content": [["a"]], "tokens": [5]},
            "column `tokens`: expected a list of integers",
        ),
        (
            {"request_id": [1], "content": ["a"], "timestamp": [datetime(2026, 1, 1)]},
            "column `timestamp`: expected timestamps with a time zone",
        ),
        ({"request_id": [1], "items": [5]}, "column `items`: expected a list of structs"),
        (
            {"request_id": [1], "items": [[{"Content": "a"}]]},
            "unknown column `Content`; did you mean `content`?",
        ),
    ],
)
def test_columns_are_checked_before_anything_runs(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        cupel.select_batches(pa.table(columns), 10)
    assert message in str(raised.value)


def test_other_invalid_arguments() -> None:
    table = pa.table({"request_id": [1], "content": ["a"]})
    with pytest.raises(TypeError, match="data: expected a table"):
        cupel.select_batches(5, 10)
    with pytest.raises(TypeError, match="data: expected a table"):
        cupel.select_batches([5], 10)
    with pytest.raises(ValueError, match='errors: expected "raise" or "report"'):
        cupel.select_batches(table, 10, errors="ignore")  # type: ignore[arg-type]
    for threads in (0, -1, 2**70):
        with pytest.raises(ValueError, match=f"threads: expected 1 to [0-9]+, got {threads}"):
            cupel.select_batches(table, 10, threads=threads)
    with pytest.raises(TypeError, match="threads: expected an integer, got str"):
        cupel.select_batches(table, 10, threads="2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="query: a lone surrogate"):
        cupel.select_batches(table, 10, "memory", query="\ud800")
    with pytest.warns(cupel.CupelWarning, match="query= has no effect"):
        cupel.select_batches(table, 10, "newest", query="a")
    with pytest.raises(ValueError, match="the result has a column `index` of its own"):
        cupel.select_batches(table.rename_columns(["index", "content"]), 10, request_id="index")
    with pytest.raises(ValueError, match="column `request_id`: row 1 of a batch is null"):
        select(pa.table({"request_id": [1, None], "content": ["a", "b"]}), 10)


def test_a_budget_may_be_a_share_of_the_window_of_the_model() -> None:
    table = pa.table({"request_id": [1, 2], "content": ["a", "b"], "tokens": [64_000, 64_001]})
    # The window of gpt-4o has 128,000 tokens.
    rows = select(table, "50%", model="gpt-4o").to_pylist()
    assert [row["status"] for row in rows] == ["included", "excluded"]
    with pytest.raises(ValueError, match="budget: invalid budget `50%`: a share needs a model"):
        cupel.select_batches(table, "50%")


def test_tokens_may_be_decimals() -> None:
    tokens = pa.array([Decimal(3), None, Decimal(5)], pa.decimal128(38, 2))
    table = pa.table({"request_id": [1, 1, 1], "content": list("abc"), "tokens": tokens})
    assert select(table, 100)["tokens"].to_pylist() == [3, 1, 5]
    for value in ("3.50", "1e20"):
        tokens = pa.array([Decimal(value)], pa.decimal128(38, 2))
        table = pa.table({"request_id": [1], "content": ["a"], "tokens": tokens})
        with pytest.raises(ValueError, match=r"items\[0\].tokens: expected an integer of 64 bits"):
            list(cupel.select_batches(table, 100))


def test_timestamps_may_be_strings() -> None:
    times = ["2026-03-02T09:00:00Z", "2026-03-02T10:30:00.5+02:00", None]
    table = pa.table({"request_id": [1, 1, 1], "content": list("abc"), "timestamp": times})
    ranks = select(table, 100, cupel.Policy("recency"))["rank"].to_pylist()
    assert ranks == [0, 1, 2]
    for text in ("2026-03-02T09:00:00", "yesterday"):
        table = pa.table({"request_id": [1], "content": ["a"], "timestamp": [text]})
        with pytest.raises(ValueError, match=r"items\[0\].timestamp: expected a time with a zone"):
            list(cupel.select_batches(table, 100))


def test_a_generator_or_a_strategy_may_select_batches() -> None:
    """PyO3 would use the interpreter without the lock, which pyarrow releases."""
    table = pa.table({"request_id": [1, 2], "content": [["a", "b"], ["c"]]})
    whole = select(table, 100)

    def nested() -> Iterator[pa.Table]:
        assert pa.table(cupel.select_batches(iter([table]), 100)).equals(whole)
        assert pa.Table.from_batches(list(cupel.select_batches(table, 100))).equals(whole)
        yield table
        assert select(table, 100).equals(whole)

    def score(items: Sequence[cupel.Item]) -> list[float]:
        assert select(table, 100).equals(whole)
        return [1.0] * len(items)

    class Lazy:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            assert select(table, 100).equals(whole)
            return table.__arrow_c_stream__(requested_schema)

        def to_dict(self) -> dict[str, Any]:
            return {"content": "a", "tokens": select(table, 100).num_rows}

    assert select(nested(), 100).equals(whole)
    assert select(Lazy(), 100).equals(whole)
    assert select([Lazy()], 100).equals(whole)
    assert cupel.select([Lazy()], 100).tokens == 3
    assert list(cupel.select_batches(nested(), 100))
    assert select(table, 100, cupel.Policy(score)).num_rows == 3
    assert cupel.select_index((item.as_py() for item in items_of(table)), 100) == [0, 1, 2]


def items_of(table: pa.Table) -> pa.Array:
    """Returns the items of a table after a selection of its requests."""
    ids = select(table, 100)["index"]
    return pa.array([{"content": f"item {at}", "tokens": 1} for at in range(len(ids))])


def test_a_stream_from_outside_of_a_generator_is_not_read_in_it() -> None:
    table = pa.table({"request_id": [1], "content": ["a"]})
    reader = pa.RecordBatchReader.from_stream(cupel.select_batches(table, 100))

    def items() -> Iterator[dict[str, Any]]:
        yield {"content": "a", "tokens": reader.read_all().num_rows}

    with pytest.raises(ValueError, match=r"iterate over select_batches\(\) instead"):
        cupel.select(items(), 10)


def test_a_stream_is_not_read_inside_of_itself() -> None:
    table = pa.table({"request_id": [1], "content": ["a"]})
    streams: list[cupel.SelectedBatches] = []

    def endless() -> Iterator[pa.Table]:
        yield table
        next(streams[0])

    streams.append(cupel.select_batches(endless(), 100))
    with pytest.raises(ValueError, match="the stream is being read already"):
        list(streams[0])


def test_a_stream_is_read_once() -> None:
    table = pa.table({"request_id": [1], "content": ["a"]})
    batches = cupel.select_batches(table, 10)
    assert pa.table(batches).num_rows == 1
    with pytest.raises(ValueError, match="already read"):
        pa.table(batches)


def test_batches_of_different_types_are_an_error() -> None:
    first = pa.record_batch({"request_id": [1], "content": ["a"]})
    other = pa.record_batch({"request_id": [2], "content": pa.array(["a"], pa.large_string())})
    missing = pa.record_batch({"request_id": [2]})
    with pytest.raises(ValueError, match="column `content` is LargeUtf8 in one batch"):
        list(cupel.select_batches([first, other], 10))
    with pytest.raises(ValueError, match="column `content` is in the first batch and missing"):
        list(cupel.select_batches([first, missing], 10))


def test_what_the_iterator_raises_comes_out_as_itself() -> None:
    class Broken(Exception):
        pass

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"request_id": [1], "content": ["a"]})
        raise Broken("disk")

    result = cupel.select_batches(batches(), 10)
    with pytest.raises(Broken, match="disk"):
        list(result)


def test_batches_are_pulled_as_the_consumer_reads() -> None:
    """Constant memory: at most the gathered items are read ahead."""
    pulled = 0
    table = as_lists(random_requests(4, 1000))
    items = sum(len(row) for row in table["content"].to_pylist())

    def batches() -> Iterator[pa.Table]:
        nonlocal pulled
        for _ in range(200):
            pulled += 1
            yield table

    result = cupel.select_batches(batches(), policy="newest")
    assert pulled == 1, "the first batch has the schema"
    next(result)
    assert pulled * items < 2**16 + 2 * items
    before = pulled
    for batch in itertools.islice(result, 40):
        assert batch.num_rows > 0
    assert before < pulled < 40


def test_the_gil_is_free_while_the_engine_runs() -> None:
    """Another Python thread makes progress while one batch is answered."""
    table = as_lists(random_requests(4, 3000, most=40))
    big = pa.concat_tables([table] * 5)
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            done.wait(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for _ in cupel.select_batches(big, policy="newest", threads=1):
            pass
    finally:
        done.set()
        thread.join()
    assert ticks > 5


POLICY = {"scorer": {"type": "priority"}, "slicer": {"type": "rank"}, "deduplication": False}


def prioritized(count: int) -> list[dict[str, Any]]:
    """Returns requests as the command reads them; items have no timestamps."""
    requests = []
    for request in random_requests(9, count):
        items = [
            {"content": item["content"], "tokens": item["tokens"], "priority": at * 7 % 5}
            for at, item in enumerate(request.items)
        ]
        requests.append({"items": items, "budget": {"max_tokens": request.budget}})
    return requests


def prioritized_table(requests: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {
            "request_id": range(len(requests)),
            "items": [request["items"] for request in requests],
            "budget": [request["budget"]["max_tokens"] for request in requests],
        }
    )


@pytest.mark.parametrize("policy", [POLICY, cupel.Policy.from_dict(POLICY), "rag", None])
def test_decisions_equal_those_of_select(policy: Any) -> None:
    requests = prioritized(60)
    result = select(prioritized_table(requests), policy=policy)
    for number, request in enumerate(requests):
        own = rows_of(result, number).drop(["request_id"])
        single = cupel.select(request["items"], request["budget"], policy or "chat")
        assert own.to_pylist() == single.report.to_arrow().to_pylist()


def test_decisions_equal_those_of_the_command() -> None:
    requests = prioritized(60)
    lines = "\n".join(json.dumps({**request, "policy": POLICY}) for request in requests)
    answers = run("batch", "-", stdin=lines).stdout.splitlines()
    result = select(prioritized_table(requests), policy=POLICY)
    assert len(answers) == len(requests)
    for number, line in enumerate(answers):
        answer = json.loads(line)
        own = rows_of(result, number).to_pylist()
        window = sorted((row for row in own if row["position"] is not None), key=in_window)
        assert [row["index"] for row in window] == [it["index"] for it in answer["selected"]]
        for entry in answer["included"] + answer["excluded"]:
            row = own[entry["index"]]
            assert (row["score"], row["reason"]) == (entry["score"], entry["reason"]["reason"])


def in_window(row: dict[str, Any]) -> int:
    return int(row["position"])


def test_a_budget_may_be_a_string_a_dict_or_an_object() -> None:
    table = pa.table({"request_id": [1, 1], "content": ["a", "b"], "tokens": [900, 200]})
    for budget in ("1k", {"max_tokens": 1000}, cupel.Budget(1000), 1000):
        assert select(table, budget)["status"].to_pylist().count("included") == 1
    # A column replaces the limits and keeps the reserve.
    table = table.append_column("budget", pa.array([1100, 1100]))
    assert select(table, 5)["status"].to_pylist().count("included") == 2
    reserved = cupel.Budget(5, output_reserve=5)
    assert select(table, reserved)["status"].to_pylist().count("included") == 1


def test_shorter_views_are_read_and_counted() -> None:
    item = {
        "content": "a long result",
        "tokens": 100,
        "future_relevance_hint": 0.9,
        "views": [{"content": "short", "tokens": 10, "level": 50, "value": 0.5}],
    }
    table = pa.table({"request_id": [1], "items": [[item]]})
    policy = {"scorer": {"type": "reflexive"}, "slicer": {"type": "choice"}}
    [row] = select(table, 20, policy).to_pylist()
    assert (row["status"], row["reason"], row["tokens"]) == ("included", "Shortened", 10)


def test_python_strategies_run_on_all_threads_and_may_raise() -> None:
    def length(items: Sequence[cupel.Item]) -> list[float]:
        if any(item.content == "boom" for item in items):
            raise LookupError("no score")
        return [float(len(item.content)) for item in items]

    table = pa.table(
        {
            "request_id": ["a", "b"],
            "content": [["x", "xxx", "xx"], ["boom"]],
            "tokens": [[1, 1, 1], [1]],
        }
    )
    policy = cupel.Policy(length, "rank")
    for threads in (1, 2):
        rows = select(table, 2, policy, threads=threads, errors="report").to_pylist()
        assert [row["rank"] for row in rows] == [2, 0, 1, None]
        assert rows[3]["status"] == "error"
        assert rows[3]["reason"] == 'request "b": LookupError: no score'
        with pytest.raises(LookupError, match="no score") as raised:
            list(cupel.select_batches(table, 2, policy, threads=threads))
        assert raised.value.__notes__ == ['request "b"']


def test_an_interruption_ends_the_stream_even_if_errors_are_reported() -> None:
    def interrupted(items: Sequence[cupel.Item]) -> list[float]:
        raise KeyboardInterrupt

    table = pa.table({"request_id": [1], "content": ["a"]})
    batches = cupel.select_batches(table, 5, cupel.Policy(interrupted), errors="report")
    with pytest.raises(KeyboardInterrupt):
        list(batches)


def test_tokens_are_counted_by_model_or_encoding() -> None:
    table = pa.table({"request_id": [1], "content": ["supercalifragilistic"]})

    def tokens(**options: Any) -> int:
        return int(select(table, 100, **options)["tokens"][0].as_py())

    assert tokens(model="gpt-4") == tokens(encoding="cl100k")
    assert tokens(model="gpt-4o") == tokens(encoding="o200k") == tokens()
    assert tokens(encoding="heuristic") > 0
    with pytest.raises(cupel.InvalidInputError, match="encoding: unknown encoding"):
        cupel.select_batches(table, 100, encoding="utf9")  # type: ignore[arg-type]
    with pytest.raises(cupel.InvalidInputError, match="model: "):
        cupel.select_batches(table, 100, model="gpt-17")


def test_a_process_that_forked_gets_its_own_threads() -> None:
    """Threads do not survive a fork: a child that waited for them would never end."""
    table = as_lists(random_requests(1, 50))
    whole = select(table, policy="newest")
    child = os.fork()
    if child == 0:
        same = select(table, policy="newest").equals(whole)
        os._exit(0 if same else 1)
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child waits for threads")
    assert os.waitstatus_to_exitcode(status) == 0
