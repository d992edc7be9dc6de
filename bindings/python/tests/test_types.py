"""The types that callers see. mypy and pyright check this file, and the values are compared at run
time with what the types say."""

from __future__ import annotations

import json
import pickle
import typing
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypedDict, assert_type, get_args, get_origin, is_typeddict

import pytest
from openai.types.chat import ChatCompletionMessageParam

import cupel
from command import ROOT, run
from cupel import types
from cupel._types import ExcludedEntry, FitReport, IncludedEntry

SESSION: dict[str, Any] = json.loads((ROOT / "examples/agent-session.json").read_text())
ITEMS: list[dict[str, Any]] = [
    {"content": "old", "tokens": 60},
    {"content": "new", "tokens": 30},
]


class Request(TypedDict):
    """A request of a caller."""

    model: str
    messages: list[dict[str, Any]]


def test_the_request_has_the_type_of_the_caller() -> None:
    request: Request = {"model": "gpt-4o", "messages": SESSION["messages"]}
    fitted = cupel.fit(request, "2k")
    assert_type(fitted.request, Request)
    assert fitted.request["model"] == "gpt-4o" and type(fitted.request) is dict
    assert_type(cupel.fit(SESSION, "2k").request, dict[str, Any])
    ordered: OrderedDict[str, Any] = OrderedDict(SESSION)
    again = cupel.fit(ordered, "2k").request
    assert_type(again, OrderedDict[str, Any])
    assert type(again) is OrderedDict and list(again) == list(SESSION)
    assert ordered == SESSION
    fitter = cupel.Fitter("2k").fit(request)
    assert_type(fitter.request, Request)
    assert fitter.request == fitted.request


def test_messages_alone_have_no_request() -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hi!"}]
    fitted = cupel.fit(messages, 100)
    assert_type(fitted.request, None)
    assert_type(fitted.messages, list[ChatCompletionMessageParam])
    assert fitted.request is None


def test_a_generator_of_messages_is_accepted() -> None:
    def generated() -> Iterator[dict[str, str]]:
        yield {"role": "user", "content": "Hi!"}

    fitted = cupel.fit(generated(), 100, tools=iter([]))
    assert_type(fitted, cupel.Fitted[dict[str, str], None])
    assert fitted.messages == list(generated())
    expected = cupel.count(list(generated()))
    assert cupel.count(generated()) == expected
    assert cupel.explain(generated(), 100)["tokens_used"] == expected
    assert cupel.sweep(generated())["steps"] and cupel.min_budget(generated())["items"]
    assert cupel.search(generated(), "Hi")["passages"][0]["index"] == 0
    compared = cupel.compare(generated(), 100, policies=(it for it in ("agent", "newest")))
    assert len(compared["variants"]) == 2
    assert cupel.select_index((item for item in ITEMS), 50) == [1]
    question = {"query": "new?", "evidence": [1]}
    transcripts = ({"items": ITEMS, "questions": [question]} for _ in range(2))
    presets: list[types.PresetName] = ["chat"]
    report = cupel.evaluate(transcripts, policies=iter(presets), budgets=(it for it in [50]))
    assert report["transcripts"] == 2


def test_an_annotation_may_leave_the_request_out() -> None:
    fitted: cupel.Fitted[dict[str, Any]] = cupel.fit(SESSION, "2k")
    windows: list[cupel.Fitted[Any]] = [fitted, cupel.fit(SESSION["messages"], "2k")]
    assert [window.request is None for window in windows] == [False, True]
    # Frameworks read annotations at run time.
    assert get_args(cupel.Fitted[str]) == (str,)
    hints = typing.get_type_hints(cupel.fit)
    assert get_origin(hints["return"]) is cupel.Fitted
    assert typing.get_type_hints(cupel.Fitted)["dropped"] == list[types.DroppedEntry]
    for name in cupel.__all__:
        value = getattr(cupel, name)
        if getattr(value, "__module__", "").startswith("cupel._"):
            typing.get_type_hints(value)


