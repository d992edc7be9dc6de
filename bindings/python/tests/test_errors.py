"""Errors have the texts and the exit codes of the command."""

from __future__ import annotations

import json
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
        cupel.select([], 9, "rga")
    assert raised.value.message == expected["message"]
    assert raised.value.help == expected["help"]


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


def test_an_error_can_be_pickled() -> None:
    import pickle

    with pytest.raises(cupel.OverBudgetError) as raised:
        cupel.select(PINNED, 50)
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is cupel.OverBudgetError
    assert str(again) == str(raised.value)
    assert again.exit_code == 1
