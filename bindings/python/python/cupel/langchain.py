"""Trims and fits LangChain messages: `fit_messages`, `trim_messages` and `CupelMiddleware`.

`fit_messages` and `trim_messages` need `langchain-core`, `CupelMiddleware` needs `langchain`.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import accumulate
from operator import add
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    Unpack,
    overload,
)

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    MessageLikeRepresentation,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.messages import trim_messages as _core_trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool

from cupel._adapter import Adapter, OnFit
from cupel._cupel import count_texts
from cupel._fit import Fitted
from cupel._offload import offload
from cupel._types import BudgetLike, FitOptions

if TYPE_CHECKING:
    from cupel._langchain_middleware import CupelMiddleware as CupelMiddleware

# `CupelMiddleware` is left out: `import *` works without `langchain`.
__all__ = ["fit_messages", "trim_messages"]

Messages: TypeAlias = Iterable[MessageLikeRepresentation] | PromptValue
MessageTypes: TypeAlias = str | type[BaseMessage] | Sequence[str | type[BaseMessage]] | None
TokenCounter: TypeAlias = (
    Callable[[list[BaseMessage]], int]
    | Callable[[BaseMessage], int]
    | BaseLanguageModel[Any]
    | Literal["approximate"]
)


class TextSplitter(Protocol):
    """The method of `langchain_text_splitters.TextSplitter` that is used."""

    def split_text(self, text: str) -> list[str]: ...


def __getattr__(name: str) -> Any:
    # `CupelMiddleware` is imported on first use: `trim_messages` works without `langchain`.
    if name != "CupelMiddleware":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cupel._langchain_middleware import CupelMiddleware

    return CupelMiddleware


@overload
def fit_messages(
    messages: None = None,
    *,
    budget: BudgetLike | None = None,
    tools: Sequence[Any] = (),
    on_fit: OnFit | None = None,
    **options: Unpack[FitOptions],
) -> Runnable[Messages, list[BaseMessage]]: ...


@overload
def fit_messages(
    messages: Messages,
    *,
    budget: BudgetLike | None = None,
    tools: Sequence[Any] = (),
    on_fit: OnFit | None = None,
    **options: Unpack[FitOptions],
) -> list[BaseMessage]: ...


def fit_messages(
    messages: Messages | None = None,
    *,
    budget: BudgetLike | None = None,
    tools: Sequence[Any] = (),
    on_fit: OnFit | None = None,
    **options: Unpack[FitOptions],
) -> list[BaseMessage] | Runnable[Messages, list[BaseMessage]]:
    """Fits messages into a budget, or returns a `Runnable` that does it.

    Takes the options of `cupel.fit`, and messages as `trim_messages` does. `tools`, which are
    bound to the model, are counted. Kept messages are the same objects; shortened messages are
    copies. `on_fit` is called with each `cupel.Fitted`. Without `messages` it returns a
    `Runnable` for a chain, with `invoke`, `ainvoke`, `batch` and the other methods; the async
    ones fit a long chat in a thread.

    >>> from cupel.langchain import fit_messages
    >>> from langchain_core.language_models import FakeListChatModel
    >>> from langchain_core.prompts import ChatPromptTemplate
    >>> prompt = ChatPromptTemplate([("system", "Be brief."), ("placeholder", "{history}")])
    >>> chain = prompt | fit_messages(budget="8k") | FakeListChatModel(responses=["Hello!"])
    >>> chain.invoke({"history": [("user", "Hi.")]}).content
    'Hello!'
    >>> [message.text for message in fit_messages([("user", "Hi.")], budget="8k")]
    ['Hi.']
    """
    adapter = Adapter("fit_messages", budget, options, on_fit).check()
    known = [convert_to_openai_tool(tool) for tool in tools]

    def run(given: Messages) -> Fitted[Any]:
        return adapter.fit(convert_to_messages(given), shape="langchain", tools=known)

    def fit(given: Messages) -> list[BaseMessage]:
        fitted = run(given)
        adapter.report(fitted)
        return fitted.messages

    async def afit(given: Messages) -> list[BaseMessage]:
        chat = convert_to_messages(given)
        fitted = await offload(chat, partial(run, chat))
        adapter.report(fitted)
        return fitted.messages

    if messages is not None:
        return fit(messages)
    return RunnableLambda(fit, afit, name="fit_messages")


@overload
def trim_messages(
    messages: None = None,
    *,
    max_tokens: int,
    token_counter: TokenCounter,
    strategy: Literal["first", "last"] = "last",
    allow_partial: bool = False,
    end_on: MessageTypes = None,
    start_on: MessageTypes = None,
    include_system: bool = False,
    text_splitter: Callable[[str], list[str]] | TextSplitter | None = None,
    keep_pairs: bool = False,
) -> Runnable[Messages, list[BaseMessage]]: ...


@overload
def trim_messages(
    messages: Messages,
    *,
    max_tokens: int,
    token_counter: TokenCounter,
    strategy: Literal["first", "last"] = "last",
    allow_partial: bool = False,
    end_on: MessageTypes = None,
    start_on: MessageTypes = None,
    include_system: bool = False,
    text_splitter: Callable[[str], list[str]] | TextSplitter | None = None,
    keep_pairs: bool = False,
) -> list[BaseMessage]: ...


def trim_messages(
    messages: Messages | None = None,
    *,
    max_tokens: int,
    token_counter: TokenCounter,
    strategy: Literal["first", "last"] = "last",
    allow_partial: bool = False,
    end_on: MessageTypes = None,
    start_on: MessageTypes = None,
    include_system: bool = False,
    text_splitter: Callable[[str], list[str]] | TextSplitter | None = None,
    keep_pairs: bool = False,
) -> list[BaseMessage] | Runnable[Messages, list[BaseMessage]]:
    """Trims messages to a number of tokens, as `langchain_core.messages.trim_messages` does.

    Takes the same arguments and returns the same messages. It counts each message once if
    `token_counter` is `"approximate"` or a model of `langchain-openai`; other counters are
    called as `langchain-core` calls them. Without `messages` it returns a `RunnableLambda`.

    `keep_pairs=True` removes tool results without their call and calls without all of their
    results from the trimmed messages, and applies `start_on` and `end_on` to the remaining
    ones. Defaults to `False`, which gives the results of `langchain-core`.

    >>> from cupel.langchain import trim_messages
    >>> from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    >>> call = {"name": "weather", "args": {"city": "Bonn"}, "id": "1"}
    >>> chat = [
    ...     HumanMessage("Weather in Bonn?"),
    ...     AIMessage("", tool_calls=[call]),
    ...     ToolMessage("sunny", tool_call_id="1"),
    ...     AIMessage("It is sunny."),
    ... ]
    >>> [m.type for m in trim_messages(chat, max_tokens=2, token_counter=len)]
    ['tool', 'ai']
    >>> [m.type for m in trim_messages(chat, max_tokens=2, token_counter=len, keep_pairs=True)]
    ['ai']
    """
    trim = partial(
        _trim,
        keep_pairs=keep_pairs,
        max_tokens=max_tokens,
        token_counter=token_counter,
        strategy=strategy,
        allow_partial=allow_partial,
        end_on=end_on,
        start_on=start_on,
        include_system=include_system,
        text_splitter=text_splitter,
    )
    return RunnableLambda(trim, name="trim_messages") if messages is None else trim(messages)


def _trim(
    messages: Messages, *, keep_pairs: bool, token_counter: Any, **options: Any
) -> list[BaseMessage]:
    strategy = options["strategy"]
    last = strategy == "last"
    first = strategy == "first" and not options["start_on"] and not options["include_system"]
    trimmed = None
    if (last or first) and not options["allow_partial"]:
        messages = converted = list(convert_to_messages(messages))
        if last:
            _pop_until(converted, options["end_on"])
        if converted and (counter := _additive(token_counter)):
            trimmed = _window(converted, counter, last, options)
    if trimmed is None:
        core: Any = _core_trim_messages
        trimmed = core(messages, token_counter=token_counter, **options)
    return _without_torn_pairs(trimmed, options) if keep_pairs else trimmed


class _Additive(NamedTuple):
    """A counter whose count of a list is a constant plus the counts of its messages."""

    base: int
    # Returns the tokens per message, at least up to the message that exceeds the limit.
    counts: Callable[[list[BaseMessage], int], list[int]]


def _window(
    messages: list[BaseMessage], counter: _Additive, last: bool, options: dict[str, Any]
) -> list[BaseMessage]:
    limit, system = options["max_tokens"], messages[:0]
    if last:
        if options["include_system"] and _starts_with_system(messages):
            system, messages = messages[:1], messages[1:]
            limit = max(0, limit - counter.base - sum(counter.counts(system, limit)))
        messages = messages[::-1]
    sums = list(accumulate(counter.counts(messages, limit), initial=counter.base))
    kept = messages[: max(0, bisect_right(sums, limit) - 1)]
    _pop_until(kept, options["start_on" if last else "end_on"])
    return system + kept[::-1] if last else kept


def _starts_with_system(messages: list[BaseMessage]) -> bool:
    return bool(messages) and isinstance(messages[0], SystemMessage)


def _pop_until(messages: list[BaseMessage], types: MessageTypes) -> None:
    """Removes messages from the end until one has one of the types."""
    if not types:
        return
    wanted = [types] if isinstance(types, (str, type)) else types
    names = {t for t in wanted if isinstance(t, str)}
    classes = tuple(t for t in wanted if isinstance(t, type))
    while messages and messages[-1].type not in names and not isinstance(messages[-1], classes):
        messages.pop()


def _additive(counter: Any) -> _Additive | None:
    """Returns a counter that counts each message once, or `None` if there is none."""
    if counter == "approximate" or counter is count_tokens_approximately:
        return _Additive(0, _approximate_counts) if _approximate_is_known() else None
    # A model of langchain-openai exists only if its module was imported.
    openai = sys.modules.get("langchain_openai.chat_models.base")
    count: Any = getattr(counter, "get_num_tokens_from_messages", None)
    if openai is None or (
        getattr(count, "__func__", None) is not openai.BaseChatOpenAI.get_num_tokens_from_messages
    ):
        return None
    encoding = counter._get_encoding_model()[1].name
    if encoding not in ("o200k_base", "cl100k_base"):
        return None
    base = count([])
    # The model states its own constants: the tokens of an empty message with its role.
    kinds: list[type[BaseMessage]] = [AIMessage, HumanMessage, SystemMessage]
    empty = {kind: count([kind(content="")]) - base for kind in kinds}
    return _Additive(base, partial(_openai_counts, count, base, empty, encoding))


def _openai_counts(
    count: Callable[[list[BaseMessage]], int],
    base: int,
    empty: dict[type[BaseMessage], int],
    encoding: str,
    messages: list[BaseMessage],
    limit: int,
) -> list[int]:
    texts, extra = [], []
    for message in messages:
        if type(message) in empty and _is_plain_text(message):
            texts.append(str(message.content))
            extra.append(empty[type(message)])
        else:
            # The model counts a message with more than text.
            texts.append("")
            extra.append(count([message]) - base)
    counts: list[int] = []
    while len(counts) < len(messages) and base <= limit:
        # Counting stops after the limit: texts that are certainly trimmed cost nothing.
        part = slice(len(counts), len(counts) + 32)
        tokens = list(map(add, extra[part], count_texts(texts[part], encoding)))
        counts += tokens
        base += sum(tokens)
    return counts


# The tokenizer of the model rejects special tokens and replaces lone surrogates.
_SURROGATE = re.compile("[\ud800-\udfff]")


def _is_plain_text(message: BaseMessage) -> bool:
    text = message.content
    return (
        type(text) is str
        and "<|" not in text
        and (text.isascii() or not _SURROGATE.search(text))
        and not message.name
        and (not message.additional_kwargs or message.additional_kwargs.keys() <= {"refusal"})
        and not (
            isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls)
        )
    )


_ROLE_LENGTHS: dict[type[BaseMessage], int] = {
    HumanMessage: len("user"),
    AIMessage: len("assistant"),
    SystemMessage: len("system"),
    ToolMessage: len("tool"),
}


def _approximate_counts(messages: Sequence[Any], _limit: int = 0) -> list[int]:
    """Counts as `count_tokens_approximately` does: 4 characters per token, rounded up, plus 3."""
    counts = []
    for m in messages:
        kind, text = type(m), m.content
        chars = _ROLE_LENGTHS.get(kind, 0)
        if kind is ToolMessage:
            chars += len(m.tool_call_id)
        if (
            not chars
            or type(text) is not str
            or m.name
            or (kind is AIMessage and m.tool_calls)
            or (kind is SystemMessage and m.additional_kwargs)
        ):
            counts.append(count_tokens_approximately([m]))
        else:
            counts.append((len(text) + chars + 3) // 4 + 3)
    return counts


@cache
def _approximate_is_known() -> bool:
    """Returns whether the installed `count_tokens_approximately` has the constants above."""
    sample: list[BaseMessage] = [ToolMessage("x" * n, tool_call_id="id") for n in range(9)]
    for kind in (HumanMessage, AIMessage, SystemMessage):
        sample += [kind("x" * n) for n in range(9)]
    return _approximate_counts(sample) == [count_tokens_approximately([m]) for m in sample]


def _without_torn_pairs(messages: list[BaseMessage], options: dict[str, Any]) -> list[BaseMessage]:
    """Removes calls without results and results without calls, then applies the bounds again."""
    system = messages[:1] if options["include_system"] and _starts_with_system(messages) else []
    rest = messages[len(system) :]
    if len(_whole_pairs(rest)) == len(rest):
        return messages
    while True:
        kept = _whole_pairs(rest)
        _pop_until(kept, options["end_on"])
        kept.reverse()
        _pop_until(kept, options["start_on"])
        kept.reverse()
        if len(kept) == len(rest):
            return system + kept
        rest = kept


def _whole_pairs(messages: list[BaseMessage]) -> list[BaseMessage]:
    owner: dict[str | None, int] = {}  # the call's id to the position of its newest message
    missing: dict[int, set[str | None]] = {}  # ids without a result, by position of the call
    group = list(range(len(messages)))  # the position of the call; -1 without a call
    for i, m in enumerate(messages):
        if isinstance(m, AIMessage):
            missing[i] = {call["id"] for call in (*m.tool_calls, *m.invalid_tool_calls)}
            if "function_call" in m.additional_kwargs:
                missing[i].add(m.additional_kwargs["function_call"]["name"])
            owner.update(dict.fromkeys(missing[i], i))
        elif isinstance(m, (ToolMessage, FunctionMessage)):
            key = m.tool_call_id if isinstance(m, ToolMessage) else m.name
            group[i] = owner.get(key, -1)
            missing.get(group[i], set()).discard(key)
    return [m for i, m in enumerate(messages) if group[i] >= 0 and not missing.get(group[i])]
