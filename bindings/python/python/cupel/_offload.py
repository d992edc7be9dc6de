"""Work that leaves the event loop if it would block it."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from cupel._errors import InvalidInputError, held_warnings, warn

# asyncio is imported where it runs: it takes longer than the rest of the package, and a program
# without an event loop has no use for it.
if TYPE_CHECKING:
    from concurrent.futures import Future

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


class _NeedsThread(Exception):
    """Ends a call on the thread of the event loop that has to be made in another one."""


class _Loop:
    """The event loop that waits for a call, which may be made in another thread."""

    def __init__(self) -> None:
        from asyncio import get_running_loop

        self._loop = get_running_loop()
        self._thread = threading.get_ident()
        self._pending: Future[Any] | None = None

    def is_blocked(self) -> bool:
        """Returns whether the event loop stands still until this returns."""
        return threading.get_ident() == self._thread

    def run(self, value: Awaitable[T]) -> T:
        """Returns what a value results in that is awaited in the event loop."""
        from asyncio import run_coroutine_threadsafe

        async def awaited() -> T:
            # A call that is made here is one of its own.
            _loop.set(None)
            return await value

        future = run_coroutine_threadsafe(awaited(), self._loop)
        self._pending = future
        return future.result()

    def cancel(self) -> None:
        if self._pending is not None:
            self._pending.cancel()


_loop: ContextVar[_Loop | None] = ContextVar("cupel_loop", default=None)


def leave_loop() -> None:
    """Moves a call of `offload` to a thread: it calls functions that may wait for a service."""
    loop = _loop.get()
    if loop is not None and loop.is_blocked():
        raise _NeedsThread


def resolved(value: Any, name: str) -> Any:
    """Returns the result of a function of the caller, awaited if it is that of an async one."""
    if not inspect.isawaitable(value):
        return value
    loop = _loop.get()
    if loop is not None:
        return loop.run(value)
    if inspect.iscoroutine(value):
        value.close()  # it would warn that it was never awaited
    help = "pass a function that is not async, or use afit"
    raise InvalidInputError("an async function needs an event loop", path=name, help=help)


async def offload(data: Any, call: Callable[[], T]) -> T:
    """Returns the result of a call, which runs in a thread if its data is large."""
    import asyncio

    loop = _Loop()
    token = _loop.set(loop)
    try:
        if not is_large(data):
            with contextlib.suppress(_NeedsThread):
                return call()
        # The stack of a thread does not show who awaits it: the caller is warned from here.
        with held_warnings() as texts:
            result = await asyncio.to_thread(call)
    except asyncio.CancelledError:
        loop.cancel()
        raise
    finally:
        _loop.reset(token)
    for text in texts:
        warn(text)
    return result
