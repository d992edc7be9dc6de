"""`fit_batches`: the decisions of `fit`, reuse and cost, types, streaming, errors."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cupel
from request_log import Row, rows, table


def faulty(log: list[Row]) -> list[Row]:
    """Returns the rows with some that cannot be fitted."""
    log[40] = replace(log[40], request=None)
    log[41] = replace(log[41], budget=20)
    log[90] = replace(log[90], request=(log[90].request or "")[:300])
    return log


LOG = faulty(list(rows(260)))
TABLE = table(LOG)
FIGURES = pa.schema(
    [
        ("tokens_before", pa.int64()),
        ("tokens_after", pa.int64()),
        ("kept", pa.int64()),
        ("dropped", pa.int64()),
        ("shortened", pa.int64()),
        ("kept_indices", pa.list_(pa.int64())),
        ("dropped_indices", pa.list_(pa.int64())),
        ("reasons", pa.list_(pa.string())),
        ("shortened_indices", pa.list_(pa.int64())),
        ("reused_tokens", pa.int64()),
        ("reused_share", pa.float64()),
        ("cost", pa.float64()),
        ("warnings", pa.list_(pa.string())),
        ("error_code", pa.string()),
        ("error", pa.string()),
        ("error_place", pa.string()),
    ]
)
HELLO = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello!"}]}


def figures(data: Any, *args: Any, **options: Any) -> pa.Table:
    """Reads the whole result. Rows that fail are expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cupel.CupelWarning)
        return pa.table(cupel.fit_batches(data, *args, **options))


def expected(row: Row, **options: Any) -> dict[str, Any]:
    """Returns the figures of a row as `fit` has them, without reuse and cost."""
    found: dict[str, Any] = {name: None for name in FIGURES.names}
    try:
        if row.request is None:
            raise cupel.InvalidInputError("the request is null")
        request = json.loads(row.request)
        fitted = cupel.fit(request, row.budget, model=row.model, **options)
    except cupel.OverBudgetError as error:
        return found | {"error_code": "over_budget", "error": error.message}
    except ValueError as error:
        return found | {"error_code": "invalid_input", "error": str(error)}
    return found | {
        "tokens_before": fitted.tokens_before,
        "tokens_after": fitted.tokens_after,
        "kept": len(fitted.kept),
        "dropped": len(fitted.dropped),
        "shortened": len(fitted.shortened),
        "kept_indices": fitted.kept,
        "dropped_indices": [entry["index"] for entry in fitted.dropped],
        "reasons": [entry["reason"]["reason"] for entry in fitted.dropped],
        "shortened_indices": [entry["index"] for entry in fitted.shortened],
        "request": fitted.request,
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"policy": "newest"},
        {"policy": "single", "max_result": 100},
        {"pin": [1], "marker": "[{omitted} omitted]", "encoding": "cl100k"},
    ],
    ids=["default", "newest", "single", "options"],
)
def test_decisions_are_those_of_fit(options: dict[str, Any]) -> None:
    result = figures(TABLE, request=True, **options).to_pylist()
    assert len(result) == len(LOG)
    compared = [
        name for name in FIGURES.names if name[:5] not in ("reuse", "cost", "warni", "error")
    ]
    seen = {"dropped": 0, "shortened": 0, "failed": 0}
    for row, own in zip(LOG, result, strict=True):
        assert own["id"] == row.id
        wanted = expected(row, **options)
        assert {name: own[name] for name in compared} == {name: wanted[name] for name in compared}
        assert own["error_code"] == wanted["error_code"], row.id
        if own["error_code"] is None:
            assert json.loads(own["request"]) == wanted["request"]
        elif own["error_code"] == "over_budget":
            assert own["error"] == wanted["error"]
        seen["dropped"] += bool(own["dropped"])
        seen["shortened"] += bool(own["shortened"])
        seen["failed"] += own["error_code"] is not None
    assert seen["dropped"] > 20, seen
    assert seen["failed"] >= 3, seen
    if not options:
        assert seen["shortened"] > 20, seen


