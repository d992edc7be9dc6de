"""The questions about a chat or items: a function answers what its subcommand prints as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from cupel import _cupel
from cupel._errors import InvalidInputError
from cupel._messages import as_input
from cupel._types import BudgetLike, CommandOptions, PolicyLike, SearchOptions

__all__ = [
    "compare",
    "count",
    "evaluate",
    "explain",
    "min_budget",
    "models",
    "search",
    "sweep",
]


def _ask(question: str, data: Any, options: Mapping[str, Any], **parameters: Any) -> dict[str, Any]:
    chat = as_input(data, has_chat=options.get("at") is None)
    return _cupel.ask(question, chat, parameters, options)


def explain(
    data: Any,
    budget: BudgetLike | None = None,
    *,
    policy: PolicyLike | None = None,
    item: int | None = None,
    **options: Unpack[CommandOptions],
) -> dict[str, Any]:
    """Explains why each message or item is in or out, or everything about one.

    ``data`` is a chat, a list of items or a request. ``options`` are
    :class:`CommandOptions`, such as ``query`` and ``reserve``.

    >>> import cupel
    >>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
    >>> answer = cupel.explain(items, 50, policy="chat")
    >>> [(candidate["index"], candidate["included"]) for candidate in answer["candidates"]]
    [(1, True), (0, False)]
    """
    return _ask("explain", data, options, budget=budget, policy=policy, item=item)


def sweep(
    data: Any,
    *,
    start: int | None = None,
    stop: int | None = None,
    policy: PolicyLike | None = None,
    **options: Unpack[CommandOptions],
) -> dict[str, Any]:
    """Returns the window at every budget from ``start`` to ``stop``.

    >>> import cupel
    >>> items = [{"content": "a", "tokens": 10}, {"content": "b", "tokens": 20}]
    >>> answer = cupel.sweep(items, policy="chat")
    >>> [(step["from"], step["included"]) for step in answer["steps"]]
    [(0, 0), (10, 1), (30, 2)]
    """
    return _ask("sweep", data, options, start=start, stop=stop, policy=policy)


def min_budget(
    data: Any,
    *,
    item: int | None = None,
    ceiling: int | None = None,
    policy: PolicyLike | None = None,
    **options: Unpack[CommandOptions],
) -> Any:
    """Returns the smallest budget above which an item is always in, or that of every item.

    >>> import cupel
    >>> items = [{"content": "a", "tokens": 10}, {"content": "b", "tokens": 20}]
    >>> cupel.min_budget(items, item=1, policy="chat")["items"][0]["min_budget"]
    30
    """
    return _ask("min_budget", data, options, item=item, ceiling=ceiling, policy=policy)


def compare(
    data: Any,
    budget: BudgetLike | None = None,
    *,
    policies: Sequence[PolicyLike],
    **options: Unpack[CommandOptions],
) -> dict[str, Any]:
    """Compares the windows of two or more policies.

    >>> import cupel
    >>> chat = [{"role": "user", "content": "Hello!"}, {"role": "assistant", "content": "Hi!"}]
    >>> answer = cupel.compare(chat, 100, policies=["agent", "newest"])
    >>> [variant["selected"] for variant in answer["variants"]]
    [[0, 1], [0, 1]]
    """
    return _ask("compare", data, options, budget=budget, policies=policies)


def search(
    data: Any,
    query: str,
    *,
    top: int = 5,
    scorer: str | None = None,
    policy: PolicyLike | None = None,
    **options: Unpack[SearchOptions],
) -> dict[str, Any]:
    """Finds the messages or items that match a question best.

    >>> import cupel
    >>> items = [{"content": "The keys are on the fridge."}, {"content": "It rains."}]
    >>> cupel.search(items, "Where are my keys?")["passages"][0]["index"]
    0
    """
    if not isinstance(query, str) or not query:
        got = repr(query) if query == "" else type(query).__name__
        raise InvalidInputError(f"expected a text to search for, got {got}", path="query")
    if scorer is not None and policy is not None:
        message = "scorer and policy exclude each other; remove one"
        raise InvalidInputError(message, path="scorer")
    return _ask("search", data, options, query=query, top=top, scorer=scorer, policy=policy)


def evaluate(
    transcripts: Iterable[Mapping[str, Any]] | Mapping[str, Any],
    *,
    policies: Sequence[PolicyLike],
    budgets: Sequence[int | str],
) -> dict[str, Any]:
    """Measures how much of the evidence of questions is kept.

    A transcript is ``{"items": [...], "questions": [{"query": "...", "evidence": [3, 4]}]}``;
    ``evidence`` has positions in ``items``.
    """
    listed = [transcripts] if isinstance(transcripts, Mapping) else list(transcripts)
    return _cupel.evaluate(listed, policies, budgets)


def count(data: Any, *, model: str | None = None, encoding: str | None = None) -> int:
    """Counts the tokens of a text, a chat or a list of items, by default as ``o200k_base`` does.

    A chat is counted as its provider counts it: messages with their framing, tool calls and tool
    definitions.

    >>> import cupel
    >>> cupel.count("Hello, world!")
    4
    >>> cupel.count([{"role": "user", "content": "Hello!"}], model="gpt-4o")
    9
    """
    if model is not None and encoding is not None:
        message = "model and encoding exclude each other; remove one"
        raise InvalidInputError(message, path="encoding")
    if encoding is None and model is None and isinstance(data, Mapping):
        named = data.get("model")
        model = named if isinstance(named, str) else None
    if isinstance(data, bytes) or not hasattr(data, "__iter__"):
        kind = type(data).__name__
        message = f"expected a text, a list of messages or items, or a request, got {kind}"
        raise InvalidInputError(message, path="data")
    return _cupel.count(data if isinstance(data, str) else as_input(data), model, encoding)


def models() -> list[dict[str, Any]]:
    """Returns the known models with their context windows and encodings."""
    return _cupel.models()
