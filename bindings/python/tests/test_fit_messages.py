"""`cupel.langchain.fit_messages`: as a function, and as a `Runnable` of a chain."""

from __future__ import annotations

import asyncio
import copy
import threading
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import tool

import adapters
import cupel
import long_chat
from cupel.langchain import fit_messages


def call(id: str) -> dict[str, Any]:
    return {"name": "weather", "args": {"city": "Rome"}, "id": id}


def chat() -> list[BaseMessage]:
    return [
        SystemMessage("Be brief."),
        HumanMessage("first " * 60),
        AIMessage("", tool_calls=[call("c0")]),
        ToolMessage(adapters.LONG, tool_call_id="c0"),
        AIMessage("It is cloudy. " * 20),
        HumanMessage("And in Oslo?"),
        AIMessage("", tool_calls=[call("c1")]),
        ToolMessage("snow", tool_call_id="c1"),
        AIMessage("It snows."),
        HumanMessage("And in Bonn?"),
    ]


def test_kept_messages_are_the_own_objects_and_shortened_ones_are_copies() -> None:
    before = chat()
    unchanged = copy.deepcopy(before)
    window = fit_messages(before, budget=150, **adapters.NEWEST)
    assert all(a is b for a, b in zip(window, [before[0], *before[5:]], strict=True))
    window = fit_messages(before, budget=450, keep_task=False)
    [short] = [message for message in window if not any(message is old for old in before)]
    assert isinstance(short, ToolMessage) and short.tool_call_id == "c0"
    assert len(short.text) < len(adapters.LONG)
    assert before == unchanged


def test_messages_may_be_whatever_a_model_takes() -> None:
    given: list[Any] = [
        ("system", "Be brief."),
        {"role": "user", "content": "Hi."},
        HumanMessage("Hello!"),
    ]
    window = fit_messages(given, budget="8k")
    assert [(message.type, message.text) for message in window] == [
        ("system", "Be brief."),
        ("human", "Hi."),
        ("human", "Hello!"),
    ]
    assert window[2] is given[2]
    assert fit_messages(ChatPromptTemplate(chat()).invoke({}), budget="8k") == chat()


def model(seen: list[Any]) -> Runnable[Any, Any]:
    """Returns a model that remembers the messages that it is sent."""

    def remember(messages: list[BaseMessage]) -> list[BaseMessage]:
        seen.append(messages)
        return messages

    fake = GenericFakeChatModel(messages=iter([AIMessage("It is sunny.")] * 99))
    return RunnableLambda(remember) | fake


def test_a_chain_calls_the_model_with_the_window() -> None:
    seen: list[list[BaseMessage]] = []
    fitted: list[cupel.Fitted[Any]] = []
    prompt = ChatPromptTemplate([("system", "Be brief."), ("placeholder", "{history}")])
    trimmer = fit_messages(budget=160, on_fit=fitted.append, **adapters.NEWEST)
    assert isinstance(trimmer, Runnable)
    chain = prompt | trimmer | model(seen)
    history = {"history": chat()[1:]}
    assert chain.invoke(history).text == "It is sunny."
    assert asyncio.run(chain.ainvoke(history)).text == "It is sunny."
    assert "".join(chunk.text for chunk in chain.stream(history)) == "It is sunny."
    assert [len(messages) for messages in seen] == [6, 6, 6]
    assert len(fitted) == 3 and fitted[0].messages == seen[0]
    chats = [{"history": chat()[1:n]} for n in (2, 10, 10)]
    assert [answer.text for answer in chain.batch(chats)] == ["It is sunny."] * 3
    assert [answer.text for answer in asyncio.run(chain.abatch(chats))] == ["It is sunny."] * 3
    assert sorted(len(messages) for messages in seen[3:]) == [2, 2, 6, 6, 6, 6]


def test_a_long_chat_leaves_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    def score(items: list[cupel.Item]) -> list[float]:
        threads.append(threading.current_thread())
        return [1.0] * len(items)

    *_, large = long_chat.requests(20)
    for messages, budget in ((large, 8_000), (chat(), 400)):
        trimmer = fit_messages(budget=budget, policy=cupel.Policy(score))
        asyncio.run(trimmer.ainvoke(messages))
    first, second = threads
    assert first is not threading.main_thread() and second is threading.main_thread()


def test_tools_are_counted() -> None:
    @tool
    def weather(city: str) -> str:
        """Returns the weather of a city, always, always, always."""
        return "sunny"

    def smallest(**options: Any) -> int:
        messages = [HumanMessage("Hi.")]
        return adapters.smallest_budget(lambda n: fit_messages(messages, budget=n, **options))

    assert smallest(tools=[weather]) > smallest() + 20


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    reuse = long_chat.Reuse()
    trimmer = fit_messages(budget=long_chat.BUDGET, model=long_chat.MODEL)
    for messages in long_chat.requests():
        window = trimmer.invoke(messages)
        reuse.add(long_chat.as_json([it.model_dump(exclude_defaults=True) for it in window]))
    reuse.check("LangChain, fit_messages")


def test_mandatory_messages_over_the_budget_raise() -> None:
    with pytest.raises(cupel.OverBudgetError):
        fit_messages(chat(), budget=20)
    with pytest.raises(cupel.OverBudgetError):
        asyncio.run(fit_messages(budget=20).ainvoke(chat()))


def test_wrong_options_are_refused_when_it_is_made() -> None:
    adapters.check_options(fit_messages)
    with pytest.raises(cupel.InvalidInputError, match="budget: invalid budget `8kk`"):
        fit_messages(chat(), budget="8kk")
