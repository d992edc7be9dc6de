"""The arguments of functions as options of the command."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from cupel._cupel import Budget, Policy
from cupel._errors import InvalidInputError

PolicyLike: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Policy

BudgetLike: TypeAlias = int | str | Mapping[str, Any] | Budget


def text_of(value: object, path: str) -> str:
    """Returns a value as text for the command."""
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        message, help = "a lone surrogate is not text", 'decode bytes with errors="replace"'
        raise InvalidInputError(message, path=path, help=help) from None
    return text


def text_option(value: object, path: str) -> str:
    """Returns the text of an option."""
    if not isinstance(value, str):
        kind = type(value).__name__
        raise InvalidInputError(f"expected a string, got {kind}", path=path)
    return text_of(value, path)


def number_or_text(value: Any, path: str) -> str:
    """Returns an option that is a number of tokens or messages, or a string such as ``8k``."""
    if isinstance(value, str):
        return text_of(value, path)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        kind = type(value).__name__
        raise InvalidInputError(f"expected a number or a string, got {kind}", path=path)
    return str(operator.index(value))


def limits(budget: BudgetLike) -> list[str]:
    """Returns a budget as options of the command."""
    if isinstance(budget, Mapping):
        budget = Budget.from_dict(budget)
    if not isinstance(budget, Budget):
        return [f"--budget={number_or_text(budget, 'budget')}"]
    return [
        f"--budget={budget.max_tokens}",
        f"--target={budget.target_tokens}",
        f"--reserve={budget.output_reserve}",
        f"--margin={budget.estimation_safety_margin_percent}",
        *(f"--slot={kind}={tokens}" for kind, tokens in budget.reserved_slots.items()),
    ]


def pins(pin: str | int | Iterable[str | int]) -> str:
    """Returns pinned messages as a list of the command."""
    is_one = isinstance(pin, (str, bytes)) or not hasattr(pin, "__iter__")
    given: Iterable[Any] = [pin] if is_one else pin  # type: ignore[assignment]
    return ",".join(number_or_text(one, "pin") for one in given)


READERS = {
    "model": text_option,
    "query": text_option,
    "reserve": number_or_text,
    "shape": text_option,
    "encoding": text_option,
    "shorten": text_option,
    "marker": text_option,
    "max_result": number_or_text,
    "step": number_or_text,
}
"""Options with a value that several subcommands have, and what reads it."""
