"""Compares `cupel.langchain.trim_messages` with langchain-core on 1,000 messages.

Both run in one process, in turns, by process CPU time. Prints the best of each and the ratio.
Needs the packages of tests/frameworks/langchain.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages import trim_messages as original
from langchain_openai import ChatOpenAI

from cupel.langchain import trim_messages

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from adapters import write_vocabularies

REPEATS = 15
CHAT: list[BaseMessage] = [SystemMessage("Be brief.")]
for number in range(1000):
    text = f"message number {number} " if number % 2 == 0 else f"answer {number} "
    CHAT.append((HumanMessage if number % 2 == 0 else AIMessage)(text * 20))


def cpu_milliseconds(run: Callable[[], Any]) -> float:
    start = time.process_time_ns()
    run()
    return (time.process_time_ns() - start) / 1e6


def compare(name: str, counter: Any, required: float) -> bool:
    options: dict[str, Any] = {"max_tokens": 30_000, "include_system": True, "start_on": "human"}
    runs = [
        lambda: original(CHAT, token_counter=counter, **options),
        lambda: trim_messages(CHAT, token_counter=counter, **options),
    ]
    assert runs[0]() == runs[1]()
    times = [[cpu_milliseconds(run) for run in runs] for _ in range(REPEATS)]
    theirs, ours = (min(column) for column in zip(*times, strict=True))
    ratio = float(theirs / ours)
    verdict = "ok" if ratio >= required else "too slow"
    print(
        f"{name:12} langchain-core {theirs:7.2f} ms, cupel {ours:6.2f} ms,"
        f" {ratio:5.1f} times faster (at least {required:.0f}): {verdict}"
    )
    return ratio >= required


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_vocabularies(Path(folder))
        os.environ["TIKTOKEN_CACHE_DIR"] = folder
        passed = [
            compare("approximate", "approximate", 5),
            compare("ChatOpenAI", ChatOpenAI(model="gpt-4o", api_key="x"), 20),
        ]
    sys.exit(not all(passed))
