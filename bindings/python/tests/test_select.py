"""`select`, `select_index`, `Pipeline` and reports."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cupel
from cupel.types import PresetName
from strategies import Json, items

PRESETS: list[PresetName] = ["chat", "rag", "code-review"]
POLICIES = st.sampled_from(PRESETS)
SMALL = items(st.integers(-2, 50)).map(lambda item: item | {"pinned": False})


@given(st.lists(SMALL, max_size=12), st.integers(0, 300), POLICIES)
def test_every_form_of_items_gives_the_same_window(
    documents: list[Json], budget: int, policy: PresetName
) -> None:
    expected = cupel.select(documents, budget, policy)
    made = [cupel.Item(**document) for document in documents]
    mixed: list[Json | cupel.Item] = [
        item if at % 2 else document
        for at, (document, item) in enumerate(zip(documents, made, strict=True))
    ]
    forms: list[Any] = [made, tuple(documents), mixed, cupel.Items(documents), cupel.Items(made)]
    for form in forms:
        selection = cupel.select(form, budget, policy)
        assert selection.indices == expected.indices
        assert selection.report.to_dict() == expected.report.to_dict()
        assert cupel.select_index(form, budget, policy) == expected.indices


@given(st.lists(SMALL, max_size=12), st.integers(0, 300), POLICIES)
def test_a_report_adds_up(documents: list[Json], budget: int, policy: PresetName) -> None:
    selection = cupel.select(documents, budget, policy)
    report = selection.report
    answer = report.to_dict()
    included = [entry["index"] for entry in answer["included"]]
    excluded = [entry["index"] for entry in answer["excluded"]]
    assert included == selection.indices
    assert sorted(included + excluded) == list(range(len(documents)))
    tokens = sum(documents[index]["tokens"] for index in included)
    assert report.tokens_used == selection.tokens == tokens <= budget
    assert [entry["index"] for entry in report.included] == included
    assert [entry["index"] for entry in report.excluded] == excluded
    assert answer["report"]["total_candidates"] == len(documents)


@given(st.lists(SMALL, max_size=12), st.integers(0, 300))
def test_kept_items_are_the_objects_of_the_caller(documents: list[Json], budget: int) -> None:
    selection = cupel.select(documents, budget)
    assert all(
        kept is documents[index]
        for kept, index in zip(selection.items, selection.indices, strict=True)
    )
    made = [cupel.Item(**document) for document in documents]
    assert all(any(kept is item for item in made) for kept in cupel.select(made, budget).items)


def test_a_dict_is_not_changed() -> None:
    documents: list[Json] = [{"content": "a", "tokens": 5, "tags": ["x"], "metadata": {"k": "v"}}]
    before = repr(documents)
    cupel.select(documents, 10)
    assert repr(documents) == before


ITEMS: list[Json] = [
    {
        "content": "You are a helpful assistant.",
        "tokens": 8,
        "kind": "SystemPrompt",
        "pinned": True,
    },
    {"content": "Where did I leave my keys?", "tokens": 7, "future_relevance_hint": 0.9},
    {"content": "The keys are on the fridge.", "tokens": 8, "future_relevance_hint": 0.8},
    {"content": "A long story about a fridge", "tokens": 60, "future_relevance_hint": 0.3},
]


def test_the_example_of_the_library_gives_its_window() -> None:
    # The example of the library's documentation, with its result.
    policy = cupel.Policy("reflexive", "greedy", "u-shaped")
    selection = cupel.select(ITEMS, 40, policy)
    assert selection.indices == [0, 2, 1]
    assert selection.tokens == 23
    [excluded] = selection.report.excluded
    assert excluded["index"] == 3
    assert excluded["reason"]["reason"] == "BudgetExceeded"


def test_a_pipeline_runs_a_policy_many_times() -> None:
    pipeline = cupel.Pipeline("reflexive", "greedy", "u-shaped")
    assert pipeline.run(ITEMS, 40).indices == [0, 2, 1]
    assert pipeline.run(ITEMS, 20).indices == [0, 1]
    policy = cupel.Policy("reflexive", "greedy", "u-shaped")
    assert cupel.Pipeline(policy).run(ITEMS, 40).indices == [0, 2, 1]


def test_a_query_is_for_policies_that_need_one() -> None:
    turns: list[Json] = [
        {"content": "The parcel is in Kassel.", "tokens": 10},
        {"content": "I like bicycles.", "tokens": 10},
    ]
    assert cupel.select_index(turns, 10, "memory", query="Where is the parcel?") == [0]
    assert cupel.select_index(turns, 10, "memory", query="bicycles") == [1]
    with pytest.raises(cupel.InvalidInputError, match="query"):
        cupel.select(turns, 10, "memory")
    policy = cupel.Policy.preset("memory").with_query("bicycles")
    assert cupel.select_index(turns, 10, policy) == [1]


def test_a_query_without_effect_is_a_warning() -> None:
    text = "query= has no effect: no scorer of the policy chat reads it"
    with pytest.warns(cupel.CupelWarning, match=text) as warned:
        cupel.select(ITEMS, 40, query="keys")
    assert warned[0].filename == __file__
    with pytest.warns(cupel.CupelWarning, match=text):
        cupel.select_index(ITEMS, 40, query="keys")
    with pytest.warns(cupel.CupelWarning, match="no effect") as warned:
        cupel.Pipeline("recency").run(ITEMS, 40, query="keys")
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cupel.select(ITEMS, 40, "memory", query="keys")


def test_items_without_timestamps_are_a_warning_for_policies_that_read_them() -> None:
    untimed: list[Json] = [{"content": str(at), "tokens": 10} for at in range(8)]
    table = pa.table({"request_id": [1] * 8, "content": list("abcdefgh"), "tokens": [10] * 8})
    calls: list[Callable[[], object]] = [
        lambda: cupel.select(untimed, 35),
        lambda: cupel.select_index(untimed, 35, "newest"),
        lambda: cupel.select_batches(table, 35),
        lambda: cupel.explain(untimed, 35),
    ]
    for call in calls:
        with pytest.warns(cupel.CupelWarning, match="no item has a timestamp") as warned:
            call()
        assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cupel.select(untimed, 80)
        cupel.select(untimed, 35, "rag")
        cupel.select([{**untimed[0], "timestamp": "2026-03-02T09:00:00Z"}, *untimed], 35)


def test_a_selection_is_a_sequence_of_the_selected_items() -> None:
    selection = cupel.select(ITEMS, 40, cupel.Policy("reflexive", "greedy", "u-shaped"))
    assert isinstance(selection, Sequence)
    assert selection[0] is ITEMS[0] and selection[-1] is ITEMS[1]
    assert selection[1:] == [ITEMS[2], ITEMS[1]]
    assert list(reversed(selection)) == [ITEMS[1], ITEMS[2], ITEMS[0]]
    assert ITEMS[1] in selection and ITEMS[3] not in selection
    assert selection.index(ITEMS[1]) == 2
    assert selection.count(ITEMS[3]) == 0
    with pytest.raises(IndexError):
        selection[3]
    prebuilt = cupel.select(cupel.Items(ITEMS), 40, "rag")
    assert prebuilt[0] == cupel.Item(**ITEMS[0])


def test_a_report_is_not_iterable() -> None:
    report: Any = cupel.select(ITEMS, 40).report
    with pytest.raises(TypeError, match="'cupel.Report' object is not iterable"):
        iter(report)


def hinted(hints: list[float], policy: Any) -> tuple[list[int], list[str]]:
    """Returns which two items are kept, and the warnings."""
    items = [
        {"content": f"document {i}", "tokens": 10, "future_relevance_hint": hint}
        for i, hint in enumerate(hints)
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept = cupel.select(items, 20, policy).indices
    return sorted(kept), [str(it.message) for it in caught if "hint" in str(it.message)]


@pytest.mark.parametrize("policy", ["rag", cupel.Policy("reflexive", "greedy")], ids=str)
def test_a_hint_out_of_range_is_a_warning(policy: Any) -> None:
    assert hinted([0.1, 0.9, 0.5, 1.0], policy) == ([1, 3], [])
    for hints, first, count in [
        ([1.2, 12.3, 5.0, 7.7], "items[0] has 1.2", "3 more"),
        ([-5.0, -1.0, -3.0, -0.5], "items[0] has -5", "3 more"),
        ([0.2, 0.9, 12.0, float("inf")], "items[2] has 12.0", "1 more"),
    ]:
        _, [text] = hinted(hints, policy)
        assert text.startswith("a future_relevance_hint counts from 0 to 1, ")
        assert first in text and f"(and {count})" in text
    _, [text] = hinted([0.2, float("nan"), 0.1, 0.3], policy)
    assert "items[1] has NaN:" in text


def test_a_hint_that_no_scorer_reads_may_have_any_value() -> None:
    assert hinted([1.2, 12.3, 5.0, 7.7], cupel.Policy("priority"))[1] == []


def test_an_answer_that_cannot_be_pickled_says_what_can() -> None:
    selection = cupel.select(ITEMS, 40)
    for answer, advice in [
        (selection, r"selection\.report\.to_dict\(\)"),
        (selection.report, r"report\.to_dict\(\)"),
    ]:
        with pytest.raises(TypeError, match=f"cannot be pickled; pickle .*{advice}"):
            pickle.dumps(answer)


def test_an_empty_list_gives_an_empty_window() -> None:
    selection = cupel.select(list[Json](), 10)
    assert selection.items == []
    assert selection.indices == []
    assert selection.tokens == 0


def test_items_may_come_from_any_iterable() -> None:
    assert cupel.select_index(iter(ITEMS), 40, "rag") == cupel.select_index(ITEMS, 40, "rag")


def test_a_report_is_an_arrow_table() -> None:
    import pyarrow as pa

    report = cupel.select(ITEMS, 40, cupel.Policy("reflexive", "greedy", "u-shaped")).report
    table = pa.table(report)
    assert table.column_names[:3] == ["index", "rank", "score"]
    rows = sorted(table.to_pylist(), key=lambda row: row["index"])
    assert [row["status"] for row in rows] == ["included"] * 3 + ["excluded"]
    assert [row["position"] for row in rows] == [0, 2, 1, None]
    assert [row["tokens"] for row in rows] == [8, 7, 8, 60]
    assert rows[3]["reason"] == "BudgetExceeded"
    assert pa.table(report.to_arrow()).equals(table)


def test_a_report_is_a_page() -> None:
    report = cupel.select(ITEMS, 40, "rag").report
    page = report.to_html()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "A long story about a fridge" in page
    # A notebook shows the whole page in a frame of its own, so that its styles stay inside.
    inline = report._repr_html_()
    assert inline.startswith("<iframe") and "srcdoc=" in inline
