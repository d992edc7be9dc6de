"""`CupelMiddleware` in agents of langchain with an offline model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import adapters
import cupel
import long_chat
from cupel.langchain import CupelMiddleware


class Model(GenericFakeChatModel):
    """Answers from a list and remembers the messages that it was sent."""

    seen: list[list[Any]] = []

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self.seen.append(messages)
        return super()._generate(messages, *args, **kwargs)


@tool
def weather(city: str) -> str:
    """Returns the weather of a city."""
    return "sunny " * 30


def answers() -> Iterator[AIMessage]:
    call = {"name": "weather", "args": {"city": "Bonn"}, "id": "c2"}
    yield AIMessage("", tool_calls=[call])
    while True:
        yield AIMessage("It is sunny.")


def history() -> list[AnyMessage]:
    def call(city: str, id: str) -> dict[str, Any]:
        return {"name": "weather", "args": {"city": city}, "id": id}

    return [
        HumanMessage("first " * 60, id="0"),
        AIMessage("", tool_calls=[call("Rome", "c0")], id="1"),
        ToolMessage("\n".join(f"line {i}: cloudy" for i in range(60)), tool_call_id="c0", id="2"),
        AIMessage("It is cloudy. " * 20, id="3"),
        HumanMessage("And in Oslo?", id="4"),
        AIMessage("", tool_calls=[call("Oslo", "c1")], id="5"),
        ToolMessage("snow", tool_call_id="c1", id="6"),
        AIMessage("It snows.", id="7"),
        HumanMessage("And in Bonn?", id="8"),
    ]


def run(middleware: CupelMiddleware, is_async: bool, **options: Any) -> tuple[Model, Any]:
    model = Model(messages=answers(), seen=[])
    agent = create_agent(
        model,
        [weather],
        system_prompt="Be brief.",
        middleware=[middleware],
        checkpointer=InMemorySaver(),
        **options,
    )
    config: Any = {"configurable": {"thread_id": "1"}}
    chat: Any = {"messages": history()}
    if is_async:
        asyncio.run(agent.ainvoke(chat, config))
    else:
        agent.invoke(chat, config)
    return model, agent.get_state(config).values["messages"]


@pytest.mark.parametrize("is_async", [False, True])
def test_the_model_gets_the_fitted_messages_and_the_state_keeps_all(is_async: bool) -> None:
    model, state = run(CupelMiddleware(budget=260, keep_task=False, shorten="off"), is_async)
    assert [[m.type for m in messages] for messages in model.seen] == [
        ["system", "human", "ai", "tool", "ai", "human"],
        ["system", "human", "ai", "tool", "ai", "human", "ai", "tool"],
    ]
    assert [m.type for m in state] == [m.type for m in history()] + ["ai", "tool", "ai"]
    assert state[:9] == history()


@pytest.mark.parametrize("is_async", [False, True])
def test_shortened_messages_are_copies(is_async: bool) -> None:
    model, state = run(CupelMiddleware(budget=500, keep_task=False), is_async)
    results = [m for m in model.seen[0] if isinstance(m, ToolMessage)]
    assert [m.tool_call_id for m in results] == ["c0", "c1"]
    assert len(results[0].content) < len(history()[2].content)
    assert state[:9] == history()


def test_kept_messages_are_the_agents_own_objects() -> None:
    sent: list[Any] = []

    class Spy(CupelMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            def spy(fitted: Any) -> Any:
                sent.append((request, fitted))
                return handler(fitted)

            return super().wrap_model_call(request, spy)

    run(Spy(budget=260, keep_task=False, shorten="off"), False)
    request, fitted = sent[-1]
    assert len(fitted.messages) < len(request.messages)
    assert all(any(m is r for r in request.messages) for m in fitted.messages)
    assert fitted.system_message is request.system_message


def test_the_system_message_and_the_tools_are_counted() -> None:
    def smallest_budget(system: str, tools: list[Any]) -> int:
        """Returns the smallest budget that keeps the mandatory messages."""
        for budget in range(1, 400):
            model = Model(messages=iter([AIMessage("ok")]), seen=[])
            middleware = [CupelMiddleware(budget=budget)]
            agent = create_agent(model, tools, system_prompt=system, middleware=middleware)
            try:
                agent.invoke({"messages": [HumanMessage("Hi.")]})
            except cupel.OverBudgetError:
                continue
            return budget
        raise AssertionError("no budget is enough")

    plain = smallest_budget("Be brief.", [])
    longer = smallest_budget("Be brief." + " Always." * 20, [])
    assert longer - plain == 40
    assert smallest_budget("Be brief.", [weather]) > plain + 20


@pytest.mark.parametrize("is_async", [False, True])
def test_mandatory_messages_over_the_budget_raise(is_async: bool) -> None:
    with pytest.raises(cupel.OverBudgetError):
        run(CupelMiddleware(budget=20), is_async)


@pytest.mark.parametrize("budget", range(150, 1000, 50))
def test_tool_pairs_stay_whole(budget: int) -> None:
    model, _ = run(CupelMiddleware(budget=budget, keep_task=False), False)
    for messages in model.seen:
        calls = [c["id"] for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]
        results = [m.tool_call_id for m in messages if isinstance(m, ToolMessage)]
        assert calls == results
        assert isinstance(messages[0], SystemMessage)


class Reviewer(Model):
    """Calls both tools, then answers, in each turn."""

    reuse: Any = None

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        turn, step = divmod(self.reuse.calls, 2)
        self.reuse.add(
            long_chat.as_json([message.model_dump(exclude_defaults=True) for message in messages])
        )
        calls = [long_chat.call(turn, name) for name in ("read", "search")]
        answer = AIMessage(
            long_chat.answer(turn) if step else "",
            tool_calls=[] if step else [{"id": i, "name": n, "args": a} for i, n, a in calls],
        )
        return ChatResult(generations=[ChatGeneration(message=answer)])


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    model = Reviewer(messages=iter(()), reuse=long_chat.Reuse())
    agent: Any = create_agent(
        model,
        [tool(function) for function in long_chat.tools()],
        system_prompt=long_chat.SYSTEM,
        middleware=[CupelMiddleware(budget=long_chat.BUDGET, model=long_chat.MODEL)],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "1"}}
    for turn in range(long_chat.TURNS):
        agent.invoke({"messages": [HumanMessage(long_chat.question(turn))]}, config)
    model.reuse.check("LangChain, CupelMiddleware")


def test_the_examples_of_the_documentation_run() -> None:
    old: list[AnyMessage] = [
        HumanMessage("What is the weather in Rome?"),
        AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Rome"}, "id": "c1"}]),
        ToolMessage("sunny", tool_call_id="c1"),
        AIMessage(adapters.OLD),
    ]
    model = Model(messages=answers(), seen=[])
    names = {"model": model, "weather": weather, "history": old}
    result = adapters.run_example("LangChain", names)["result"]["messages"]
    texts = [m.text for m in model.seen[0]]
    assert texts[-1] == adapters.QUESTION and adapters.OLD not in texts
    assert result[:4] == old and result[-1].text == "It is sunny."
    question = HumanMessage(adapters.QUESTION)
    names = {"model": Model(messages=answers(), seen=[]), "weather": weather, "history": old}
    names = adapters.run_example("fit_messages", names)
    assert names["result"].tool_calls
    texts = [m.text for m in names["model"].seen[0]]
    assert (texts[0], texts[-1]) == ("Be brief.", adapters.QUESTION) and adapters.OLD not in texts
    assert names["window"][:3] == old[:3] and adapters.OLD not in [m.text for m in names["window"]]
    names = {"history": [*old, question]}
    assert adapters.run_example("trim_messages", names)["window"] == [question]


def test_the_agent_of_the_examples_runs() -> None:
    adapters.run_agent("langchain")


def test_wrong_options_are_refused_when_it_is_made() -> None:
    adapters.check_options(CupelMiddleware)


@pytest.mark.parametrize("is_async", [False, True])
def test_the_callback_gets_each_window(is_async: bool) -> None:
    seen: list[cupel.Fitted[Any]] = []
    model, _ = run(CupelMiddleware(budget=500, keep_task=False, on_fit=seen.append), is_async)
    # The system message is counted and not part of the list.
    assert [fitted.messages for fitted in seen] == [messages[1:] for messages in model.seen]


@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_gets_the_summaries_and_the_counts_of_functions(is_async: bool) -> None:
    asked: list[Any] = []

    def brief(messages: list[Any]) -> str:
        asked.extend(messages)
        return "They asked for weather."

    async def later(messages: list[Any]) -> str:
        await asyncio.sleep(0)
        return brief(messages)

    def words(text: str) -> int:
        return len(text.split())

    summarize = later if is_async else brief
    middleware = CupelMiddleware(140, counter=words, summarize=summarize, summary_tokens=10)
    model, _ = run(middleware, is_async)
    assert asked and {message.id for message in asked} <= {str(n) for n in range(9)}
    assert any("They asked for weather." in str(m.content) for m in model.seen[-1])


def test_the_docstrings_run_and_the_types_hold() -> None:
    adapters.check_module("cupel._langchain_middleware")
