"""`cupel.langchain.trim_messages` against the function of langchain-core that it replaces."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages import trim_messages as original
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import RunnableLambda

from cupel.langchain import trim_messages


def call(id: str) -> dict[str, Any]:
    return {"name": "weather", "args": {}, "id": id, "type": "tool_call"}


CHAT: list[BaseMessage] = [
    SystemMessage("sys", id="0"),
    HumanMessage("h1", id="1"),
    AIMessage("a1", id="2"),
    HumanMessage("h2", id="3"),
    AIMessage("", tool_calls=[call("x"), call("y")], id="4"),
    ToolMessage("rx", tool_call_id="x", id="5"),
    ToolMessage("ry", tool_call_id="y", id="6"),
    AIMessage("a2", id="7"),
]
LINES = [HumanMessage("one two\nthree four\nfive six", id="L"), AIMessage("end", id="E")]
BLOCKS = [
    HumanMessage([{"type": "text", "text": "b1 b1"}, {"type": "text", "text": "b2 b2"}], id="B"),
    AIMessage("end", id="E"),
]
OPENAI = [
    {"role": "user", "content": "q"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": "r"},
]


def words(messages: list[BaseMessage]) -> int:
    return sum(len(m.text.split()) for m in messages)


def per_message(message: BaseMessage) -> int:
    return 2


def per_human(message: HumanMessage) -> int:
    return 2


def per_annotated_string(message: BaseMessage) -> int:
    return 2


per_annotated_string.__annotations__["message"] = "BaseMessage"
per_message.__annotations__["message"] = BaseMessage
per_human.__annotations__["message"] = HumanMessage

# The probes: a name, the messages, the arguments, and the ids that `keep_pairs=True` keeps where
# they differ from the ids that langchain-core keeps.
Probe = tuple[str, Any, dict[str, Any], "list[str] | None"]


def chat(name: str, max_tokens: int, keep_pairs: list[str] | None = None, **options: Any) -> Probe:
    return (name, CHAT, {"max_tokens": max_tokens, "token_counter": len} | options, keep_pairs)


def other(name: str, messages: Any, max_tokens: int, **options: Any) -> Probe:
    return (name, messages, {"max_tokens": max_tokens, "token_counter": len} | options, None)


PROBES = [
    chat("last", 3, ["7"]),
    chat("last, results without their call", 2, ["7"]),
    chat("start_on leaves nothing", 2, start_on="human"),
    chat("start_on", 5, start_on="human"),
    chat("system", 4, ["0", "7"], include_system=True),
    chat("system and start_on", 4, include_system=True, start_on="human"),
    chat("system and two types", 6, include_system=True, start_on=["human", AIMessage]),
    chat("system alone fits", 1, include_system=True),
    chat("system is over", 0, include_system=True),
    chat("no tokens", 0),
    chat("negative", -1),
    chat("negative and system", -1, include_system=True),
    chat("end_on is applied before the cut", 3, end_on="human"),
    chat("end_on of two types", 3, end_on=("human", "tool")),
    chat("end_on without a match", 3, end_on="function"),
    chat("end_on without a match and system", 3, end_on="function", include_system=True),
    chat("first", 3, strategy="first"),
    chat("first, end_on is applied after the cut", 5, strategy="first", end_on="human"),
    chat("first, all fit, end_on", 99, strategy="first", end_on="human"),
    chat("all fit, start_on ai", 99, start_on="ai"),
    chat("all fit, start_on human", 99, start_on="human"),
    chat("first and start_on", 3, strategy="first", start_on="human"),
    chat("first and system", 3, strategy="first", include_system=True),
    chat("unknown strategy", 3, strategy="middle"),
    chat("unknown shortcut", 3, token_counter="exact"),
    chat("not a counter", 3, token_counter=3),
    chat("approximate", 20, ["7"], token_counter="approximate"),
    chat("per message", 5, ["7"], token_counter=per_message),
    chat("annotation is a string", 5, token_counter=per_annotated_string),
    chat("annotation is a subclass", 5, token_counter=per_human),
    other(
        "two system messages",
        [SystemMessage("s0"), SystemMessage("s1"), HumanMessage("h"), AIMessage("a")],
        2,
        include_system=True,
    ),
    other(
        "system is not first",
        [HumanMessage("h"), SystemMessage("s1"), AIMessage("a")],
        1,
        include_system=True,
    ),
    other("empty", [], 2),
    other("tuples, dicts and strings", [("human", "x"), {"role": "ai", "content": "y"}, "z"], 2),
    other("OpenAI dicts", OPENAI, 9),
    other(
        "developer is a system message",
        [{"role": "developer", "content": "d"}, ("human", "x"), ("ai", "y")],
        2,
        include_system=True,
    ),
    other("partial, last", LINES, 4, token_counter=words, allow_partial=True),
    other(
        "partial, first", LINES[::-1], 4, token_counter=words, allow_partial=True, strategy="first"
    ),
    other(
        "partial, splitter",
        LINES,
        4,
        token_counter=words,
        allow_partial=True,
        text_splitter=lambda text: text.split(" "),
    ),
    other("partial, blocks", BLOCKS, 3, token_counter=words, allow_partial=True),
]

# Counts that exercise the additive counters on every probe, at budgets around each cut.
COUNTERS: list[Any] = ["approximate", count_tokens_approximately]


def outcome(trim: Callable[..., Any], messages: Any, options: dict[str, Any]) -> Any:
    """Returns the kept messages, or the type and the text of the error."""
    try:
        return trim(messages, **options)
    except Exception as error:
        return type(error), str(error)


def assert_same(messages: Any, options: dict[str, Any]) -> None:
    ours, theirs = (outcome(trim, messages, options) for trim in (trim_messages, original))
    assert ours == theirs
    if isinstance(theirs, list):
        given = {id(m) for m in messages}
        assert [id(m) for m in ours if id(m) in given] == [id(m) for m in theirs if id(m) in given]


@pytest.mark.parametrize("probe", PROBES, ids=[p[0] for p in PROBES])
def test_probes_give_the_results_of_langchain_core(probe: Probe) -> None:
    _, messages, options, _ = probe
    assert_same(messages, options)
    for counter in COUNTERS:
        for max_tokens in range(-1, 60):
            counted = options | {"token_counter": counter, "max_tokens": max_tokens}
            assert_same(messages, counted | {"allow_partial": False})
            assert_same(messages, counted)


@pytest.mark.parametrize("probe", PROBES, ids=[p[0] for p in PROBES])
def test_keep_pairs_removes_torn_pairs_only(probe: Probe) -> None:
    _, messages, options, expected = probe
    theirs = outcome(original, messages, options)
    ours = outcome(trim_messages, messages, options | {"keep_pairs": True})
    if expected is None:
        assert ours == theirs
    else:
        assert [m.id for m in ours] == expected != [m.id for m in theirs]


def test_without_messages_it_returns_a_runnable() -> None:
    ours, theirs = (trim(max_tokens=2, token_counter=len) for trim in (trim_messages, original))
    assert isinstance(ours, RunnableLambda)
    assert type(trim_messages(None, max_tokens=2, token_counter=len)) is type(theirs)
    assert ours.get_name() == theirs.get_name()
    assert ours.invoke(CHAT) == theirs.invoke(CHAT) == CHAT[-2:]
    assert asyncio.run(ours.ainvoke(CHAT)) == CHAT[-2:]
    assert (ours | (lambda messages: len(messages))).invoke(CHAT) == 2


@pytest.mark.parametrize("counter", [len, "approximate"])
def test_generators_and_prompts_are_read_once(counter: Any) -> None:
    options: dict[str, Any] = {"max_tokens": 20, "token_counter": counter, "end_on": "tool"}
    expected = original(CHAT, **options)
    assert trim_messages((m for m in CHAT), **options) == expected
    prompt = ChatPromptValue(messages=CHAT)
    assert trim_messages(prompt, **options) == expected
    assert prompt.messages == CHAT


def test_kept_messages_are_the_callers_own_objects_and_the_list_stays() -> None:
    before = list(CHAT)
    for counter in (len, "approximate"):
        kept = trim_messages(CHAT, max_tokens=30, token_counter=counter, end_on="tool")
        assert kept and all(any(m is c for c in CHAT) for m in kept)
        assert before == CHAT


def test_the_arguments_are_those_of_langchain_core_plus_keep_pairs() -> None:
    ours, theirs = (inspect.signature(trim).parameters for trim in (trim_messages, original))
    assert [*ours] == [*theirs, "keep_pairs"]
    for name in set(theirs) - {"messages"}:
        assert (ours[name].default, ours[name].kind) == (theirs[name].default, theirs[name].kind)


def test_list_counters_are_called_as_langchain_core_calls_them() -> None:
    def calls(trim: Callable[..., Any]) -> list[list[str | None]]:
        seen: list[list[str | None]] = []

        def counter(messages: list[BaseMessage]) -> int:
            seen.append([m.id for m in messages])
            return 3 + sum(len(m.text) for m in messages)

        trim(CHAT, max_tokens=8, token_counter=counter, include_system=True)
        return seen

    assert calls(trim_messages) == calls(original)


TEXTS = st.text(max_size=30) | st.text("ab \n", min_size=100, max_size=400)
BLOCK = st.one_of(
    st.text(max_size=8),
    st.builds(lambda t: {"type": "text", "text": t}, st.text(max_size=20)),
    st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}),
    st.just({"type": "thinking", "thinking": "Hmm."}),
)
CONTENT: st.SearchStrategy[Any] = TEXTS | st.lists(BLOCK, max_size=3)
NAMES = st.none() | st.sampled_from(["", "bob"])
IDS = st.sampled_from(["x", "y", "z"])
MESSAGES = st.one_of(
    st.builds(HumanMessage, CONTENT, name=NAMES),
    st.builds(SystemMessage, CONTENT, name=NAMES),
    st.builds(SystemMessage, CONTENT, additional_kwargs=st.just({"__openai_role__": "developer"})),
    st.builds(
        lambda content, ids, name: AIMessage(content, tool_calls=[call(i) for i in ids], name=name),
        CONTENT,
        st.lists(IDS, max_size=2, unique=True),
        NAMES,
    ),
    st.builds(AIMessageChunk, TEXTS),
    st.builds(ToolMessage, CONTENT, tool_call_id=IDS, name=NAMES),
    st.builds(FunctionMessage, TEXTS, name=st.just("f")),
    st.builds(ChatMessage, TEXTS, role=st.sampled_from(["user", "critic"])),
    # `count_tokens_approximately` rejects this type: the error must be the same.
    st.just(RemoveMessage(id="r")),
)
TYPE = st.sampled_from(
    ["human", "ai", "tool", "system", "function", HumanMessage, AIMessage, ToolMessage]
)
TYPES = st.none() | TYPE | st.lists(TYPE, max_size=3) | st.tuples(TYPE, TYPE)
OPTIONS = st.fixed_dictionaries(
    {
        "max_tokens": st.integers(-2, 400),
        "token_counter": st.sampled_from(["approximate", len, words, count_tokens_approximately]),
        "strategy": st.sampled_from(["first", "last"]),
        "allow_partial": st.booleans(),
        "end_on": TYPES,
        "start_on": TYPES,
        "include_system": st.booleans(),
    }
)


@given(st.lists(MESSAGES, max_size=12), OPTIONS)
def test_random_chats_give_the_results_of_langchain_core(
    messages: list[BaseMessage], options: dict[str, Any]
) -> None:
    assert_same(messages, options)


def torn(messages: list[BaseMessage]) -> list[BaseMessage]:
    """Returns the messages of torn pairs, by a search from each message."""
    found: list[BaseMessage] = []
    for i, m in enumerate(messages):
        if isinstance(m, ToolMessage):
            calls = [c for a in messages[:i] if isinstance(a, AIMessage) for c in a.tool_calls]
            if m.tool_call_id not in [c["id"] for c in calls]:
                found.append(m)
        elif isinstance(m, AIMessage):
            results = [r.tool_call_id for r in messages[i:] if isinstance(r, ToolMessage)]
            if any(c["id"] not in results for c in m.tool_calls):
                found.append(m)
    return found


@given(st.lists(MESSAGES, max_size=12), OPTIONS)
def test_keep_pairs_leaves_no_torn_pair(
    messages: list[BaseMessage], options: dict[str, Any]
) -> None:
    theirs = outcome(original, messages, options)
    ours = outcome(trim_messages, messages, options | {"keep_pairs": True})
    if not isinstance(theirs, list):
        assert ours == theirs
        return
    assert not torn([m for m in ours if not isinstance(m, FunctionMessage)])
    # What is kept is a part of the original's result, in its order.
    rest = iter(theirs)
    assert all(any(m == t for t in rest) for m in ours)
    if not any(isinstance(m, FunctionMessage) for m in theirs) and not torn(theirs):
        assert ours == theirs


def test_unknown_message_types_raise_the_error_of_the_counter() -> None:
    class Note(BaseMessage):
        type: str = "note"

    chat = [Note(content="x"), *CHAT]
    options: dict[str, Any] = {"max_tokens": 4, "token_counter": "approximate"}
    with pytest.raises(ValueError, match="Unknown BaseMessage type") as theirs:
        original(chat, **options)
    with pytest.raises(ValueError, match=re.escape(str(theirs.value))):
        trim_messages(chat, **options)


def test_function_calls_are_pairs_too() -> None:
    function_call = {"function_call": {"name": "f", "arguments": "{}"}}
    chat = [AIMessage("", additional_kwargs=function_call), FunctionMessage(content="r", name="f")]
    assert trim_messages(chat, max_tokens=2, token_counter=len, keep_pairs=True) == chat
    for strategy in ("first", "last"):
        options: dict[str, Any] = {"max_tokens": 1, "token_counter": len, "strategy": strategy}
        assert trim_messages(chat, **options, keep_pairs=True) == []


def test_a_reused_id_belongs_to_the_newest_call() -> None:
    turn = [AIMessage("", tool_calls=[call("x")]), ToolMessage("r", tool_call_id="x")]
    options: dict[str, Any] = {"token_counter": len, "keep_pairs": True}
    assert trim_messages(turn + turn, max_tokens=3, **options) == turn
    assert trim_messages(turn + turn[:1], max_tokens=3, **options) == turn
