"""The package and the command give the same answers to random requests."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import cupel
import generate
from command import run

REQUESTS = 1_000
CHATS_PER_BUDGET = 40


def batch(lines: list[Any], folder: Path, *arguments: str) -> list[Any]:
    """Returns the command's answer to each line."""
    questions = folder / "questions.jsonl"
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    ran = run("--json", "batch", str(questions), *arguments)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(lines), ran.stderr
    return answers


def failure(error: cupel.CupelError) -> Any:
    """Returns what the command writes about an error, without the place in its file."""
    return {"message": error.message, "exit_code": error.exit_code, "help": error.help}


def without_place(answer: Any) -> Any:
    """Returns the error of an answer without the place in the file of the batch."""
    return {key: answer["error"].get(key) for key in ("message", "exit_code", "help")}


def test_the_command_and_select_agree_on_random_requests(tmp_path: Path) -> None:
    rng = random.Random(14)
    requests = [generate.request(rng) for _ in range(REQUESTS)]
    answered = 0
    for request, expected in zip(requests, batch(requests, tmp_path), strict=True):
        try:
            selection = cupel.select(
                request["items"], request["budget"], request["policy"], trace=True
            )
        except cupel.CupelError as error:
            assert failure(error) == without_place(expected), request
            continue
        assert "error" not in expected, request
        answered += 1
        found = selection.report.to_dict()
        for event in found["report"]["events"]:
            event["duration_ms"] = 0.0
        assert found == expected, request
        indices = [entry["index"] for entry in expected["selected"]]
        assert selection.indices == indices
        assert all(
            kept is request["items"][index]
            for kept, index in zip(selection.items, indices, strict=True)
        )
        assert cupel.select_index(request["items"], request["budget"], request["policy"]) == indices
    # Both outcomes occur often.
    assert REQUESTS * 0.5 < answered < REQUESTS * 0.95


@pytest.mark.parametrize("budget", ["60", "150", "300", "700", "2k"])
def test_the_command_and_fit_agree_on_random_chats(budget: str, tmp_path: Path) -> None:
    rng = random.Random(int(budget.replace("k", "000")))
    chats = [generate.chat(rng) for _ in range(CHATS_PER_BUDGET)]
    for chat, expected in zip(chats, batch(chats, tmp_path, "--budget", budget), strict=True):
        try:
            fitted = cupel.fit(chat, budget)
        except cupel.CupelError as error:
            assert failure(error) == without_place(expected)
            continue
        assert "error" not in expected
        assert fitted.request == expected["chat"]
        assert fitted.messages == expected["chat"]["messages"]
        for name in (
            "kept",
            "dropped",
            "shortened",
            "markers",
            "warnings",
            "cache_breakpoints",
            "tokens_before",
            "tokens_after",
            "budget",
            "shape",
            "counter",
            "estimated",
        ):
            assert getattr(fitted, name) == expected[name], name
