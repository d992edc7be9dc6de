"""`cupel.testing` and the pytest plugin."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

import cupel
from command import ROOT
from cupel.testing import Window, assert_window
from strategies import Json

pytest_plugins = ["pytester"]

SESSION: Json = json.loads((ROOT / "examples/agent-session.json").read_text(encoding="utf-8"))
FITTED = cupel.fit(SESSION, "2k", policy="single")
DROPPED = [entry["index"] for entry in FITTED.dropped]
SHORT = [entry["index"] for entry in FITTED.shortened]
WHOLE = [index for index in FITTED.kept if index not in SHORT]
SELECTION = cupel.select(
    [
        {"content": "old", "tokens": 60},
        {"content": "new", "tokens": 30},
        {"content": "big", "tokens": 51},
    ],
    50,
)


def test_what_holds_passes() -> None:
    window = assert_window(FITTED)
    assert DROPPED and SHORT and WHOLE
    for passed in (
        window.keeps(*FITTED.kept),
        window.keeps(0, -1),
        window.keeps_only(*FITTED.kept),
        window.keeps_whole(*WHOLE),
        window.drops(*DROPPED),
        window.drops(DROPPED[0], reason=FITTED.dropped[0]["reason"]["reason"]),
        window.shortens(*SHORT),
        window.within(2_000),
        window.within_budget(),
        window.is_valid(),
    ):
        assert passed is window
    assert_window(cupel.fit(SESSION, "1M")).is_unchanged().keeps_whole(*range(44))
    assert_window(SELECTION).keeps_only(1).drops(0, 2, reason="BudgetExceeded").within(30)


REPEATED = [{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "x", "content": "b"}]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda w: w.keeps(DROPPED[0]), f"expected message {DROPPED[0]} to stay"),
        (
            lambda w: w.keeps(0, *DROPPED[:2]),
            f"expected messages {DROPPED[0]}, {DROPPED[1]} to stay",
        ),
        (lambda w: w.keeps_whole(SHORT[0]), f"expected message {SHORT[0]} to stay as they are"),
        (lambda w: w.keeps_only(*FITTED.kept[1:]), "expected message 0 to be dropped"),
        (
            lambda w: w.keeps_only(*FITTED.kept, DROPPED[0]),
            f"expected message {DROPPED[0]} to stay",
        ),
        (lambda w: w.drops(0), "expected message 0 to be dropped"),
        (lambda w: w.drops(DROPPED[0], reason="Nope"), "to be dropped because of Nope"),
        (lambda w: w.shortens(WHOLE[0]), f"expected message {WHOLE[0]} to be shortened"),
        (lambda w: w.within(1_000), f"expected at most 1,000 tokens, got {FITTED.tokens_after:,}"),
        (lambda w: w.is_unchanged(), "to stay as they are"),
        (lambda w: w.reuses(0.5), "expected a window after another one of a Fitter"),
    ],
)
def test_what_does_not_hold_fails(check: Callable[[Window], object], message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check(assert_window(FITTED))
    assert message in str(caught.value).splitlines()[0]


def test_a_window_over_its_budget_or_with_warnings_fails() -> None:
    import dataclasses

    over = dataclasses.replace(FITTED, budget=FITTED.tokens_after - 1)
    with pytest.raises(AssertionError, match="expected at most"):
        assert_window(over).within_budget()
    with pytest.raises(
        AssertionError, match=r"expected no warnings, got result_without_call at \[1\]"
    ):
        assert_window(cupel.fit(REPEATED, 100)).is_valid()


def test_the_reuse_of_a_session_is_asserted() -> None:
    fitter = cupel.Fitter("1M")
    fitter.fit(SESSION["messages"][:10])
    changed = [{"role": "system", "content": "Another one."}, *SESSION["messages"][1:]]
    assert_window(fitter.fit(SESSION["messages"])).reuses(0.9)
    with pytest.raises(
        AssertionError, match="expected 90% of the last window to be reused, got 0%"
    ):
        assert_window(fitter.fit(changed)).reuses(0.9)


def test_a_failure_shows_the_place_and_the_reason() -> None:
    items = [{"content": str(n), "tokens": 60 if n == 4 else 5} for n in range(10)]
    with pytest.raises(AssertionError) as caught:
        assert_window(cupel.select(items, 50)).keeps(4)
    lines = str(caught.value).splitlines()
    assert lines[:4] == [
        "expected item 4 to stay",
        "",
        "9 of 10 items, 45 tokens",
        "  ...",
    ]
    assert [line[:6] for line in lines[4:9]] == ["     2", "     3", ">    4", "     5", "     6"]
    assert (
        "dropped" in lines[6] and "BudgetExceeded (available_tokens 5, item_tokens 60)" in lines[6]
    )
    assert lines[9] == "  ..." and len(lines) == 10


def test_misuse_is_no_failed_assertion() -> None:
    with pytest.raises(IndexError, match="position 44 of 44 messages"):
        assert_window(FITTED).keeps(44)
    with pytest.raises(TypeError, match=r"within_budget\(\) needs a window of fit"):
        assert_window(SELECTION).within_budget()
    with pytest.raises(cupel.InvalidInputError, match="expected a Fitted or a Selection, got list"):
        assert_window([])  # type: ignore[arg-type]


def test_the_fixture_needs_no_import(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import cupel

        CHAT = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]

        def test_passes(assert_window):
            assert_window(cupel.fit(CHAT, 100)).keeps(0, 1).within_budget()

        def test_fails(assert_window):
            assert_window(cupel.fit(CHAT, 100)).drops(1)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["E * AssertionError: expected message 1 to be dropped", "E * >    1  kept       user"]
    )
    # The trace ends in the test.
    result.stdout.no_fnmatch_line("*testing.py*")


def test_two_windows_have_a_readable_difference(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import cupel

        CHAT = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]

        def test_equal():
            assert cupel.fit(CHAT, 12, policy="newest") == cupel.fit(CHAT, 100, policy="newest")
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E * windows of cupel.fit are equal",
            "E * budget: 12, 100",
            "E * message 0 (user): dropped, kept",
        ]
    )


def test_the_plugin_does_not_import_the_package(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_none(request):
            assert request.config.pluginmanager.hasplugin("cupel")
            assert "pytest_cupel" in sys.modules
            assert not [name for name in sys.modules if name.partition(".")[0] == "cupel"]
            assert "a" == "a"
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)


def names_of(window: Any) -> str:
    return repr(window)


def test_a_window_shows_its_positions() -> None:
    assert names_of(assert_window(SELECTION)) == "<window: kept 1, dropped 0 2>"
    assert sys.modules["pytest_cupel"]
