"""A chat of 100 turns, and how much of each window is the prefix of the one before.

The prompt cache of a provider bills a prefix that two requests have in common at a fraction of the
price. Each adapter is tested with this chat, because an adapter that rebuilds its messages, or that
fits each call anew, can lose what the policy saves.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import cupel

TURNS = 100
SYSTEM = "You review code."
BUDGET = "8k"
MODEL = "gpt-4o"  # all adapters count with its vocabulary
# The reuse that every adapter must reach. `cupel.Fitter` has 60 % on this chat.
LEAST = 0.55
_WORDS = ["def", "return", "class", "import", "value", "path", "x = 1", "for", "in", "None"]


def question(turn: int) -> str:
    return f"Please review module {turn}."


def answer(turn: int) -> str:
    return f"Module {turn} is fine."


def read(turn: int) -> str:
    """Returns what the tool `read` prints: some 1,500 tokens, different ones for each turn."""
    return _lines(turn, 120)


def search(turn: int) -> str:
    """Returns what the tool `search` prints: some 250 tokens."""
    return _lines(turn, 20)


def _lines(turn: int, count: int) -> str:
    chosen = random.Random(f"{turn}-{count}")
    lines = (" ".join(chosen.choices(_WORDS, k=8)) for _ in range(count))
    return "\n".join(f"module_{turn}.py:{number}: {line}" for number, line in enumerate(lines))


def call(turn: int, name: str) -> tuple[str, str, dict[str, Any]]:
    """Returns the id, the name and the arguments of one of the two calls of a turn."""
    arguments = {"path": f"module_{turn}.py"} if name == "read" else {}
    return f"{name}-{turn}", name, arguments


def tools() -> tuple[Callable[[str], str], Callable[[], str]]:
    """Returns the tools `read` and `search`. A framework calls each of them once per turn."""
    searches = iter(range(TURNS))

    def read_module(path: str) -> str:
        """Prints a module.

        Args:
            path: The path of the module.
        """
        return read(int(path.removeprefix("module_").removesuffix(".py")))

    def search_modules() -> str:
        """Prints where the module is used."""
        return search(next(searches))

    read_module.__name__, search_modules.__name__ = "read", "search"
    return read_module, search_modules


def requests(turns: int = TURNS) -> Iterator[list[dict[str, Any]]]:
    """Yields the messages of Chat Completions before each call of the model, two per turn."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
    for turn in range(turns):
        messages.append({"role": "user", "content": question(turn)})
        yield [*messages]
        calls = []
        for id, name, arguments in (call(turn, "read"), call(turn, "search")):
            function = {"name": name, "arguments": json.dumps(arguments)}
            calls.append({"id": id, "type": "function", "function": function})
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        for id, text in ((f"read-{turn}", read(turn)), (f"search-{turn}", search(turn))):
            messages.append({"role": "tool", "tool_call_id": id, "content": text})
        yield [*messages]
        messages.append({"role": "assistant", "content": answer(turn)})


class Reuse:
    """The tokens of all windows, and those of them that the window before starts with.

    Windows are compared by whole messages, which are given as text: JSON, or any other form that
    shows every character that the model gets.
    """

    def __init__(self) -> None:
        self.calls = self.tokens = self.reused = self.largest = 0
        self._last: list[str] = []

    def add(self, window: list[str]) -> None:
        tokens = [cupel.count(message, encoding="o200k") for message in window]
        same = 0
        for old, new in zip(self._last, window, strict=False):
            if old != new:
                break
            same += 1
        self.calls += 1
        self.tokens += sum(tokens)
        self.reused += sum(tokens[:same])
        self.largest = max(self.largest, sum(tokens))
        self._last = window

    @property
    def share(self) -> float:
        return self.reused / self.tokens

    def check(self, name: str, calls: int = 2 * TURNS) -> None:
        """Fails if an adapter reuses too little, and prints its row of the table."""
        print(f"\n{name:32} {self.calls:4} calls, {self.tokens:9,} tokens, {self.share:.1%} reused")
        assert self.calls == calls
        # The chat has some 180,000 tokens. As text, a message has up to twice its tokens.
        assert self.largest < 3 * 8_000
        assert self.share >= LEAST


def as_json(messages: list[Any]) -> list[str]:
    return [json.dumps(message, sort_keys=True, default=str) for message in messages]
