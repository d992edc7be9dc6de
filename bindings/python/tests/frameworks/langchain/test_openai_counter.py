"""`trim_messages` with the counter of ChatOpenAI, against langchain-core."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages import trim_messages as original
from langchain_openai import ChatOpenAI

import adapters
from cupel.langchain import trim_messages


@pytest.fixture(scope="module", autouse=True)
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> Any:
    cache = tmp_path_factory.mktemp("tiktoken")
    adapters.write_vocabularies(cache)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
        yield


MODELS = [ChatOpenAI(model=name, api_key="x") for name in ("gpt-4o", "gpt-4", "gpt-3.5-turbo-0301")]


def call(id: str) -> dict[str, Any]:
    return {"name": "weather", "args": {"city": "Köln"}, "id": id, "type": "tool_call"}


TEXTS = st.text(max_size=60) | st.sampled_from(
    ["plain words " * 20, "<|endoftext|>", "a <| b", "\ud83d", "👩‍👩‍👧 Grüße", " \n\n\t x"]
)
BLOCK = st.one_of(
    st.text(max_size=8),
    st.builds(lambda t: {"type": "text", "text": t}, st.text(max_size=20)),
    st.just({"type": "image_url", "image_url": {"url": "data:,", "detail": "low"}}),
    st.just({"type": "thinking", "thinking": "Hmm."}),
    st.just({"type": "unknown"}),
)
CONTENT: st.SearchStrategy[Any] = TEXTS | st.lists(BLOCK, max_size=3)
NAMES = st.none() | st.sampled_from(["", "bob"])
EXTRAS = st.sampled_from(
    [
        {},
        {"refusal": None},
        {"name": "eve"},
        {"audio": {"id": "a"}},
        {"function_call": {"name": "f", "arguments": "{}"}},
    ]
)
IDS = st.sampled_from(["x", "y"])
MESSAGES = st.one_of(
    st.builds(HumanMessage, CONTENT, name=NAMES, additional_kwargs=EXTRAS),
    st.builds(SystemMessage, CONTENT, name=NAMES),
    st.builds(SystemMessage, TEXTS, additional_kwargs=st.just({"__openai_role__": "developer"})),
    st.builds(
        lambda content, ids, extras: AIMessage(
            content, tool_calls=[call(i) for i in ids], additional_kwargs=extras
        ),
        CONTENT,
        st.lists(IDS, max_size=2),
        EXTRAS,
    ),
    st.builds(AIMessageChunk, TEXTS),
    st.builds(ToolMessage, CONTENT, tool_call_id=IDS),
    st.builds(FunctionMessage, TEXTS, name=st.just("f")),
    st.builds(ChatMessage, TEXTS, role=st.sampled_from(["user", "critic"])),
)
TYPE = st.none() | st.sampled_from(["human", "ai", "tool", HumanMessage, AIMessage])
OPTIONS = st.fixed_dictionaries(
    {
        "max_tokens": st.integers(-2, 400),
        "token_counter": st.sampled_from(MODELS),
        "strategy": st.sampled_from(["first", "last", "last"]),
        "allow_partial": st.sampled_from([False, False, True]),
        "end_on": TYPE,
        "start_on": TYPE,
        "include_system": st.booleans(),
    }
)


def outcome(trim: Any, messages: list[BaseMessage], options: dict[str, Any]) -> Any:
    try:
        return trim(messages, **options)
    except Exception as error:
        return type(error), str(error)


# Chats of plain text are the fast path; chats of any message mix it with the model's own counter.
PLAIN = st.builds(HumanMessage, TEXTS) | st.builds(AIMessage, TEXTS)
CHATS = st.lists(PLAIN, max_size=80) | st.lists(MESSAGES, max_size=12)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(CHATS, OPTIONS)
def test_random_chats_give_the_results_of_langchain_core(
    messages: list[BaseMessage], options: dict[str, Any]
) -> None:
    theirs = outcome(original, messages, options)
    assert outcome(trim_messages, messages, options) == theirs


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.model_name)
def test_every_budget_gives_the_results_of_langchain_core(model: ChatOpenAI) -> None:
    chat = [SystemMessage("Be brief."), *(HumanMessage(f"word {i} " * (i % 7)) for i in range(40))]
    for max_tokens in range(model.get_num_tokens_from_messages(chat) + 5):
        for include_system in (False, True):
            options = {"max_tokens": max_tokens, "include_system": include_system}
            ours = trim_messages(chat, token_counter=model, **options)
            assert ours == original(chat, token_counter=model, **options)


def test_other_counters_of_models_are_left_to_langchain_core() -> None:
    class Halved(ChatOpenAI):
        def get_num_tokens_from_messages(self, messages: Any, *args: Any, **kwargs: Any) -> int:
            return super().get_num_tokens_from_messages(messages, *args, **kwargs) // 2

    model = Halved(model="gpt-4o", api_key="x")
    chat = [HumanMessage("word " * 10) for _ in range(10)]
    options = {"max_tokens": 40, "token_counter": model}
    assert trim_messages(chat, **options) == original(chat, **options)
    assert len(trim_messages(chat, **options)) == 5


def test_an_unsupported_model_raises_the_error_of_its_counter() -> None:
    model = ChatOpenAI(model="unknown", api_key="x")
    for chat in ([], [HumanMessage("Hi.")]):
        for end_on in (None, "ai"):
            options = {"max_tokens": 9, "token_counter": model, "end_on": end_on}
            assert outcome(trim_messages, chat, options) == outcome(original, chat, options)
