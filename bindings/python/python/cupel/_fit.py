"""Chats: ``fit``, ``Fitter`` and ``Fitted``."""

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field, fields
from functools import partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, Unpack, overload
from weakref import WeakKeyDictionary

from cupel import _cupel
from cupel._cupel import Report
from cupel._errors import InvalidInputError
from cupel._messages import (
    as_input,
    as_list,
    at,
    copied_fields,
    from_document,
    request_of,
    snapshot,
    with_list,
    with_mark,
    with_texts,
)
from cupel._offload import leave_loop, offload, resolved
from cupel._state import read_state, write_state
from cupel._types import BudgetLike, FitOptions, FitReport
from cupel.types import (
    CacheBreakpoint,
    DroppedEntry,
    Marker,
    Reuse,
    Shape,
    ShortenedEntry,
)
from cupel.types import Warning as ChatWarning

M = TypeVar("M")
# Not `Iterable`: a request is one too, of its keys.
MessageList: TypeAlias = Sequence[M] | Iterator[M] | ValuesView[M]
R = TypeVar("R", bound=Mapping[str, Any])
if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    R_co = TypeVarWithDefault("R_co", covariant=True, default=Mapping[str, Any] | None)
else:
    # Python 3.13 has defaults.
    R_co = TypeVar("R_co", covariant=True)

_logger = logging.getLogger("cupel")


@dataclass(frozen=True, slots=True, repr=False)
class Fitted(Generic[M, R_co]):
    """A chat that fits its budget: the result of :func:`fit`.

    ``Fitted[Message]`` is one of messages, ``Fitted[Message, Request]`` one of a whole request.

    Attributes:
        messages: The window: the caller's own objects, copies of those that are shortened or get
            the text of a marker, and new ones for other markers.
        kept: The positions of the kept messages.
        dropped: The dropped messages: ``index``, ``role``, ``tokens``, ``reason``.
        shortened: The shortened messages: ``index``, ``level``, ``tokens``, ``texts`` and others.
        markers: The texts in the place of dropped messages: ``before``, ``omitted``, ``text``.
        warnings: What the provider may reject in the window, and lost cache breakpoints.
        cache_breakpoints: Where a breakpoint of the prompt cache is worth one: ``place``,
            ``index``, a position in the input, and ``position``, the one in ``messages``; both are
            None for the system prompt and tools of the request. With ``cache_breakpoints=True``
            they are set, in the formats that have them.
        tokens_before: The tokens of the whole request before.
        tokens_after: The tokens of the whole request after, at most ``budget``.
        budget: The tokens that the window may have.
        shape: The format of the chat, such as ``"openai"``.
        counter: The name of the token counter; None if the tokens are given.
        estimated: Whether the token counts are estimates.
        report: Why each message is in or out.
        reuse: How much of the last window the prompt cache can reuse; None outside of a session and
            for its first window.
        request: A copy of the request with the fitted messages; None if only messages were given.

    >>> import cupel
    >>> fitted = cupel.fit([{"role": "user", "content": "Hello!"}], 100)
    >>> fitted
    <cupel.Fitted: 1 of 1 messages, 9 of 9 tokens>
    >>> fitted.messages, fitted.kept, fitted.dropped
    ([{'role': 'user', 'content': 'Hello!'}], [0], [])
    """

    messages: list[M]
    kept: list[int]
    dropped: list[DroppedEntry]
    shortened: list[ShortenedEntry]
    markers: list[Marker]
    warnings: list[ChatWarning]
    cache_breakpoints: list[CacheBreakpoint]
    tokens_before: int
    tokens_after: int
    budget: int
    shape: Shape
    counter: str | None
    estimated: bool
    report: Report[FitReport] = field(compare=False)
    reuse: Reuse | None = None
    request: R_co = None  # type: ignore[assignment]

    # At run time `Fitted[Message]` has no default for the second parameter before Python 3.13.
    if not TYPE_CHECKING:
        __class_getitem__ = classmethod(GenericAlias)

    def __repr__(self) -> str:
        kept, all_messages = len(self.kept), len(self.kept) + len(self.dropped)
        tokens = f"{self.tokens_after:,} of {self.tokens_before:,} tokens"
        return f"<cupel.Fitted: {kept} of {all_messages} messages, {tokens}>"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as values of JSON. Messages are copies, as dicts.

        ``report`` and ``request`` are left out: a report has a method of the same name, and a
        request holds what the client of a provider takes.

        >>> import cupel
        >>> fitted = cupel.fit([{"role": "user", "content": "Hello!"}], 100)
        >>> fitted.to_dict()["messages"]
        [{'role': 'user', 'content': 'Hello!'}]
        """
        found = {
            it.name: getattr(self, it.name)
            for it in fields(self)
            if it.name not in ("messages", "report", "request")
        }
        messages = _cupel.as_json(as_input(self.messages, "messages"), "messages")
        return {"messages": json.loads(messages), **found}


# The options that are parameters of `fit` in the engine, and not of the other questions.
_PARAMETERS = ("policy", "summarize", "summary_tokens")


def _split(
    function: str, options: Mapping[str, Any], own: Iterable[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the parameters of a fit and the other options. `own` are parameters of `function`."""
    known = [*FitOptions.__annotations__, *own, "budget"]
    for name in options.keys() - FitOptions.__annotations__.keys():
        import difflib  # for the error alone

        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        if (instead := _cupel.instead_of(name)) is not None:
            hint = f": it was removed; {instead}"
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")
    others = {**options}
    return {name: others.pop(name, None) for name in _PARAMETERS}, others


