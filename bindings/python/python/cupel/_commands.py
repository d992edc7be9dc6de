"""The questions about a chat or items: a function answers what its subcommand prints as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack, overload

from cupel import _cupel
from cupel._errors import InvalidInputError
from cupel._messages import as_input
from cupel._types import BudgetLike, CommandOptions, Counter, Messages, PolicyLike, SearchOptions
from cupel.types import (
    CompareAnswer,
    EncodingName,
    EvidenceReport,
    ExplainAnswer,
    ExplainOneAnswer,
    MinBudgetAnswer,
    ModelAnswer,
    ScorerName,
    SearchAnswer,
    SweepAnswer,
)

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


def _ask(question: str, data: Any, options: Mapping[str, Any], **parameters: Any) -> Any:
    chat = as_input(data, has_chat=options.get("at") is None)
    return _cupel.ask(question, chat, parameters, options)


@overload
def explain(
    data: Messages,
    budget: BudgetLike | None = None,
    *,
    policy: PolicyLike | None = None,
    item: None = None,
    **options: Unpack[CommandOptions],
) -> ExplainAnswer: ...
@overload
def explain(
    data: Messages,
    budget: BudgetLike | None = None,
    *,
    policy: PolicyLike | None = None,
    item: int,
    **options: Unpack[CommandOptions],
) -> ExplainOneAnswer: ...
def explain(
    data: Messages,
    budget: BudgetLike | None = None,
    *,
    policy: PolicyLike | None = None,
    item: int | None = None,
    **options: Unpack[CommandOptions],
) -> ExplainAnswer | ExplainOneAnswer:
    """Explains why each message or item is in or out, or everything about one.

    Args:
        data: A chat, a request, or a list of messages or items.
        budget: Tokens as ``8000`` or ``"8k"``, a share of the model's window as ``"50%"``, a dict
            or a :class:`Budget`. Default: as in :func:`fit`.
        policy: A preset, the path of a file, a dict or a :class:`Policy`. Default: ``"agent"`` for
            chats, ``"chat"`` for items.
        item: The position of one message or item, from 0. Default: all.
        options: ``query``, ``model``, ``reserve``, ``encoding``, ``shape``; ``target``, ``margin``
            and ``slot`` of the budget; ``factor`` on token counts; ``at``, the JSON pointer of the
            messages; and the settings of chats, as in :func:`fit`.

    >>> import cupel
    >>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
    >>> answer = cupel.explain(items, 50, policy="chat")
    >>> [(candidate["index"], candidate["included"]) for candidate in answer["candidates"]]
    [(1, True), (0, False)]
    >>> cupel.explain(items, 50, policy="chat", item=0)["included_at"]
    [[90, 131162]]
    """
    answer: ExplainAnswer | ExplainOneAnswer = _ask(
        "explain", data, options, budget=budget, policy=policy, item=item
    )
    return answer


def sweep(
    data: Messages,
    *,
    start: int | None = None,
    stop: int | None = None,
    policy: PolicyLike | None = None,
    **options: Unpack[CommandOptions],
) -> SweepAnswer:
    """Returns the window at every budget from ``start`` to ``stop``.

    For a chat these are the windows of ``fit``, whose default policy replays the cuts of each
    budget: a larger one may keep less (``monotone``), and with ``policy="single"`` it never does.

    Args:
        data: A chat, a request, or a list of messages or items.
        start: The smallest budget, from 0. Default: 0.
        stop: The largest budget. Default: the tokens of all messages or items.
        policy: As in :func:`explain`.
        options: As in :func:`explain`.

    >>> import cupel
    >>> items = [{"content": "a", "tokens": 10}, {"content": "b", "tokens": 20}]
    >>> answer = cupel.sweep(items, policy="chat")
    >>> [(step["from"], step["included"]) for step in answer["steps"]]
    [(0, 0), (10, 1), (30, 2)]
    """
    answer: SweepAnswer = _ask("sweep", data, options, start=start, stop=stop, policy=policy)
    return answer


def min_budget(
    data: Messages,
    *,
    item: int | None = None,
    ceiling: int | None = None,
    policy: PolicyLike | None = None,
    **options: Unpack[CommandOptions],
) -> MinBudgetAnswer:
    """Returns the smallest budget above which an item is always in, or that of every item.

    ``ranges`` has all budgets that include it, also smaller ones.

    Args:
        data: A chat, a request, or a list of messages or items.
        item: The position of one message or item, from 0. Default: all.
        ceiling: The largest budget to try. Default: the tokens of all messages or items.
        policy: As in :func:`explain`.
        options: As in :func:`explain`.

    >>> import cupel
    >>> items = [{"content": "a", "tokens": 10}, {"content": "b", "tokens": 20}]
    >>> cupel.min_budget(items, item=1, policy="chat")["items"][0]["min_budget"]
    30
    """
    answer: MinBudgetAnswer = _ask(
        "min_budget", data, options, item=item, ceiling=ceiling, policy=policy
    )
    return answer


def compare(
    data: Messages,
    budget: BudgetLike | None = None,
    *,
    policies: Iterable[PolicyLike],
    **options: Unpack[CommandOptions],
) -> CompareAnswer:
    """Compares the windows of two or more policies.

    Args:
        data: A chat, a request, or a list of messages or items.
        budget: As in :func:`explain`.
        policies: Presets, paths of files, dicts or policies; two or more.
        options: As in :func:`explain`.

    >>> import cupel
    >>> chat = [{"role": "user", "content": "Hello!"}, {"role": "assistant", "content": "Hi!"}]
    >>> answer = cupel.compare(chat, 100, policies=["agent", "newest"])
    >>> [variant["selected"] for variant in answer["variants"]]
    [[0, 1], [0, 1]]
    """
    answer: CompareAnswer = _ask("compare", data, options, budget=budget, policies=policies)
    return answer


def search(
    data: Messages,
    query: str,
    *,
    top: int = 5,
    scorer: ScorerName | None = None,
    policy: PolicyLike | None = None,
    **options: Unpack[SearchOptions],
) -> SearchAnswer:
    """Finds the messages or items that match a question best.

    Args:
        data: A chat, a request, or a list of messages or items.
        query: The question, not empty.
        top: The most passages, from 0. Default: 5.
        scorer: The scorer by name. Default: ``"conversation"``.
        policy: A policy whose scorer is taken instead.
        options: As in :func:`explain`, but for ``query``.

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
    answer: SearchAnswer = _ask(
        "search", data, options, query=query, top=top, scorer=scorer, policy=policy
    )
    return answer


