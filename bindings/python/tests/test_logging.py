"""What is written to the logger `cupel`."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import warnings

import pytest

import cupel
from command import ROOT
from strategies import Json

SESSION: Json = json.loads((ROOT / "examples/agent-session.json").read_text(encoding="utf-8"))


def test_each_fit_is_one_line_with_its_figures(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="cupel"):
        fitted = cupel.fit(SESSION, "2k")
        cupel.Fitter("2k").fit(SESSION)
    assert [(it.name, it.levelname) for it in caplog.records] == [("cupel", "DEBUG")] * 2
    kept, short, out = len(fitted.kept), len(fitted.shortened), len(fitted.dropped)
    figures = (
        f"fit: {fitted.tokens_after} of {fitted.tokens_before} tokens, budget 2000, "
        f"{kept} kept, {short} shortened, {out} dropped, openai, "
    )
    for line in caplog.messages:
        assert re.fullmatch(re.escape(figures) + r"\d+\.\d ms", line), line


def test_what_is_warned_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    chat = [{"role": "user", "content": "Hello!"}]
    with pytest.warns(cupel.CupelWarning) as warned:
        cupel.fit(chat, 100, model="gpt-99")
    assert [it.levelname for it in caplog.records] == ["WARNING"]
    assert caplog.messages == [str(warned[0].message)]
    caplog.clear()
    # What a provider may reject.
    cupel.fit([*chat, {"role": "tool", "tool_call_id": "x", "content": "secret"}], 100)
    assert caplog.messages == ["fit: result_without_call: messages [1]"]


def test_texts_of_messages_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    secret = "the secret word"
    chat = [{"role": "user", "content": f"{secret} {number} " * 9} for number in range(30)]
    with caplog.at_level("DEBUG", logger="cupel"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cupel.fit(chat, 300, query=secret, model="gpt-99", policy="newest")
    assert caplog.messages and secret not in caplog.text


def test_a_disabled_logger_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **fields: object) -> None:
        raise AssertionError("called")

    monkeypatch.setattr(logging.getLogger("cupel"), "debug", fail)
    cupel.fit(SESSION, "2k")


def test_nothing_is_printed_by_the_package_itself() -> None:
    code = (
        "import logging, warnings, cupel; warnings.simplefilter('ignore');"
        "cupel.fit([{'role': 'user', 'content': 'a'}], 100, model='gpt-99');"
        "handlers = logging.getLogger('cupel').handlers;"
        "print([type(it).__name__ for it in handlers], logging.root.handlers)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("['NullHandler'] []\n", "")