def check_options(
    function: str,
    budget: BudgetLike | None,
    options: Mapping[str, Any],
    own: Iterable[str] = (),
) -> None:
    """Raises the error of options that no chat would make valid."""
    parameters, others = _split(function, options, own)
    _cupel.check_fit({"budget": budget, **parameters}, others)


def _fit(
    messages: MessageList[Any] | Mapping[str, Any],
    budget: BudgetLike | None,
    *,
    tools: Iterable[Any] | None,
    system: Any,
    session: _cupel.Session | None,
    options: Mapping[str, Any],
) -> Fitted[Any]:
    log = _logger.isEnabledFor(logging.DEBUG)
    start = time.perf_counter() if log else 0.0
    parameters, others = _split("fit", options)
    shape = others.get("shape")
    own: Any = as_list(messages)
    copied = snapshot(own)
    chat = as_input(copied, "messages")
    if isinstance(tools, (str, bytes)):
        got = type(tools).__name__
        raise InvalidInputError(f"expected a list of tools, got {got}", path="tools")
    if tools is not None or system is not None:
        if isinstance(chat, dict):
            message = "tools and system are fields of the request"
            raise InvalidInputError(message, help="set them there, or pass the messages alone")
        shape = shape or _cupel.shape_of(chat)
        chat = request_of(chat, tools=tools, system=system, shape=shape)
    others["shape"] = shape
    author = ""
    if callable(summarize := parameters["summarize"]):
        leave_loop()
        author = _name_of(summarize)
        parameters["summarize"] = partial(_summary, summarize, copied)
    document, window, marks, pointer, report = _cupel.fit(
        chat, {"budget": budget, **parameters}, others, session, author
    )
    found = copied
    if isinstance(own, Mapping):
        if pointer is None:
            message = "expected a list of messages or a request, got one message"
            raise InvalidInputError(message, path="messages", help="put it into a list")
        found = at(copied, pointer)
    originals = [found] if isinstance(found, str) else found
    like = originals[0] if originals else None
    fitted: list[Any] = []
    for entry in window:
        if isinstance(entry, int):
            fitted.append(originals[entry])
        elif isinstance(entry, str):
            fitted.append(from_document(entry, like))
        else:
            index, texts = entry
            fitted.append(with_texts(originals[index], texts))
    for position, path, mark in marks:
        if position is not None:
            fitted[position] = with_mark(fitted[position], path, mark)
    request = None
    if isinstance(own, Mapping):
        is_text = isinstance(found, str)
        request = copied_fields(own) if is_text else with_list(own, pointer or "", fitted)
        for position, path, mark in marks:
            if position is None:
                request = with_mark(request, path, mark)
    fitted_chat: Fitted[Any] = Fitted(
        messages=fitted,
        request=request,
        kept=document["kept"],
        dropped=document["dropped"],
        shortened=document["shortened"],
        markers=document["markers"],
        warnings=document["warnings"],
        cache_breakpoints=document["cache_breakpoints"],
        tokens_before=document["tokens_before"],
        tokens_after=document["tokens_after"],
        budget=document["budget"],
        shape=document["shape"],
        counter=document["counter"],
        estimated=document["estimated"],
        reuse=document.get("reuse"),
        report=report,
    )
    if log:
        _logger.debug(
            "fit: %d of %d tokens, budget %d, %d kept, %d shortened, %d dropped, %s, %.1f ms",
            fitted_chat.tokens_after,
            fitted_chat.tokens_before,
            fitted_chat.budget,
            len(fitted_chat.kept),
            len(fitted_chat.shortened),
            len(fitted_chat.dropped),
            fitted_chat.shape,
            1000 * (time.perf_counter() - start),
        )
    for warning in fitted_chat.warnings:
        _logger.warning("fit: %s: messages %s", warning["kind"], warning["messages"])
    return fitted_chat


# The last summaries of each function, by name. An adapter has no session, and would ask a model for
# the same summary before every call of an agent.
_summaries: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
_REMEMBERED = 64