def test_the_schema_is_that_of_the_page() -> None:
    result = figures(TABLE.select(["request"]), 1000)
    assert result.schema == FIGURES
    assert figures(TABLE, keep=["order", "id"]).schema.names[:2] == ["order", "id"]
    assert figures(TABLE).schema.names[:5] == ["id", "conversation", "order", "model", "budget"]


def test_reuse_is_that_of_a_fitter() -> None:
    """A `Fitter` compares the messages; the request overhead is reused as well."""
    result = {row["id"]: row for row in figures(TABLE, prices=(0.25, 2)).to_pylist()}
    reused = 0
    for _, group in itertools.groupby(LOG, key=lambda row: row.conversation):
        fitter: cupel.Fitter | None = None
        previous: cupel.Fitted[Any] | None = None
        for row in group:
            own = result[row.id]
            if own["error_code"]:
                continue
            assert row.request is not None
            fitter = fitter or cupel.Fitter(row.budget, model=row.model)
            fitted = fitter.fit(json.loads(row.request))
            if previous is None:
                assert (own["reused_tokens"], own["reused_share"]) == (None, None)
                assert own["cost"] == 2 * own["tokens_after"]
            else:
                assert fitted.reuse is not None
                overhead = previous.tokens_after - fitted.reuse["of"]
                tokens = fitted.reuse["tokens"] + overhead
                assert own["reused_tokens"] == tokens, row.id
                assert own["reused_share"] == pytest.approx(tokens / previous.tokens_after)
                written = own["tokens_after"] - tokens
                assert own["cost"] == pytest.approx(0.25 * tokens + 2 * written)
                reused += 1
            previous = fitted
    assert reused > 100


def turns(count: int, **fields: Any) -> str:
    """Returns a request with so many answered questions, and one more."""
    messages = [{"role": "user", "content": "Hello!"}]
    for _ in range(count):
        messages.append({"role": "assistant", "content": "Hello!"})
        messages.append({"role": "user", "content": "Hello!"})
    return json.dumps({"model": "gpt-4o", **fields, "messages": messages})


def test_reuse_and_cost_of_a_conversation_by_hand() -> None:
    # OpenAI counts 3 tokens for a message, 1 for its role, and 3 for the start of the answer.
    # "Hello!" has 2.
    tokens = [9, 9 + 2 * 6, 9 + 4 * 6]
    log = pa.table({"request": [turns(it) for it in range(3)], "conversation": ["a"] * 3})
    result = figures(log, 1000).to_pylist()
    assert [row["tokens_after"] for row in result] == tokens
    assert [row["reused_tokens"] for row in result] == [None, 9, 21]
    assert [row["reused_share"] for row in result] == [None, 1.0, 1.0]
    costs = [1.25 * 9, 0.1 * 9 + 1.25 * 12, 0.1 * 21 + 1.25 * 12]
    assert [row["cost"] for row in result] == pytest.approx(costs)
    costs = [9, 0.1 * 9 + 12, 0.1 * 21 + 12]
    assert figures(log, 1000, prices="openai")["cost"].to_pylist() == pytest.approx(costs)
    # Without conversations nothing is reused.
    alone = figures(log.select(["request"]), 1000)
    assert alone["reused_tokens"].to_pylist() == [None] * 3
    assert alone["cost"].to_pylist() == pytest.approx([1.25 * it for it in tokens])


def test_other_tools_or_another_model_reuse_nothing() -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    requests = [turns(1), turns(2, tools=[tool]), turns(2, tools=[tool], model="gpt-4.1")]
    log = pa.table({"request": requests, "conversation": ["a"] * 3})
    assert figures(log, 1000)["reused_tokens"].to_pylist() == [None, 0, 0]


def test_interleaved_conversations_are_told_apart() -> None:
    order = sorted(range(len(LOG)), key=lambda at: (LOG[at].order, LOG[at].conversation))
    mixed = figures(TABLE.take(pa.array(order)), threads=2).to_pylist()
    own = figures(TABLE).to_pylist()
    assert mixed == [own[at] for at in order]


