"""`cupel.agent_framework` in agents of Microsoft's Agent Framework with an offline client."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatContext,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

import adapters
import cupel
import long_chat
from cupel.agent_framework import CupelMiddleware


class Offline(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Calls the tool once per question, then answers; remembers the messages it was sent."""

    model = "gpt-4o"

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[Message]] = []

    def _inner_get_response(self, *, messages: Any, **kwargs: Any) -> Any:
        async def answer() -> ChatResponse:
            self.seen.append(list(messages))
            if any(content.type == "function_result" for content in messages[-1].contents):
                contents: list[Any] = ["It is sunny."]
            else:
                call = Content.from_function_call("new", "weather", arguments={"city": "Bonn"})
                contents = [call]
            return ChatResponse(messages=[Message("assistant", contents)])

        return answer()


@tool
def weather(city: str) -> str:
    """Returns the weather of a city."""
    return "sunny"


def call(id: str, result: Any) -> list[Message]:
    made = Content.from_function_call(id, "weather", arguments={"city": "Rome"})
    return [
        Message("assistant", [made]),
        Message("tool", [Content.from_function_result(id, result=result)]),
    ]


def history() -> list[Message]:
    return [
        Message("user", ["first " * 60]),
        *call("c0", adapters.LONG),
        Message("assistant", ["It is cloudy. " * 20]),
        Message("user", ["And in Oslo?"]),
        *call("c1", "snow"),
        Message("assistant", ["It snows."]),
    ]


QUESTION = Message("user", ["And in Bonn?"])


def run(
    messages: list[Message] | None = None, agent: dict[str, Any] | None = None, **options: Any
) -> tuple[Offline, Any]:
    """Runs an agent, and returns the client and the messages of its session."""
    model = Offline()
    settings: dict[str, Any] = {"instructions": "Be brief.", "tools": [weather]} | (agent or {})
    made: Any = Agent(model, middleware=[CupelMiddleware(**options)], **settings)

    async def main() -> Any:
        session = made.create_session()
        chat = [*history(), QUESTION] if messages is None else messages
        await made.run(chat, session=session)
        [stored] = session.state.values()
        return stored["messages"]

    return model, asyncio.run(main())


def kinds(messages: list[Message]) -> list[str]:
    return [message.role for message in messages if message.role != "system"]


def test_the_model_gets_the_fitted_messages_and_the_session_keeps_all() -> None:
    before = [*history(), QUESTION]
    unchanged = [message.to_dict() for message in before]
    model, stored = run(before, budget=160, **adapters.NEWEST)
    step = ["assistant", "tool"]
    window = ["user", *step, "assistant", "user"]
    assert [kinds(messages) for messages in model.seen] == [window, window + step]
    assert [m.to_dict() for m in before] == unchanged
    assert kinds(stored) == kinds(before) + [*step, "assistant"]


def test_shortened_messages_are_copies() -> None:
    before = [*history(), QUESTION]
    unchanged = [message.to_dict() for message in before]
    model, stored = run(before, budget=450, keep_task=False)
    results = [c for m in model.seen[0] for c in m.contents if c.type == "function_result"]
    assert [result.call_id for result in results] == ["c0", "c1"]
    assert len(results[0].result) < len(adapters.LONG)
    assert results[0].result == results[0].items[0].text
    assert [m.to_dict() for m in before] == unchanged
    assert stored[2].contents[0].result == adapters.LONG


def fit(messages: list[Message], **options: Any) -> ChatContext:
    """Calls the middleware as a client does, and returns what it hands on."""
    context = ChatContext(Offline(), messages, {})

    async def call_next() -> None:
        pass

    asyncio.run(CupelMiddleware(**options).process(context, call_next))
    return context


def test_kept_messages_are_the_own_objects() -> None:
    before = [*history(), QUESTION]
    context = fit(before, budget=100, **adapters.NEWEST)
    assert all(a is b for a, b in zip(context.messages, before[4:], strict=True))
    context = fit(before, budget=400, keep_task=False)
    [short] = [m for m in context.messages if not any(m is old for old in before)]
    assert short.role == "tool" and short.contents[0].call_id == "c0"
    # What a compaction of the framework needs to know.
    [(copied, sources)] = context._message_replacements
    assert copied is short and [source is before[2] for source in sources] == [True]


def test_instructions_and_tools_are_counted() -> None:
    def smallest(**agent: Any) -> int:
        return adapters.smallest_budget(lambda budget: run([QUESTION], agent, budget=budget))

    plain = smallest()
    assert smallest(instructions="Be brief." + " Always." * 20) - plain == 40

    @tool
    def time(zone: str) -> str:
        """Returns the time of a zone."""
        return "noon"

    assert smallest(tools=[weather, time]) > plain + 20


def test_mandatory_messages_over_the_budget_raise() -> None:
    with pytest.raises(cupel.OverBudgetError):
        run(budget=20)


@pytest.mark.parametrize("budget", range(200, 900, 50))
def test_calls_stay_with_their_results(budget: int) -> None:
    model, _ = run(budget=budget, keep_task=False)
    for messages in model.seen:
        contents = [content for message in messages for content in message.contents]
        calls = [c.call_id for c in contents if c.type == "function_call"]
        assert calls == [c.call_id for c in contents if c.type == "function_result"]


