"""The exceptions of the package."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_logger = logging.getLogger("cupel")
# A library leaves it to the program where its log goes: without this, Python prints warnings.
_logger.addHandler(logging.NullHandler())


class CupelWarning(UserWarning):
    """A setting without effect, or a guess such as an estimated token count.

    >>> import cupel, warnings
    >>> chat = [{"role": "user", "content": "Hello!"}]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     fitted = cupel.fit(chat, 100, query="Hello?")
    >>> caught[0].category
    <class 'cupel.CupelWarning'>
    """


_held: ContextVar[list[str] | None] = ContextVar("cupel_held_warnings", default=None)


@contextmanager
def held_warnings() -> Iterator[list[str]]:
    """Collects the texts of warnings instead of warning, also in threads that copy the context."""
    texts: list[str] = []
    token = _held.set(texts)
    try:
        yield texts
    finally:
        _held.reset(token)


def warn(text: str) -> None:
    """Warns at the line outside of this package that made the call."""
    held = _held.get()
    if held is not None:
        held.append(text)
        return
    _logger.warning("%s", text)
    # A stream may be read by a thread that runs no Python code: it has no line.
    level, frame = 2, sys._getframe().f_back
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == "cupel":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, CupelWarning, stacklevel=level)


class CupelError(Exception):
    """The base of all errors of this package.

    Attributes:
        message: What is wrong.
        path: The value at fault, such as ``items[3].tokens``, or None.
        details: What the message sums up, one line each.
        help: How to fix it, or None.
        code: The name of the engine's error, such as ``"PinnedExceedsBudget"``, or None.
        cause: The engine's own text, if a constructor refused a value, or None.
        exit_code: The exit status of the command for this error, from 1 to 3.
        file, line, column: The place in a file, if one was read, or None. Lines and columns count
            from 1.

    >>> import cupel
    >>> try:
    ...     cupel.fit([{"role": "user", "content": "Hello!"}], "8,000")
    ... except cupel.CupelError as error:
    ...     error.path, error.exit_code
    ('budget', 2)
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        details: tuple[str, ...] = (),
        help: str | None = None,
        code: str | None = None,
        cause: str | None = None,
        exit_code: int = 2,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.details = details
        self.help = help
        self.code = code
        self.cause = cause
        self.exit_code = exit_code
        self.file = file
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        if self.file:
            at = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
            place = f"{at}: {place}"
        lines = [place + self.message, *(f"  {detail}" for detail in self.details)]
        if self.help:
            lines.append(f"help: {self.help}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.message, self.__dict__.copy())


class InvalidInputError(CupelError, ValueError):
    """An argument is invalid. It is a ``ValueError`` too.

    >>> import cupel
    >>> try:
    ...     cupel.fit([{"role": "user", "content": "Hello!"}], policy="newset")  # type: ignore
    ... except cupel.InvalidInputError as error:
    ...     error.help
    'did you mean `newest`? `cupel.presets()` shows all presets'
    """


class OverBudgetError(CupelError):
    """The mandatory messages or pinned items do not fit the budget.

    >>> import cupel
    >>> try:
    ...     cupel.select([{"content": "a", "tokens": 73, "pinned": True}], 50)
    ... except cupel.OverBudgetError as error:
    ...     error.help
    'raise the budget by 23 tokens or unpin items'
    """


class InternalError(CupelError):
    """An internal error; please report it.

    >>> import cupel
    >>> issubclass(cupel.InternalError, cupel.CupelError)
    True
    """


def _restore(kind: type[CupelError], message: str, state: dict[str, Any]) -> CupelError:
    error = kind(message)
    error.__dict__.update(state)
    return error