def test_a_row_after_a_later_one_has_no_reuse() -> None:
    log = pa.table(
        {
            "request": [turns(it) for it in (0, 2, 1, 3)],
            "conversation": ["a"] * 4,
            "order": [0, 2, 1, 3],
        }
    )
    batches = cupel.fit_batches(log, 1000)
    with pytest.warns(cupel.CupelWarning, match="1 of 4 requests came after a later one"):
        result = pa.table(batches).to_pylist()
    assert [row["reused_tokens"] for row in result] == [None, 9, None, 33]
    assert result[2]["cost"] == pytest.approx(1.25 * 21)
    assert "after a later one" in result[2]["warnings"][0]
    assert batches.summary["out_of_order"] == 1
    # Times are an order too, and without one the rows are taken as they come.
    times = pa.array([0, 2, 1, 3], pa.timestamp("us"))
    with pytest.warns(cupel.CupelWarning):
        timed = pa.table(cupel.fit_batches(log.set_column(2, "order", times), 1000))
    assert timed["reused_tokens"].to_pylist() == [None, 9, None, 33]
    taken = figures(log, 1000, columns={"order": None})
    assert taken["reused_tokens"].to_pylist() == [None, 9, 21, 21]


TEXTS = [
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int32(), pa.binary()),
]


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_requests_of_any_text_type(text: pa.DataType) -> None:
    some = TABLE.slice(0, 60)
    column = some["request"].combine_chunks()
    if pa.types.is_dictionary(text):
        column = column.cast(text.value_type).dictionary_encode()
    else:
        column = column.cast(text)
    at = some.schema.get_field_index("request")
    recast = some.set_column(at, "request", column)
    assert recast["request"].type == text
    assert figures(recast).equals(figures(some))


MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": 'Be "brief".'},
    {"role": "user", "content": "Where is ORD-7?"},
    {
        "role": "assistant",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "scan", "arguments": '{"n": 1}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "scanned\nat the \\ depot " * 90},
    {"role": "user", "content": "Thanks."},
]


def test_requests_may_be_structs_or_lists_of_structs() -> None:
    request = {"model": "gpt-4o", "temperature": 0.5, "stream": False, "messages": MESSAGES}
    wanted = cupel.fit(request, 200)
    assert wanted.shortened
    for column in (pa.array([request, None]), pa.array([MESSAGES, None])):
        log = pa.table({"request": column})
        row, null = figures(log, 200, model="gpt-4o", request=True).to_pylist()
        assert row["tokens_before"] == wanted.tokens_before
        assert row["tokens_after"] == wanted.tokens_after
        assert row["shortened_indices"] == [entry["index"] for entry in wanted.shortened]
        fitted = json.loads(row["request"])
        messages = fitted if isinstance(fitted, list) else fitted["messages"]
        assert messages == wanted.messages
        assert null["error"] == "the request is null"
    # Maps, integers, times and nulls in lists.
    odd = pa.array(
        [{"messages": [{"role": "user", "content": "Hi", "n": 7}], "metadata": [("a", 1.5)]}],
        pa.struct(
            [
                (
                    "messages",
                    pa.list_(
                        pa.struct(
                            [("role", pa.string()), ("content", pa.string()), ("n", pa.int8())]
                        )
                    ),
                ),
                ("metadata", pa.map_(pa.string(), pa.float64())),
            ]
        ),
    )
    [row] = figures(pa.table({"request": odd}), 200, request=True).to_pylist()
    assert json.loads(row["request"]) == {
        "messages": [{"role": "user", "content": "Hi", "n": 7}],
        "metadata": {"a": 1.5},
    }


def cut(data: pa.Table, at: list[int]) -> Iterator[pa.RecordBatch]:
    """Cuts a table into batches at these rows."""
    for start, end in itertools.pairwise([0, *at, data.num_rows]):
        yield from data.slice(start, end - start).combine_chunks().to_batches()