def test_a_reason_is_told_by_its_key() -> None:
    [entry] = cupel.select(ITEMS, 50).report.excluded
    assert_type(entry, ExcludedEntry)
    reason = entry["reason"]
    assert reason["reason"] == "BudgetExceeded"
    assert_type(reason["item_tokens"], int)
    assert reason["item_tokens"] == 60


def test_reports_have_the_type_of_their_question() -> None:
    assert_type(cupel.fit(SESSION, "2k").report.to_dict(), FitReport)
    assert_type(cupel.select(ITEMS, 50).report.to_dict(), types.SelectAnswer)
    assert_type(cupel.explain(ITEMS, 50, policy="chat"), types.ExplainAnswer)
    assert_type(cupel.explain(ITEMS, 50, policy="chat", item=0), types.ExplainOneAnswer)
    assert_type(cupel.Pipeline("recency").run(cupel.Items(ITEMS), 50), cupel.Selection[cupel.Item])


def test_names_are_literals(tmp_path: Path) -> None:
    # Unused comments are errors: these are errors of mypy, and of pyright.
    wrong: list[Any] = [
        lambda: cupel.fit(ITEMS, 9, policy="newset"),  # type: ignore[call-overload]
        lambda: cupel.fit(ITEMS, 9, shape="opnai"),  # type: ignore[call-overload]
        lambda: cupel.fit(ITEMS, 9, encoding="o200"),  # type: ignore[call-overload]
        lambda: cupel.Policy("recency", "gredy"),  # type: ignore[arg-type]
        lambda: cupel.Policy("recency", "greedy", "u-shape"),  # type: ignore[arg-type]
        lambda: cupel.Policy("recency", overflow_strategy="trow"),  # type: ignore[arg-type]
    ]
    for call in wrong:
        with pytest.raises(cupel.InvalidInputError):
            call()
    path = tmp_path / "policy.json"
    path.write_text('{"scorer": {"type": "recency"}}')
    name: str = "newest"
    accepted: list[cupel.Policy | Path | dict[str, Any]] = [
        path,
        json.loads(path.read_text()),
        cupel.Policy.preset(name),
    ]
    for policy in accepted:
        assert cupel.fit(SESSION["messages"][-1:], 900, policy=policy).kept == [0]


def test_the_names_are_those_that_are_accepted() -> None:
    assert list(get_args(types.PresetName)) == cupel.presets()
    for encoding in get_args(types.EncodingName):
        # The vocabularies of other providers are a package of their own.
        if encoding.startswith(("o200k", "cl100k", "heuristic")):
            assert cupel.count("Hello!", encoding=encoding) > 0
        else:
            with pytest.raises(cupel.InvalidInputError, match="vocabulary .* is missing"):
                cupel.count("Hello!", encoding=encoding)
    for scorer in get_args(types.ScorerName):
        cupel.Scorer.from_dict(scorer)
    for slicer in get_args(types.SlicerName):
        cupel.Slicer.from_dict(slicer)
    for placer in get_args(types.PlacerName):
        cupel.Placer.from_dict(placer)
    for strategy in get_args(types.OverflowStrategy):
        cupel.Policy("recency", overflow_strategy=strategy)
    listed = run("fit", "--shape", "none").stderr
    assert all(shape in listed for shape in get_args(types.Shape))


