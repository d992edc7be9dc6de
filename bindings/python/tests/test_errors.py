"""Errors have the texts and the exit codes of the command."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cupel
from command import ROOT, run
from strategies import Json

PINNED: list[Json] = [{"content": "a", "tokens": 73, "pinned": True}]


def test_the_classes_tell_the_exit_codes_apart() -> None:
    assert issubclass(cupel.InvalidInputError, (cupel.CupelError, ValueError))
    assert issubclass(cupel.InvalidInputError, ValueError)
    assert issubclass(cupel.OverBudgetError, cupel.CupelError)
    assert issubclass(cupel.InternalError, cupel.CupelError)


def test_an_error_over_budget_says_what_to_do() -> None:
    # The text and the advice of `cupel select` for the same request.
    with pytest.raises(cupel.OverBudgetError) as raised:
        cupel.select(PINNED, 50)
    error = raised.value
    assert error.message == "pinned tokens (73) exceed available budget (50)"
    assert error.help == "raise the budget by 23 tokens or unpin items"
    assert error.exit_code == 1
    assert error.code == "PinnedExceedsBudget"
    assert error.message in str(error) and error.help in str(error)


REQUESTS: list[tuple[str, Json]] = [
    ("pinned", {"items": PINNED, "budget": {"max_tokens": 50}}),
    (
        "policy",
        {"items": [], "budget": {"max_tokens": 50}, "policy": {"scorer": {"type": "recncy"}}},
    ),
    (
        "weight",
        {
            "items": [],
            "budget": {"max_tokens": 50},
            "policy": {
                "scorer": {
                    "type": "composite",
                    "entries": [{"scorer": {"type": "recency"}, "wieght": 1}],
                }
            },
        },
    ),
    ("budget", {"items": [], "budget": {"max_tokens": 10, "target_tokens": 11}}),
    ("content", {"items": [{"content": "", "tokens": 1}], "budget": {"max_tokens": 10}}),
]


@pytest.mark.parametrize(
    "request_", [request for _, request in REQUESTS], ids=[n for n, _ in REQUESTS]
)
def test_an_error_has_the_text_of_the_command(request_: Json) -> None:
    ran = run("--json", "select", "-", stdin=json.dumps(request_))
    expected = json.loads(ran.stderr)["error"]
    with pytest.raises(cupel.CupelError) as raised:
        cupel.select(request_["items"], request_["budget"], request_.get("policy", "chat"))
    error = raised.value
    assert error.message == expected["message"]
    assert error.exit_code == expected["exit_code"] == ran.returncode
    assert error.path == expected.get("path")
    assert error.help == expected.get("help")


def test_an_unknown_preset_has_the_text_of_the_command() -> None:
    ran = run("--json", "select", "examples/items.json", "--budget", "9", "--policy", "rga")
    expected = json.loads(ran.stderr)["error"]
    with pytest.raises(cupel.InvalidInputError) as raised:
        cupel.select([], 9, "rga")  # type: ignore[call-overload]
    assert raised.value.message == expected["message"]
    assert raised.value.help == "did you mean `rag`? `cupel.presets()` shows all presets"
    assert "did you mean `rag`? `cupel policy list` shows" in expected["help"]


def test_an_error_in_a_policy_file_names_its_place(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('\nscorer = { type = "recenc" }\n')
    calls: list[Callable[[], object]] = [
        lambda: cupel.Policy.from_file(file),
        lambda: cupel.select([], 9, file),
        lambda: cupel.fit(CHAT, 100, policy=file),
        lambda: cupel.explain(CHAT, 100, policy=file),
    ]
    for call in calls:
        with pytest.raises(cupel.InvalidInputError, match="unknown scorer") as raised:
            call()
        error = raised.value
        assert (error.file, error.line, error.path) == (str(file), 2, "scorer.type")
    with pytest.raises(cupel.InvalidInputError) as raised:
        cupel.fit([{"role": "user"}], 100)
    assert raised.value.file is None


def equal_scores(items: list[cupel.Item]) -> list[float]:
    return [1.0] * len(items)


CHAT: list[Json] = [{"role": "user", "content": "What is 2 + 2?"}]
# Type checkers find a wrong name; at run time it has any type.
TYPO: Any = "nevr"
# Calls with an invalid argument, with the text of the exception.
ARGUMENTS: list[tuple[Callable[[], object], str]] = [
    (lambda: cupel.fit(CHAT, "1,000"), "budget: invalid budget `1,000`: "),
    (lambda: cupel.select([], "50%"), "budget: invalid budget `50%`: "),
    (lambda: cupel.fit(CHAT, "50%"), 'budget="50%": a percentage needs a model'),
    (lambda: cupel.fit(CHAT, 100, reserve=200), "reserve=200 exceeds the budget of 100"),
    (lambda: cupel.fit(CHAT, 100, max_result=0), "max_result: expected at least 1 token, got 0"),
    (
        lambda: cupel.fit(CHAT, 100, policy="newest", keep_task=True),
        "keep_task= needs a policy with the slicer `ladder`",
    ),
    (lambda: cupel.fit(CHAT, 100, reserve=2_000), "reserve=2000 exceeds the budget of 100\nhelp: "),
    (lambda: cupel.fit(CHAT, 100, policy="newest", shorten="old"), "shorten= needs a policy with"),
    (lambda: cupel.fit(CHAT, 100, max_result="x"), "max_result: invalid number of tokens `x`: "),
    (lambda: cupel.fit(CHAT, 100, max_result=-1), "max_result: invalid number of tokens `-1`: "),
    (lambda: cupel.fit(CHAT, 100, shape=TYPO), "shape: "),
    (
        lambda: cupel.fit(CHAT, 100, tool_results={"wait": TYPO}),
        "tool_results: unknown name `nevr`; expected one of never, by_path, shorten_first, keep",
    ),
    (lambda: cupel.explain(PINNED, 100, shorten="old"), "shorten= applies to chats"),
    (lambda: cupel.explain(PINNED, 100, target=200), "target=200 exceeds the budget of 100"),
    (lambda: cupel.explain(PINNED, 100, item=-1), "item: expected a whole number from 0, got -1"),
    (lambda: cupel.explain(CHAT, 100, factor=0), "factor: "),
    (lambda: cupel.explain(CHAT), "missing budget: the chat names no model\nhelp: add budget="),
    (lambda: cupel.sweep(PINNED, start="x"), "start: invalid number of tokens `x`: "),  # type: ignore[arg-type]
    (lambda: cupel.sweep(PINNED, margin="5"), "margin: expected a number, got str"),  # type: ignore[arg-type]
    (lambda: cupel.sweep(PINNED, slot=[1]), "slot: expected a dict of kinds and tokens, got list"),  # type: ignore[arg-type]
    (lambda: cupel.sweep(PINNED, slot={"": 1}), "slot: "),
    (
        lambda: cupel.search(PINNED, "a", scorer="relevance", policy="rag"),
        "scorer: scorer and policy exclude each other; remove one",
    ),
    (
        lambda: cupel.select(PINNED, 100, "memory"),
        'the policy memory needs a query\nhelp: pass query="...',
    ),
    (
        lambda: cupel.sweep(PINNED, policy="memory"),
        'the policy memory needs a query\nhelp: add query="TEXT", or `query` in the request',
    ),
    (lambda: cupel.sweep(PINNED, start=9, stop=5), "start=9 is greater than stop=5"),
    (lambda: cupel.explain(PINNED, 5, item=7), "item=7 is out of range"),
    (lambda: cupel.search(PINNED, "a", scorer=TYPO), 'scorer="nevr": '),
    (
        lambda: cupel.compare(PINNED, 5, policies=["rag"]),
        'there is only one policy to compare\nhelp: name two or more: policies=["chat", "rag"]',
    ),
    (
        lambda: cupel.Policy(equal_scores).to_dict(),
        "policy.scorer: equal_scores cannot be written as data; only built-in strategies can",
    ),
    (lambda: cupel.evaluate({}, policies=[], budgets=[5]), "policies: expected one or more"),
    (lambda: cupel.evaluate({}, policies=["rag"], budgets=[]), "budgets: expected one or more"),
]


@pytest.mark.parametrize(("call", "text"), ARGUMENTS, ids=[text for _, text in ARGUMENTS])
def test_an_error_names_arguments_as_python_does(call: Callable[[], object], text: str) -> None:
    with pytest.raises(cupel.InvalidInputError) as raised:
        call()
    assert str(raised.value).startswith(text)
    assert "--" not in str(raised.value)


SURROGATE: Any = "\ud800"
TEXTS: list[tuple[str, Callable[[], object]]] = [
    ("data", lambda: cupel.count(SURROGATE)),
    ("model", lambda: cupel.count("a", model=SURROGATE)),
    ("query", lambda: cupel.search(PINNED, SURROGATE)),
    ("query", lambda: cupel.explain(PINNED, 100, query=SURROGATE)),
    ("policy", lambda: cupel.explain(PINNED, 100, policy=SURROGATE)),
    ("messages[0].content", lambda: cupel.fit([{"role": "user", "content": SURROGATE}], 9)),
    ("budget", lambda: cupel.fit(CHAT, SURROGATE)),
    ("marker", lambda: cupel.fit(CHAT, 9, marker=SURROGATE)),
    ("pin", lambda: cupel.fit(CHAT, 9, pin=[SURROGATE])),
    ("state", lambda: cupel.fit(CHAT, 9, state=SURROGATE)),
    ("state", lambda: cupel.Fitter(9, state=SURROGATE)),
    ("items[0].content", lambda: cupel.select([{"content": SURROGATE, "tokens": 1}], 9)),
    ("query", lambda: cupel.select(PINNED, 100, "memory", query=SURROGATE)),
    ("policy", lambda: cupel.select(PINNED, 100, SURROGATE)),
    ("budget", lambda: cupel.select(PINNED, SURROGATE)),
    ("scorer", lambda: cupel.Policy(SURROGATE)),
    ("name", lambda: cupel.Policy.preset(SURROGATE)),
]


@pytest.mark.parametrize(
    ("path", "call"), TEXTS, ids=[f"{n}-{p}" for n, (p, _) in enumerate(TEXTS)]
)
def test_a_lone_surrogate_is_refused_with_its_path(path: str, call: Callable[[], object]) -> None:
    with pytest.raises(cupel.InvalidInputError, match="lone surrogate") as raised:
        call()
    assert raised.value.path == path
    assert raised.value.help == 'decode bytes with errors="replace"'


def test_an_argument_of_another_type_is_named() -> None:
    values: list[Any] = [None, 5, b"text"]
    for value in values:
        with pytest.raises(cupel.InvalidInputError, match="^data: expected a text, a list of"):
            cupel.count(value)
        with pytest.raises(cupel.InvalidInputError, match="^query: expected a text to search for"):
            cupel.search(PINNED, value)
    with pytest.raises(cupel.InvalidInputError, match="^query: expected a text to search for"):
        cupel.search(PINNED, "")
    for value in values[:2]:
        with pytest.raises(cupel.InvalidInputError, match="^items: expected a list of items"):
            cupel.select(value, 9)


def test_a_chat_that_does_not_fit_lists_what_must_stay() -> None:
    session = json.loads((ROOT / "examples/agent-session.json").read_text(encoding="utf-8"))
    ran = run("--json", "fit", "examples/agent-session.json", "--budget", "100")
    expected = json.loads(ran.stderr)["error"]
    with pytest.raises(cupel.OverBudgetError) as raised:
        cupel.fit(session, 100)
    assert raised.value.message == expected["message"]
    assert list(raised.value.details) == expected["details"]
    assert raised.value.help == expected.get("help")


@pytest.mark.parametrize(
    "messages", [[{"role": "user"}], [{"role": "usr", "content": "x"}], "hi"], ids=str
)
def test_an_invalid_chat_is_refused(messages: Any) -> None:
    with pytest.raises(cupel.InvalidInputError):
        cupel.fit(messages, 100)


def test_errors_have_the_names_under_which_they_are_imported() -> None:
    names = ["CupelError", "CupelWarning", "InternalError", "InvalidInputError", "OverBudgetError"]
    for name in names:
        error = getattr(cupel, name)
        assert f"{error.__module__}.{error.__qualname__}" == f"cupel.{name}"
    with pytest.raises(cupel.OverBudgetError) as raised:
        cupel.select(PINNED, 50)
    shown = traceback.format_exception_only(raised.value)
    assert shown[0].startswith("cupel.OverBudgetError: ")


def test_an_error_can_be_pickled() -> None:
    import pickle

    with pytest.raises(cupel.OverBudgetError) as raised:
        cupel.select(PINNED, 50)
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is cupel.OverBudgetError
    assert str(again) == str(raised.value)
    assert again.exit_code == 1