def test_batches_and_threads_do_not_change_the_result() -> None:
    whole = figures(TABLE)
    # Batches without rows, with one, and with more than a piece of the work.
    for at in ([0, 0, 1, 2, 2, 200], list(range(0, len(LOG), 7)), [len(LOG)]):
        assert figures(cut(TABLE, at)).equals(whole)
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, cut(TABLE, [5, 50]))
    assert figures(reader, threads=1).equals(whole)
    assert figures(TABLE, threads=3).equals(whole)
    many = pa.concat_tables([TABLE.select(["request", "budget", "model"])] * 5).combine_chunks()
    again = pa.concat_tables([figures(TABLE.select(["request", "budget", "model"]))] * 5)
    assert figures(many).equals(again)


def test_an_empty_input_gives_an_empty_result() -> None:
    assert figures(TABLE.slice(0, 0)).schema == figures(TABLE.slice(0, 1)).schema
    assert list(cupel.fit_batches(iter([]), 10)) == []
    assert figures(iter([]), 10).schema == FIGURES


def test_budgets_and_models_of_rows_take_precedence() -> None:
    chat = json.dumps({"messages": [{"role": "user", "content": "Where is it?"}] * 9})
    log = pa.table({"request": [chat] * 3, "budget": pa.array([40, None, 90], pa.int16())})
    result = figures(log, 1000)
    assert result["kept"].to_pylist() == [
        len(cupel.fit(json.loads(chat), budget).kept) for budget in (40, 1000, 90)
    ]
    text = log.set_column(1, "budget", pa.array(["50%", "1k", "oops"]))
    first, second, third = figures(text, model="gpt-4o").to_pylist()
    assert (first["dropped"], second["dropped"]) == (0, 0)
    assert third["error_code"] == "invalid_input"
    assert "oops" in third["error"]
    models = log.set_column(1, "model", pa.array(["gpt-4", "gpt-17", None]))
    known, unknown, null = figures(models, 1000, model="gpt-4o").to_pylist()
    assert known["tokens_before"] == cupel.fit(json.loads(chat), 1000, model="gpt-4").tokens_before
    assert null["tokens_before"] == cupel.fit(json.loads(chat), 1000, model="gpt-4o").tokens_before
    assert known["warnings"] == []
    assert "gpt-17" in unknown["warnings"][0]


def test_columns_may_have_other_names() -> None:
    names = {"request": "body", "conversation": "session", "order": "at"}
    log = TABLE.select(["request", "conversation", "order", "budget", "model"])
    renamed = log.rename_columns(["body", "session", "at", "budget", "model"])
    result = figures(renamed, columns=names, keep=[])
    assert result.equals(figures(log, keep=[]))
    other = log.set_column(3, "budget", pa.array(["cheap"] * len(LOG)))
    assert figures(other, 1000, columns={"budget": None}).num_rows == len(LOG)


def invalid() -> pa.Table:
    system = {"role": "system", "content": "a b c " * 500}
    big = json.dumps({"messages": [system, {"role": "user", "content": "Hello!"}]})
    requests = [
        json.dumps(HELLO),
        '{"messages": [{"role": "user" "content": 1}]}',
        big,
        None,
        "",
        json.dumps(HELLO["messages"][0]),
        json.dumps({"messages": [{"role": "user", "content": "x"}, {"role": 7}]}),
        json.dumps(HELLO),
    ]
    return pa.table({"id": range(len(requests)), "request": requests})