def mismatches(value: Any, expected: Any, path: str) -> Iterator[str]:
    """Yields where a value is not of the type that a function states."""
    origin, arguments = get_origin(expected), get_args(expected)
    if expected is Any:
        return
    if is_typeddict(expected):
        hints = typing.get_type_hints(expected, include_extras=True)
        if not isinstance(value, dict):
            yield f"{path}: {value!r} is no {expected.__name__}"
            return
        for key in value.keys() - hints.keys():
            yield f"{path}: {expected.__name__} has no key {key}"
        for key, hint in hints.items():
            is_optional = get_origin(hint) is typing.NotRequired
            if key in value:
                inner = get_args(hint)[0] if is_optional else hint
                yield from mismatches(value[key], inner, f"{path}.{key}")
            elif not is_optional:
                yield f"{path}: {expected.__name__} lacks {key}"
    elif origin is Literal:
        if value not in arguments:
            yield f"{path}: {value!r} is none of {arguments}"
    elif origin is list:
        for position, element in enumerate(value):
            yield from mismatches(element, arguments[0], f"{path}[{position}]")
    elif origin is dict:
        for key, element in value.items():
            yield from mismatches(element, arguments[1], f"{path}[{key}]")
    elif arguments:  # a union
        cases = [list(mismatches(value, case, path)) for case in arguments]
        if all(cases):
            yield min(cases, key=len)[0]
    elif type(value) is not (type(None) if expected is None else expected):
        yield f"{path}: {value!r} is no {expected}"


QUESTION = {"items": ITEMS, "questions": [{"query": "new?", "evidence": [1]}]}
LONG = [{"role": "user", "content": f"{'word ' * 90}{i}"} for i in range(30)]
TOLD = [{**item, "future_relevance_hint": float("inf")} for item in ITEMS]

ANSWERS: list[tuple[Any, Any]] = [
    (cupel.fit(SESSION, "2k").report.to_dict(), FitReport),
    (cupel.Fitter("2k").fit(SESSION).report.to_dict(), FitReport),
    (cupel.fit(LONG, "1k", policy="single", marker="[{n}]").markers, list[types.Marker]),
    (cupel.fit(SESSION, "2k").cache_breakpoints, list[types.CacheBreakpoint]),
    (cupel.fit(SESSION["messages"][3:4], "2k").warnings, list[types.Warning]),
    (cupel.select(ITEMS, 50, trace=True).report.to_dict(), types.SelectAnswer),
    (cupel.select(TOLD, 50, "rag").report.to_dict(), types.SelectAnswer),
    (cupel.select(ITEMS, 50).report.included, list[IncludedEntry]),
    (cupel.select(ITEMS, 50).report.excluded, list[ExcludedEntry]),
    (cupel.explain(SESSION, "2k"), types.ExplainAnswer),
    (cupel.explain(SESSION, "2k", item=5), types.ExplainOneAnswer),
    (cupel.explain(ITEMS, 50, policy="rag", item=0), types.ExplainOneAnswer),
    (cupel.sweep(SESSION, policy="single", start=900, stop=2000), types.SweepAnswer),
    (cupel.min_budget(SESSION, policy="single", item=4), types.MinBudgetAnswer),
    (cupel.compare(SESSION, "2k", policies=["agent", "newest"]), types.CompareAnswer),
    (cupel.search(SESSION, "test"), types.SearchAnswer),
    (cupel.evaluate(QUESTION, policies=["chat", "rag"], budgets=[50]), types.EvidenceReport),
    (cupel.models(), list[types.ModelAnswer]),
    (cupel.Item("a", 5, views=[{"content": "b", "tokens": 1}]).to_dict(), types.ContextItem),
    (cupel.Budget(5, reserved_slots={"Memory": 2}).to_dict(), types.ContextBudget),
]


@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
def test_a_result_is_what_its_type_says(answer: Any, expected: Any) -> None:
    assert answer
    assert list(mismatches(answer, expected, "answer")) == []


def test_a_wrong_result_would_be_found() -> None:
    answer: Any = cupel.fit(SESSION, "2k").report.to_dict()
    answer["kept"].append("5")
    answer["more"] = 1
    del answer["budget"]
    found = [text.split(":")[0] for text in mismatches(answer, FitReport, "answer")]
    assert sorted(found) == ["answer", "answer", "answer.kept[21]"]


def test_a_fitted_chat_with_a_request_can_be_pickled() -> None:
    fitted = cupel.fit(SESSION, "2k")
    assert pickle.loads(pickle.dumps(fitted)).request == fitted.request
