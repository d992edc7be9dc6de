"""The questions of the command: a function answers what its subcommand prints with ``--json``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from cupel import _cupel
from cupel._cupel import Policy
from cupel._errors import InvalidInputError
from cupel._messages import as_input
from cupel._options import (
    READERS,
    BudgetLike,
    PolicyLike,
    limits,
    number_or_text,
    pins,
    text_of,
)


def _text(data: Any) -> str:
    """Returns chats, items and requests as the command reads them."""
    return _cupel.dumps(as_input(data), "data")


class SearchOptions(TypedDict, total=False):
    """The options of the command that :func:`search` takes."""

    at: str
    encoding: str
    factor: float
    keep_task: bool
    margin: float
    marker: str
    max_result: int | str
    model: str
    pin: str | int | Iterable[str | int]
    reserve: int | str
    shape: str
    shorten: Literal["off", "old", "all"]
    slot: Mapping[str, int]
    step: int | str
    strict: bool
    target: int | str


class CommandOptions(SearchOptions, total=False):
    """The options of the command that :func:`explain`, :func:`sweep` and others take."""

    query: str


def _options(own: Mapping[str, Any], options: Mapping[str, object] | None = None) -> list[str]:
    given = options or {}
    for name in given.keys() - CommandOptions.__annotations__.keys():
        raise TypeError(f"unexpected keyword argument {name!r}")
    arguments = []
    for name, value in {**own, **given}.items():
        if name == "keep_task" and value is False:
            arguments.append("--no-keep-task")
        if value is None or value is False:
            continue
        flag = f"--{name.replace('_', '-')}"
        if name == "budget" and not isinstance(value, (list, tuple)):
            arguments.extend(limits(value))
        elif name == "pin":
            arguments.append(f"{flag}={pins(value)}")
        elif name in READERS:
            arguments.append(f"{flag}={READERS[name](value, name)}")
        elif value is True:
            arguments.append(flag)
        elif isinstance(value, Mapping):
            slots = (f"{key}={entry}" for key, entry in value.items())
            arguments.extend(f"{flag}={text_of(slot, name)}" for slot in slots)
        elif isinstance(value, (list, tuple)):
            arguments.append(f"{flag}={text_of(','.join(map(str, value)), name)}")
        else:
            arguments.append(f"{flag}={text_of(value, name)}")
    return arguments


def _several(given: Any, name: str) -> list[Any]:
    """Returns the elements of a list with one or more of them."""
    is_one = isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__")
    if is_one:
        raise InvalidInputError(f"expected a list, got {type(given).__name__}", path=name)
    listed = list(given)
    if not listed:
        raise InvalidInputError("expected one or more", path=name)
    return listed


def _policies(given: Iterable[PolicyLike]) -> tuple[list[str], dict[str, Any]]:
    """Returns the names of policies, and those that are not names."""
    names: list[str] = []
    attached: dict[str, Any] = {}
    for policy in given:
        if isinstance(policy, (str, os.PathLike)):
            names.append(text_of(os.fspath(policy), "policy"))
            continue
        name = policy.name if isinstance(policy, Policy) else f"policy {len(names) + 1}"
        if name in names:
            name = f"{name} ({len(names) + 1})"
        names.append(name)
        attached[name] = policy
    return names, attached


def _ask(
    subcommand: str,
    data: Any,
    arguments: Iterable[str],
    *policies: PolicyLike | None,
    query: Iterable[str] = (),
) -> Any:
    """Runs a subcommand over data; ``query`` is what follows the name of the input."""
    names, attached = _policies(policy for policy in policies if policy is not None)
    options = [*arguments, *(f"--policy={name}" for name in names)]
    return _cupel.command([subcommand, *options, "--", "-", *query], _text(data), attached)


def explain(
    data: Any,
    budget: BudgetLike | None = None,
    *,
    policy: PolicyLike | None = None,
    item: int | None = None,
    **options: Unpack[CommandOptions],
) -> dict[str, Any]:
    """Explains why each message or item is in or out, or everything about one.

    ``data`` is a chat, a list of items or a request. ``options`` are those of ``cupel explain``,
    such as ``query`` and ``reserve``.

    >>> import cupel
    >>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
    >>> answer = cupel.explain(items, 50, policy="chat")
    >>> [(candidate["index"], candidate["included"]) for candidate in answer["candidates"]]
    [(1, True), (0, False)]
    """
    arguments = _options({"budget": budget, "item": item}, options)
    answer: dict[str, Any] = _ask("explain", data, arguments, policy)
    return answer


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
    arguments = _options({"from": start, "to": stop}, options)
    answer: dict[str, Any] = _ask("sweep", data, arguments, policy)
    return answer


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
    arguments = _options({"item": item, "ceiling": ceiling}, options)
    return _ask("min-budget", data, arguments, policy)


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
    arguments = _options({"budget": budget}, options)
    answer: dict[str, Any] = _ask("compare", data, arguments, *_several(policies, "policies"))
    return answer


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
        got = repr(query) if isinstance(query, str) else type(query).__name__
        raise InvalidInputError(f"expected a text to search for, got {got}", path="query")
    arguments = _options({"top": top, "scorer": scorer}, options)
    query = text_of(query, "query")
    answer: dict[str, Any] = _ask("search", data, arguments, policy, query=[query])
    return answer


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
    if not listed:
        raise InvalidInputError("there are no transcripts", path="transcripts")
    text = "\n".join(
        _cupel.dumps(transcript, f"transcripts[{position}]")
        for position, transcript in enumerate(listed)
    )
    sizes = [number_or_text(limit, "budgets") for limit in _several(budgets, "budgets")]
    for limit in sizes:
        if "," in limit:
            raise InvalidInputError(f"invalid budget `{limit}`: remove the comma", path="budgets")
    names, attached = _policies(_several(policies, "policies"))
    for position, name in enumerate(names):
        # The command splits its list at commas.
        if "," in name:
            names[position] = f"policy {position + 1}"
            attached[names[position]] = attached.pop(name, None) or Policy.from_file(name)
    arguments = _options({"policy": names, "budget": sizes})
    answer: dict[str, Any] = _cupel.command(["eval", *arguments, "-"], text, attached)
    return answer


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
    if model is None and encoding is None:
        if isinstance(data, Mapping) and isinstance(data.get("model"), str):
            model = data["model"]
        else:
            encoding = "o200k"
    arguments = _options({"model": model, "encoding": encoding})
    if isinstance(data, str):
        return sum(_cupel.count_texts([text_of(data, "data")], encoding, model))
    if isinstance(data, bytes) or not hasattr(data, "__iter__"):
        kind = type(data).__name__
        message = f"expected a text, a list of messages or items, or a request, got {kind}"
        raise InvalidInputError(message, path="data")
    answer = _cupel.command(["count", "-", *arguments], _text(data))
    (total,) = answer["total"].values()
    return int(total)


def models() -> list[dict[str, Any]]:
    """Returns the known models with their context windows and encodings."""
    answer: list[dict[str, Any]] = _cupel.command(["models"])
    return answer