def test_a_bad_row_is_an_error_in_its_row_and_counted() -> None:
    batches = cupel.fit_batches(invalid(), 100)
    message = (
        "6 of 8 requests could not be fitted; the first: row 1, messages[0] (line 1, column 31): "
    )
    with pytest.warns(cupel.CupelWarning) as told:
        result = pa.table(batches)
    assert len(told) == 1
    assert message in str(told[0].message)
    assert result["id"].to_pylist() == list(range(8))
    assert result["error_code"].to_pylist() == [
        None,
        "invalid_input",
        "over_budget",
        *["invalid_input"] * 4,
        None,
    ]
    assert result["tokens_after"].to_pylist() == [9, *[None] * 6, 9]
    errors = result["error"].to_pylist()
    assert errors[2].startswith("mandatory messages need ")
    assert errors[3:6] == [
        "the request is null",
        "the request is empty",
        "this is a message, not a request",
    ]
    places = result["error_place"].to_pylist()
    assert places[1] == "messages[0] (line 1, column 31)"
    assert places[2:6] == [None] * 4
    # The second message starts after the 14 characters of `{"messages": [` and the first one.
    assert places[6] == "messages[1] (line 1, column 49)"
    summary = batches.summary
    assert (summary["rows"], summary["failed"], summary["tokens_after"]) == (8, 6, 18)
    assert summary["cost"] == pytest.approx(2 * 1.25 * 9)


def test_an_error_can_stop_the_stream() -> None:
    batches = cupel.fit_batches(invalid(), 100, on_error="raise")
    assert next(batches).num_rows == 1
    with pytest.raises(cupel.InvalidInputError) as raised:
        next(batches)
    assert raised.value.path == "row 1, messages[0] (line 1, column 31)"
    assert list(batches) == []
    late = cupel.fit_batches(cut(invalid().slice(2), [1]), 100, on_error="raise")
    with pytest.raises(cupel.OverBudgetError, match="row 0: mandatory messages need"):
        list(late)
    with pytest.raises(pa.ArrowInvalid, match="row 1, messages.0. .line 1, column 31.: expected"):
        pa.table(cupel.fit_batches(invalid(), 100, on_error="raise"))


def test_bytes_that_are_not_utf_8_are_an_error_of_their_row() -> None:
    log = pa.table({"request": [json.dumps(HELLO).encode(), b'{"messages": "\xff"}']})
    result = figures(log, 100)
    assert result["tokens_after"].to_pylist() == [9, None]
    assert result["error"].to_pylist()[1] == "byte 0xff is not UTF-8"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": {"requests": "request"}}, "columns: unknown use `requests`; expected one of"),
        ({"columns": {"order": "when"}}, "columns: missing column `when`; the data has `id`"),
        ({"columns": {"order": "id"}}, "column `id`: expected integers, timestamps or dates"),
        ({"columns": {"request": "order"}}, "column `order`: expected JSON text, or structs"),
        ({"columns": {"model": "order"}}, "column `order`: expected strings, got Int64"),
        ({"keep": ["ids"]}, "keep: missing column `ids`"),
        ({"keep": ["request"], "request": True}, "keep: the result has a column `request`"),
        ({"prices": "gemini"}, "prices: expected anthropic, openai, or two numbers"),
        ({"prices": (0.1, 1000.0)}, "prices: expected anthropic, openai, or two numbers"),
        ({"on_error": "ignore"}, 'on_error: expected "raise" or "report", got "ignore"'),
        ({"threads": 0}, "threads: expected 1 to"),
        ({"policy": "newset"}, "newest"),
        ({"summarize": len}, "summarize: the requests of a log are fitted without summaries"),
        ({"budget": "8kk"}, "8kk"),
        ({"shape": "opneai"}, "openai"),
    ],
    ids=lambda it: str(it)[:40],
)
def test_arguments_are_checked_before_the_first_row(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(cupel.InvalidInputError) as raised:
        cupel.fit_batches(TABLE, **arguments)
    assert message in str(raised.value)


def test_unknown_options_and_data_are_type_errors() -> None:
    with pytest.raises(TypeError, match="did you mean 'policy'"):
        cupel.fit_batches(TABLE, 100, polcy="agent")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="expected a table"):
        cupel.fit_batches(7, 100)
    with pytest.raises(
        cupel.InvalidInputError, match="missing column `request`; the data has `id`"
    ):
        cupel.fit_batches(TABLE.select(["id"]), 100)


