"""The types of arguments that are not names."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

from cupel._chat_settings import ChatSettings
from cupel._cupel import Budget, Choice, Item, Placer, Policy, Scorer, Slicer
from cupel.types import (
    EncodingName,
    ExclusionReason,
    FitAnswer,
    InclusionReason,
    PlacerName,
    PresetName,
    ScorerName,
    SelectionReport,
    Shape,
    SlicerName,
)

PolicyLike: TypeAlias = PresetName | os.PathLike[str] | Mapping[str, Any] | Policy
"""A preset, the path of a policy document, its fields, or a policy. Strings are presets: a path is
a `pathlib.Path`, and ``Policy.preset(name)`` takes a name that is not known before."""

BudgetLike: TypeAlias = int | str | Mapping[str, Any] | Budget
"""Tokens as ``8000`` or ``"8k"``, a share of the model's window as ``"50%"``, or limits."""

Messages: TypeAlias = Mapping[str, Any] | Iterable[Any]
"""A request, or messages or items as dicts or objects."""

ScorerLike: TypeAlias = (
    ScorerName | Mapping[str, Any] | Scorer | Callable[[list[Item]], Sequence[float]]
)
SlicerLike: TypeAlias = (
    SlicerName
    | Mapping[str, Any]
    | Slicer
    | Callable[[list[tuple[Item, float]], Budget], Sequence[int] | Choice]
)
PlacerLike: TypeAlias = (
    PlacerName | Mapping[str, Any] | Placer | Callable[[list[tuple[Item, float]]], Sequence[int]]
)


Counter: TypeAlias = Callable[[str], int]
"""A token counter: a text to its number of tokens. Called once per text while it is in use, so the
same text has to have the same tokens."""

Summarizer: TypeAlias = Callable[[list[Any]], str | Awaitable[str]]
"""Dropped messages to a text in their place; async for the async functions."""


class ChatOptions(ChatSettings, total=False):
    """How an input is read and counted, and how a chat is trimmed. None is the default."""

    counter: Counter | None
    """A function that counts the tokens of a text."""
    encoding: EncodingName | None
    """The token counter. Default: the model's."""
    factor: float | None
    """What token counts are multiplied by, above 0. Default: 1."""
    margin: float | None
    """What is taken off the budget if tokens are estimates, in percent from 0 to 100."""
    model: str | None
    """The model that counts the tokens and has the window. Default: the request's."""
    reserve: int | str | None
    """Tokens for the answer, as ``1000``, ``"1k"`` or ``"10%"`` of the model's window."""
    shape: Shape | None
    """The format of the chat. Default: detected."""
    slot: Mapping[str, int] | None
    """Tokens that are kept free for items of a kind, by kind."""
    target: int | str | None
    """The most tokens of the window, at most the budget."""


class FitOptions(ChatOptions, total=False):
    """The options of :func:`fit`, for functions that pass them on.

    Keys:
        policy: A preset, the path of a file, a dict or a :class:`Policy`.
        query: The question that the window is to answer.
        model, encoding, counter, factor, shape: As in :func:`fit`.
        reserve, margin, target, slot: As in :func:`fit`.
        summarize, summary_tokens: As in :func:`fit`.
        pin, keep_task, max_result, shorten, marker, strict, replay: How a chat is trimmed; also
            ``cache_breakpoints`` and ``tool_results``. docs/policies.md has their values.

    >>> import cupel
    >>> from typing import Any, Unpack
    >>> def fitted_for_me(chat: list[Any], **options: Unpack[cupel.FitOptions]) -> list[Any]:
    ...     return cupel.fit(chat, "8k", **options).messages
    >>> fitted_for_me([{"role": "user", "content": "Hello!"}], policy="newest")
    [{'role': 'user', 'content': 'Hello!'}]
    """

    policy: PolicyLike | None
    """A preset, the path of a file, a dict or a :class:`Policy`. Default: ``"agent"``."""
    query: str | None
    """The question that the window is to answer. Default: the last user turn."""
    summarize: Summarizer | None
    """A function that writes a text in the place of dropped messages."""
    summary_tokens: int | str | None
    """The most tokens of such a text, from 1 to 100,000. Default: 200."""


class SearchOptions(ChatOptions, total=False):
    """The options of :func:`search`."""

    at: str | None
    """The JSON pointer of the messages in the data."""


class CommandOptions(SearchOptions, total=False):
    """The options of :func:`explain`, :func:`sweep`, :func:`min_budget` and :func:`compare`."""

    query: str | None
    """The question that the window is to answer. Default: the last user turn."""


class FitReport(FitAnswer):
    """What ``fitted.report.to_dict()`` returns."""

    report: SelectionReport


class IncludedEntry(TypedDict):
    """An entry of ``report.included``."""

    index: int
    score: float
    reason: InclusionReason


class ExcludedEntry(TypedDict):
    """An entry of ``report.excluded``."""

    index: int
    score: float
    reason: ExclusionReason


class FitSummary(TypedDict):
    """The sums over the requests of a log.

    Keys:
        rows, failed: The requests so far, and those that could not be fitted.
        out_of_order, forgotten: The requests whose reuse is unknown.
        tokens_before, tokens_after: Their tokens.
        reused_tokens, cost: What prompt caches have of them, and their price.
    """

    rows: int
    failed: int
    out_of_order: int
    forgotten: int
    tokens_before: int
    tokens_after: int
    reused_tokens: int
    cost: float
