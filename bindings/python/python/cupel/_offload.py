"""Work that leaves the event loop if it would block it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cupel._errors import held_warnings, warn

T = TypeVar("T")

THREAD_ABOVE = 50_000
"""Characters of a chat above which it is fitted in a thread. A thread costs 0.1 ms and a chat of
this size some 5 ms, the time after which the interpreter lets another thread run as well."""

_PER_VALUE = 16
"""What a value counts besides its characters, so that many short messages are work too."""


def is_large(data: Any) -> bool:
    """Returns whether a chat has more than `THREAD_ABOVE` characters. Stops counting there."""
    left = THREAD_ABOVE
    values = [data]
    while values and left >= 0:
        value = values.pop()
        left -= _PER_VALUE
        if isinstance(value, (str, bytes)):
            left -= len(value)
        elif isinstance(value, Mapping):
            values.extend(value.values())
        elif isinstance(value, (list, tuple)):
            values.extend(value)
        elif hasattr(value, "__dict__") and not isinstance(value, type):
            values.extend(vars(value).values())  # a message of a framework
    return left < 0


async def offload(data: Any, call: Callable[[], T]) -> T:
    """Returns the result of a call, which runs in a thread if its data is large."""
    if not is_large(data):
        return call()
    # The stack of a thread does not show who awaits it: the caller is warned from here.
    with held_warnings() as texts:
        result = await asyncio.to_thread(call)
    for text in texts:
        warn(text)
    return result