def test_a_stream_is_read_once() -> None:
    batches = cupel.fit_batches(TABLE.slice(0, 3), 1000)
    pa.table(batches)
    with pytest.raises(cupel.InvalidInputError, match="call fit_batches again"):
        pa.table(batches)


def test_batches_are_pulled_as_the_result_is_read() -> None:
    pulled = 0

    def source() -> Iterator[pa.Table]:
        nonlocal pulled
        for _ in range(100):
            pulled += 1
            yield pa.table({"request": [json.dumps(HELLO)] * 512})

    batches = cupel.fit_batches(source(), 100)
    assert pulled <= 1
    next(batches)
    assert pulled <= 4


def test_policies_with_python_strategies_run_and_may_raise() -> None:
    def length(items: list[cupel.Item]) -> list[float]:
        if any(item.content == "boom" for item in items):
            raise LookupError("no score")
        return [float(len(item.content)) for item in items]

    def chat(text: str) -> str:
        said = [{"role": "user", "content": it} for it in ("first", text, "last " * 20, "now")]
        return json.dumps({"messages": said})

    log = pa.table({"request": [chat("second"), chat("boom")]})
    policy = cupel.Policy(length, "rank")
    first, second = figures(log, 40, policy=policy).to_pylist()
    assert first["kept_indices"] == cupel.fit(json.loads(chat("second")), 40, policy=policy).kept
    assert (second["error_code"], second["error"]) == ("exception", "LookupError: no score")
    with pytest.raises(LookupError, match="no score") as raised:
        list(cupel.fit_batches(log, 40, policy=policy, on_error="raise"))
    assert raised.value.__notes__ == ["row 1"]


def test_a_counter_that_raises_ends_its_row_only() -> None:
    def words(text: str) -> int:
        if text == "boom":
            raise LookupError("no count")
        return len(text.split())

    def chat(text: str) -> str:
        return json.dumps({"messages": [{"role": "user", "content": text}]})

    log = pa.table({"request": [chat("one two three")] * 40 + [chat("boom")] + [chat("one")] * 40})
    result = figures(log, 100, counter=words, threads=3).to_pylist()
    assert [row["error"] for row in result if row["error"]] == ["LookupError: no count"]
    assert {row["tokens_after"] for row in result[:40]} == {10}
    assert {row["tokens_after"] for row in result[41:]} == {8}
    with pytest.raises(LookupError) as raised:
        list(cupel.fit_batches(log, 100, counter=words, on_error="raise"))
    assert raised.value.__notes__ == ["row 40"]


def test_the_interpreter_is_released() -> None:
    done = threading.Event()
    progress = 0

    def count() -> None:
        nonlocal progress
        while not done.is_set():
            progress += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    try:
        counter = threading.Thread(target=count)
        counter.start()
        before = progress
        # A busy machine may wake the other thread late: one run of many is enough.
        for _ in range(50):
            list(cupel.fit_batches(TABLE.slice(0, 20)))
            if progress > before:
                break
        after = progress
        done.set()
        counter.join()
    finally:
        sys.setswitchinterval(interval)
    assert after > before


PEAK = """
import itertools, resource, sys
sys.path.insert(0, {folder!r})
import cupel, pyarrow as pa
from request_log import rows, table
import warnings
warnings.simplefilter("ignore")

def source(count):
    log = rows(count)
    while chunk := list(itertools.islice(log, 200)):
        yield table(chunk)

def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

peaks = []
for count in (1_500, 6_000):
    for _ in cupel.fit_batches(source(count), request=True):
        pass
    peaks.append(megabytes())
print(*peaks)
"""


def test_memory_does_not_grow_with_the_log() -> None:
    """Four times as many requests: what one row costs would show as 30 MB and more."""
    script = PEAK.format(folder=str(Path(__file__).parent))
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    small, large = map(float, answer.stdout.split())
    assert large - small < 25, (small, large)
