"""`afit` and `Fitter.afit`: the windows of `fit`, without blocking the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from typing import Any

import pytest

import cupel
import long_chat
from cupel._offload import THREAD_ABOVE, is_large

LARGE = list(long_chat.requests(20))[-1]
SMALL = [
    {"role": "user", "content": "Hello!"},
    {"role": "assistant", "content": "Hi. " * 50},
    {"role": "user", "content": "And now?"},
]


def thread_of(messages: list[Any], budget: int) -> threading.Thread:
    """Returns the thread that a chat is fitted in, which runs the scorer."""
    found: list[threading.Thread] = []

    def score(items: list[cupel.Item]) -> list[float]:
        found.append(threading.current_thread())
        return [1.0] * len(items)

    asyncio.run(cupel.afit(messages, budget, policy=cupel.Policy(score)))
    return found[0]


def test_a_large_chat_is_fitted_in_a_thread_and_a_small_one_is_not() -> None:
    assert sum(len(str(m["content"])) for m in LARGE) > THREAD_ABOVE
    assert thread_of(LARGE, 4_000) is not threading.main_thread()
    assert thread_of(SMALL, 50) is threading.main_thread()


def test_the_size_of_a_chat_is_that_of_its_texts() -> None:
    text = "x" * THREAD_ABOVE
    assert is_large([{"role": "user", "content": text}])
    assert is_large({"messages": [{"content": [{"text": text}]}]})
    assert is_large([{"role": "user", "content": ""}] * THREAD_ABOVE)
    assert not is_large([{"role": "user", "content": text[: THREAD_ABOVE // 2]}])
    itself: dict[str, Any] = {}
    itself["self"] = itself
    assert is_large(itself)


def test_windows_are_those_of_fit() -> None:
    async def main() -> tuple[cupel.Fitted[Any], cupel.Fitted[Any], cupel.Fitted[Any]]:
        fitter = cupel.Fitter(budget="8k")
        first = await cupel.afit(LARGE, "8k", system="Be brief.")
        return first, await fitter.afit(LARGE[:-2]), await fitter.afit(LARGE)

    first, _, last = asyncio.run(main())
    expected = cupel.fit(LARGE, "8k", system="Be brief.")
    assert (first.kept, first.tokens_after) == (expected.kept, expected.tokens_after)
    fitter = cupel.Fitter(budget="8k")
    fitter.fit(LARGE[:-2])
    again = fitter.fit(LARGE)
    assert (last.kept, last.reuse) == (again.kept, again.reuse)
    assert last.reuse


def test_the_event_loop_goes_on() -> None:
    chat = [message for request in list(long_chat.requests(100))[-1:] for message in request] * 3

    async def main() -> tuple[float, int]:
        task = asyncio.create_task(cupel.afit(chat, "50k", shape="openai", policy="newest"))
        start, turns = time.perf_counter(), 0
        while not task.done():
            await asyncio.sleep(0)
            turns += 1
        await task
        return time.perf_counter() - start, turns

    seconds, turns = asyncio.run(main())
    # A blocked loop has two turns, however long the chat is.
    assert turns > 20, (seconds, turns)


def test_a_warning_names_the_caller() -> None:
    async def main() -> None:
        await cupel.afit(LARGE, "8k", model="an-unknown-model")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(main())
    assert [warning.filename for warning in caught] == [__file__]


def test_errors_are_raised() -> None:
    for chat in (SMALL, LARGE):
        with pytest.raises(cupel.OverBudgetError):
            asyncio.run(cupel.afit(chat, 5))
        with pytest.raises(TypeError, match="unexpected keyword argument 'polcy'"):
            asyncio.run(cupel.afit(chat, 500, polcy="agent"))  # type: ignore[call-overload]