def _summary(
    summarize: Callable[..., Any], chat: Any, pointer: str | None, start: int, end: int, name: str
) -> Any:
    """Asks for the summary of messages: those of the list at a JSON pointer into the chat."""
    try:
        known = _summaries.setdefault(summarize, {})
    except TypeError:  # no weak reference or no hash
        known = {}
    if name in known:
        return known[name]
    messages = at(chat, pointer or "") if isinstance(chat, Mapping) else chat
    summary = resolved(summarize(list(messages[start:end])), "summarize")
    if isinstance(summary, str) and summary.strip():
        known[name] = summary
        for oldest in list(known)[:-_REMEMBERED]:
            known.pop(oldest, None)
    return summary


def _name_of(function: Any) -> str:
    """Returns the name of a function, to which its summaries are assigned in a state."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


@overload
def fit(
    messages: R,
    budget: BudgetLike | None = None,
    *,
    state: str | os.PathLike[str] | None = None,
    tools: Iterable[Any] | None = None,
    system: Any = None,
    **options: Unpack[FitOptions],
) -> Fitted[dict[str, Any], R]: ...
@overload
def fit(
    messages: MessageList[M],
    budget: BudgetLike | None = None,
    *,
    state: str | os.PathLike[str] | None = None,
    tools: Iterable[Any] | None = None,
    system: Any = None,
    **options: Unpack[FitOptions],
) -> Fitted[M, None]: ...
def fit(
    messages: MessageList[Any] | Mapping[str, Any],
    budget: BudgetLike | None = None,
    *,
    state: str | os.PathLike[str] | None = None,
    tools: Iterable[Any] | None = None,
    system: Any = None,
    **options: Unpack[FitOptions],
) -> Fitted[Any]:
    """Fits a chat into a token budget.

    System messages, the task (the first user turn), the last user turn and the newest tool calls
    with their results always stay. Old tool results and texts are shortened first; then the oldest
    messages are dropped, a tool call together with its results.

    Args:
        messages: Messages as dicts or as objects of the openai, anthropic or langchain packages; or
            a whole request: a dict with ``messages``, ``input`` or ``contents``. ``Fitted.request``
            is a copy of it then, and None otherwise.
        budget: Tokens for the whole request: ``8000``, ``"8k"``, ``"50%"`` of the model's window.
            Default: the model's context window minus the tokens reserved for the answer.
        model: The model that counts the tokens. Default: the request's.
        policy: A preset, the path of a file, a dict or a :class:`Policy`. Default: ``"agent"``.
        query: The question that the window is to answer, for policies that score by relevance.
            Default: the last user turn.
        state: A file that remembers what was counted. The windows are the same without it.
        tools: Tool definitions that are sent with the messages. They are counted.
        system: The system prompt, if the messages do not contain it. It is counted.
        reserve: Tokens for the answer. Default without a budget: 4,096, at most a quarter of the
            window, or the limit of the request if that is more.
        shape: The format of the chat, such as ``"anthropic"``. Detected by default.
        encoding: The token counter, such as ``"o200k"``. Default: the model's.
        counter: A function that counts the tokens of a text. Called once per text.
        margin: The percentage of the budget that is left free, for estimated counts.
        summarize: A function that gets a list of dropped messages and returns a text for their
            place. Called once per gap; with a `state`, once per cut. Its exceptions propagate.
        summary_tokens: The most tokens of a summary; a longer one is cut. Default: 200.
        options: Also how a chat is trimmed, as the table ``chat`` of a policy says it:
            ``pin=[3, 4]``, ``shorten="old"``, and the other fields of ``ChatSettings``.

    Raises:
        OverBudgetError: The mandatory messages do not fit.
        InvalidInputError: An argument is invalid.

    >>> import cupel
    >>> chat = [
    ...     {"role": "user", "content": "Hello!"},
    ...     {"role": "assistant", "content": "Hello! What can I do for you today?"},
    ...     {"role": "user", "content": "What is 2 + 2?"},
    ... ]
    >>> fitted = cupel.fit(chat, budget=30, policy="newest")
    >>> fitted.kept
    [1, 2]
    >>> fitted.messages[1] is chat[2]
    True
    """
    session = None if state is None else read_state(state)
    fitted: Fitted[Any] = _fit(
        messages, budget, tools=tools, system=system, session=session, options=options
    )
    if state is not None and session is not None:
        write_state(state, session)
    return fitted


@overload
async def afit(
    messages: R,
    budget: BudgetLike | None = None,
    *,
    state: str | os.PathLike[str] | None = None,
    tools: Iterable[Any] | None = None,
    system: Any = None,
    **options: Unpack[FitOptions],
) -> Fitted[dict[str, Any], R]: ...
@overload
async def afit(
    messages: MessageList[M],
    budget: BudgetLike | None = None,
    *,
    state: str | os.PathLike[str] | None = None,
    tools: Iterable[Any] | None = None,
    system: Any = None,
    **options: Unpack[FitOptions],
) -> Fitted[M, None]: ...
async def afit(
    messages: MessageList[Any] | Mapping[str, Any],
    budget: BudgetLike | None = None,
    *,
    state: str | os.PathLike[str] | None = None,
    tools: Iterable[Any] | None = None,
    system: Any = None,
    **options: Unpack[FitOptions],
) -> Fitted[Any]:
    """Fits a chat with the arguments of :func:`fit`, without blocking the event loop.

    A chat of more than 50,000 characters is fitted in a thread, a smaller one at once.

    >>> import asyncio, cupel
    >>> chat = [{"role": "user", "content": "What is 2 + 2?"}]
    >>> asyncio.run(cupel.afit(chat, budget="8k")).kept
    [0]
    """
    given = {"state": state, "tools": tools, "system": system, **options}
    chat: Any = as_list(messages)
    return await offload((chat, tools, system), partial(fit, chat, budget, **given))


class Fitter:
    """Fits a growing chat turn by turn, and says how much of the window before is reused.

    The windows are those of :func:`fit`. Messages that were there before are not counted again.

    Args:
        budget: As in :func:`fit`.
        state: The ``state`` of a fitter before, to go on with its chat. Default: a new one.
        options: The options of :func:`fit`, such as ``model`` and ``policy``.

    >>> import cupel
    >>> fitter = cupel.Fitter(budget=200)
    >>> chat = [{"role": "user", "content": "What is 2 + 2?"}]
    >>> fitter.fit(chat).kept
    [0]
    >>> chat += [{"role": "assistant", "content": "4"}, {"role": "user", "content": "And 3 + 3?"}]
    >>> fitted = fitter.fit(chat)
    >>> fitted.kept, fitted.reuse["share"]
    ([0, 1, 2], 1.0)
    """

    def __init__(
        self,
        budget: BudgetLike | None = None,
        *,
        state: str | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        check_options("Fitter", budget, options, own=("state",))
        self._session = _cupel.Session(state)
        self._budget = budget
        self._options = options

    def __repr__(self) -> str:
        return f"<cupel.Fitter: budget {self._budget!r}>"

    @property
    def state(self) -> str:
        """What is remembered, as JSON text."""
        return self._session.state()

    def __getstate__(self) -> dict[str, Any]:
        return {"budget": self._budget, "state": self.state, "options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["budget"], state=state["state"], **state["options"])  # type: ignore[misc]

    @overload
    def fit(
        self,
        messages: R,
        *,
        tools: Iterable[Any] | None = None,
        system: Any = None,
        query: str | None = None,
    ) -> Fitted[dict[str, Any], R]: ...
    @overload
    def fit(
        self,
        messages: MessageList[M],
        *,
        tools: Iterable[Any] | None = None,
        system: Any = None,
        query: str | None = None,
    ) -> Fitted[M, None]: ...
    def fit(
        self,
        messages: MessageList[Any] | Mapping[str, Any],
        *,
        tools: Iterable[Any] | None = None,
        system: Any = None,
        query: str | None = None,
    ) -> Fitted[Any]:
        """Fits the chat as it is now. The arguments are those of :func:`fit`.

        >>> import cupel
        >>> fitter = cupel.Fitter(budget="8k")
        >>> fitter.fit([{"role": "user", "content": "What is 2 + 2?"}]).kept
        [0]
        """
        options: dict[str, Any] = {**self._options}
        if query is not None:
            options["query"] = query
        return _fit(
            messages,
            self._budget,
            tools=tools,
            system=system,
            session=self._session,
            options=options,
        )

    @overload
    async def afit(
        self,
        messages: R,
        *,
        tools: Iterable[Any] | None = None,
        system: Any = None,
        query: str | None = None,
    ) -> Fitted[dict[str, Any], R]: ...
    @overload
    async def afit(
        self,
        messages: MessageList[M],
        *,
        tools: Iterable[Any] | None = None,
        system: Any = None,
        query: str | None = None,
    ) -> Fitted[M, None]: ...
    async def afit(
        self,
        messages: MessageList[Any] | Mapping[str, Any],
        *,
        tools: Iterable[Any] | None = None,
        system: Any = None,
        query: str | None = None,
    ) -> Fitted[Any]:
        """Fits the chat as it is now without blocking the event loop, as :func:`afit` does.

        >>> import asyncio, cupel
        >>> chat = [{"role": "user", "content": "What is 2 + 2?"}]
        >>> asyncio.run(cupel.Fitter(budget="8k").afit(chat)).kept
        [0]
        """
        chat: Any = as_list(messages)
        call = partial(self.fit, chat, tools=tools, system=system, query=query)
        return await offload((chat, tools, system), call)


__all__ = ["Fitted", "Fitter", "afit", "fit"]