def test_contents_of_all_kinds_are_read() -> None:
    image = Content.from_data(b"\x89PNG", media_type="image/png")
    hosted = Content("function_call", call_id="h", name="search", hosted=True, arguments="{}")
    before = [
        Message("user", ["Look:", image, Content.from_data(b"RIFF", media_type="audio/wav")]),
        Message("assistant", [Content.from_text_reasoning(text="Clouds?"), "I search.", hosted]),
        Message("assistant", [Content.from_function_result("h", result="found")]),
        *call("c0", [Content.from_text(adapters.LONG), image]),
        Message("assistant", [Content.from_text_reasoning(protected_data="AAAA"), "Nice."]),
        QUESTION,
    ]
    window = fit(before, budget=8000).messages
    assert all(a is b for a, b in zip(window, before, strict=True))
    window = fit(before, budget=8000, max_result=60).messages
    [result] = [m for m in window if m.role == "tool"][0].contents
    text, same = result.items
    assert len(text.text) < len(adapters.LONG) and same is image
    assert result.result == text.text


def test_a_marker_is_a_message() -> None:
    model, _ = run(budget=300, shorten="off", marker="[{n} left out]")
    assert any("left out]" in message.text for message in model.seen[0])
    assert all(isinstance(message, Message) for message in model.seen[0])


def test_a_stream_gets_the_window() -> None:
    seen: list[cupel.Fitted[Any]] = []
    middleware = CupelMiddleware(160, on_fit=seen.append, **adapters.NEWEST)

    class Streaming(Offline):
        def _inner_get_response(self, *, messages: Any, stream: bool, **kwargs: Any) -> Any:
            from agent_framework import ChatResponseUpdate, ResponseStream

            self.seen.append(list(messages))

            async def updates() -> Any:
                yield ChatResponseUpdate(role="assistant", contents=[Content.from_text("Sunny.")])

            return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

    model = Streaming()
    agent: Any = Agent(model, "Be brief.", middleware=[middleware])

    async def main() -> str:
        chat = [*history(), QUESTION]
        return "".join([update.text async for update in agent.run(chat, stream=True)])

    assert asyncio.run(main()) == "Sunny."
    assert len(seen) == 1 and seen[0].dropped


def test_the_callback_gets_each_window() -> None:
    seen: list[cupel.Fitted[Any]] = []
    model, _ = run(budget=450, keep_task=False, on_fit=seen.append)
    assert len(seen) == len(model.seen) == 2
    assert all(fitted.shortened and fitted.tokens_after <= 450 for fitted in seen)


def test_wrong_options_are_refused_when_it_is_made() -> None:
    adapters.check_options(CupelMiddleware)


def shown(message: Message) -> list[Any]:
    """Returns what a provider gets. `to_dict` has the text of a result twice."""
    contents = [(c.type, c.call_id, c.text or c.result, c.arguments) for c in message.contents]
    return [message.role, contents]


class Reviewer(Offline):
    """Calls both tools, then answers, in each turn."""

    def __init__(self) -> None:
        super().__init__()
        self.reuse = long_chat.Reuse()

    def _inner_get_response(self, *, messages: Any, **kwargs: Any) -> Any:
        async def answer() -> ChatResponse:
            turn, step = divmod(self.reuse.calls, 2)
            self.reuse.add(long_chat.as_json([shown(message) for message in messages]))
            if step:
                contents: list[Any] = [long_chat.answer(turn)]
            else:
                calls = [long_chat.call(turn, name) for name in ("read", "search")]
                contents = [
                    Content.from_function_call(id, name, arguments=arguments)
                    for id, name, arguments in calls
                ]
            return ChatResponse(messages=[Message("assistant", contents)])

        return answer()


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    model = Reviewer()
    agent: Any = Agent(
        model,
        long_chat.SYSTEM,
        tools=[tool(function) for function in long_chat.tools()],
        middleware=[CupelMiddleware(long_chat.BUDGET)],
    )

    async def main() -> None:
        session = agent.create_session()
        for turn in range(long_chat.TURNS):
            await agent.run(long_chat.question(turn), session=session)

    asyncio.run(main())
    model.reuse.check("Agent Framework, CupelMiddleware")


def test_the_example_of_the_documentation_runs() -> None:
    model = Offline()
    names = {"model": model, "weather": weather}
    agent = adapters.run_example("Agent Framework", names)["agent"]
    old = [*copy.copy(history()), Message("assistant", [adapters.OLD])]

    async def main() -> Any:
        return await agent.run([*old, Message("user", [adapters.QUESTION])])

    assert asyncio.run(main()).text == "It is sunny."
    texts = [message.text for message in model.seen[0]]
    assert texts[-1] == adapters.QUESTION and adapters.OLD not in texts


def test_the_agent_of_the_examples_runs() -> None:
    adapters.run_agent("agent_framework")


def test_the_docstrings_run_and_the_types_hold() -> None:
    adapters.check_module("cupel.agent_framework")
