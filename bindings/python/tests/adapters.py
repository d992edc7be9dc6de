"""Checks that the tests of every framework share."""

from __future__ import annotations

import doctest
import hashlib
import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cupel

PAGE = Path(__file__).parents[3] / "docs/python-frameworks.md"
AGENTS = Path(__file__).parents[3] / "examples/agents"

# More than the 8,000 tokens of the examples.
OLD = "The sky over Rome is blue today. " * 2000
QUESTION = "What is the weather in Bonn?"


def write_vocabularies(folder: Path) -> None:
    """Fills a `TIKTOKEN_CACHE_DIR` from the crate tiktoken-rs: tiktoken downloads the files."""
    assets = next(iter(Path.home().glob(".cargo/registry/src/*/tiktoken-rs-*/assets")))
    for name in ("o200k_base.tiktoken", "cl100k_base.tiktoken"):
        url = f"https://openaipublic.blob.core.windows.net/encodings/{name}"
        shutil.copy(assets / name, folder / hashlib.sha1(url.encode()).hexdigest())


# A result that is worth shortening, in the histories of the tests.
LONG = "\n".join(f"line {number}: cloudy" for number in range(60))
# Nothing but the newest messages, as they are.
NEWEST: dict[str, Any] = {"policy": "single", "keep_task": False, "shorten": "off"}


def smallest_budget(run: Callable[[int], object]) -> int:
    """Returns the smallest budget with which a run does not raise `OverBudgetError`."""
    low, high = 1, 4000
    while low < high:
        middle = (low + high) // 2
        try:
            run(middle)
            high = middle
        except cupel.OverBudgetError:
            low = middle + 1
    return low


def run_agent(name: str) -> list[dict[str, int]]:
    """Runs an agent of examples/agents and returns what it printed of each call of its model."""
    path = AGENTS / f"{name}_agent.py"
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    calls = []
    # Some frameworks print more.
    *lines, answer = done.stdout.splitlines()
    for line in lines:
        if line.startswith("call "):
            found = re.fullmatch(
                r"call (\d+): (\d+) kept, (\d+) shortened, (\d+) dropped,"
                r" ([\d,]+) of ([\d,]+) tokens",
                line,
            )
            assert found, f"{line!r} in\n{done.stdout}"
            names = ("number", "kept", "shortened", "dropped", "after", "before")
            values = [int(value.replace(",", "")) for value in found.groups()]
            calls.append(dict(zip(names, values, strict=True)))
    # One call per day of the log, and the answer. A memory may be read more often.
    assert len(calls) >= 9
    assert [call["number"] for call in calls] == list(range(1, len(calls) + 1))
    assert all(call["after"] <= 4_000 for call in calls)
    assert calls[0]["dropped"] == calls[0]["shortened"] == 0
    assert calls[-1]["before"] > 6_000 and calls[-1]["shortened"]
    assert answer == "The disk was full on day 5."
    return calls


def run_example(section: str, names: dict[str, Any], block: int = 0) -> dict[str, Any]:
    """Runs a Python block of a section of the page with the given names and returns all names."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found, f"no section {section!r} in {PAGE}"
    blocks = re.findall(r"^```python\n(.*?)^```$", found[1], re.M | re.S)
    exec(compile(blocks[block], f"{PAGE.name}: {section}", "exec"), names)
    return names


def check_options(make: Callable[..., object], own: str = "on_fit") -> None:
    """Checks that an adapter refuses wrong options when it is made, not at its first call."""
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"budget": "8kk"}, cupel.InvalidInputError, "budget: invalid budget `8kk`"),
        ({"policy": "newset"}, cupel.InvalidInputError, "did you mean `newest`?"),
        ({"polcy": "agent"}, TypeError, "'polcy'; did you mean 'policy'?"),
        ({"shorten": "some"}, cupel.InvalidInputError, "unknown name `some`"),
        ({"on_fti": print}, TypeError, f"'on_fti'; did you mean '{own}'?"),
        ({"on_fit": "print"}, cupel.InvalidInputError, "on_fit: expected a function, got str"),
    ]
    for options, kind, text in wrong:
        with pytest.raises(kind, match=re.escape(text)):
            make(**{"budget": "8k", **options})
    make(budget="8k", policy="newest", on_fit=print)
    make(budget="50%")  # of a model that the first request names


def check_module(name: str) -> None:
    """Runs the examples in the docstrings of a module, and mypy with the types of its framework."""
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted and not results.failed
    mypy = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--module", name]
    checked = subprocess.run(mypy, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