def evaluate(
    transcripts: Iterable[Mapping[str, Any]] | Mapping[str, Any],
    *,
    policies: Iterable[PolicyLike],
    budgets: Iterable[int | str],
) -> EvidenceReport:
    """Measures how much of the evidence of questions is kept.

    Args:
        transcripts: Dicts with ``items`` and ``questions``; a question has a ``query`` and its
            ``evidence``, positions in ``items``.
        policies: Presets, paths of files, dicts or policies; the first is compared to the others.
        budgets: Tokens as ``1000`` or ``"1k"``, above 0.

    >>> import cupel
    >>> items = [{"content": "The keys are on the fridge."}, {"content": "It rains."}]
    >>> question = {"query": "Where are my keys?", "evidence": [0]}
    >>> report = cupel.evaluate(
    ...     {"items": items, "questions": [question]}, policies=["memory"], budgets=[8]
    ... )
    >>> [row["value"] for row in report["results"] if row["measure"] == "items_kept"]
    [1.0]
    """
    listed = [transcripts] if isinstance(transcripts, Mapping) else list(transcripts)
    return _cupel.evaluate(listed, policies, budgets)


def count(
    data: str | Messages,
    *,
    model: str | None = None,
    encoding: EncodingName | None = None,
    counter: Counter | None = None,
) -> int:
    """Counts the tokens of a text, a chat or a list of items, by default as ``o200k_base`` does.

    A chat is counted as its provider counts it: messages with their framing, tool calls and tool
    definitions.

    Args:
        data: A text, a chat, a request, or a list of messages or items.
        model: The model that counts. Default: the request's.
        encoding: The token counter, such as ``"o200k"``, instead of a model.
        counter: A function that counts the tokens of a text, instead of both.

    >>> import cupel
    >>> cupel.count("Hello, world!")
    4
    >>> cupel.count([{"role": "user", "content": "Hello!"}], model="gpt-4o")
    9
    """
    given = {"model": model, "encoding": encoding, "counter": counter}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        message = f"{names[0]} and {names[1]} exclude each other; remove one"
        raise InvalidInputError(message, path=names[1])
    if not names and isinstance(data, Mapping):
        named = data.get("model")
        model = named if isinstance(named, str) else None
    if isinstance(data, bytes) or not hasattr(data, "__iter__"):
        kind = type(data).__name__
        message = f"expected a text, a list of messages or items, or a request, got {kind}"
        raise InvalidInputError(message, path="data")
    return _cupel.count(data if isinstance(data, str) else as_input(data), model, encoding, counter)


def models() -> list[ModelAnswer]:
    """Returns the known models with their context windows and encodings.

    >>> import cupel
    >>> [model["window"] for model in cupel.models() if model["name"] == "gpt-4o"]
    [128000]
    """
    return _cupel.models()
