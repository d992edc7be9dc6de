"""The example of docs/python-frameworks.md for the Agent Framework."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import (
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

import adapters
import long_chat


class Offline(ChatMiddlewareLayer, FunctionInvocationLayer, BaseChatClient):
    """Calls the tool once, then answers; remembers the messages that it was sent."""

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


def test_the_model_gets_the_window_of_the_history() -> None:
    history = [
        Message("user", ["What is the weather in Rome?"]),
        Message("assistant", [Content.from_function_call("1", "weather", arguments={})]),
        Message("tool", [Content.from_function_result("1", result="sunny")]),
        Message("assistant", [adapters.OLD]),
    ]
    model = Offline()
    agent = adapters.run_example("Agent Framework", {"model": model, "weather": weather})["agent"]

    async def main() -> Any:
        return await agent.run([*history, Message("user", [adapters.QUESTION])])

    assert asyncio.run(main()).text == "It is sunny."
    step = ["user", "assistant", "tool"]
    assert [[m.role for m in messages if m.role != "system"] for messages in model.seen] == [
        [*step, "user"],
        [*step, "user", "assistant", "tool"],
    ]


class Reviewer(Offline):
    """Calls both tools, then answers, in each turn."""

    def __init__(self) -> None:
        super().__init__()
        self.reuse = long_chat.Reuse()

    def _inner_get_response(self, *, messages: Any, **kwargs: Any) -> Any:
        async def answer() -> ChatResponse:
            turn, step = divmod(self.reuse.calls, 2)
            self.reuse.add(long_chat.as_json([message.to_dict() for message in messages]))
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
    read, search = (tool(function) for function in long_chat.tools())
    names = adapters.run_example("Agent Framework", {"model": model, "weather": read})
    agent = names["agent"]

    async def main() -> None:
        session = agent.create_session()
        for turn in range(long_chat.TURNS):
            await agent.run(long_chat.question(turn), session=session, tools=[search])

    asyncio.run(main())
    model.reuse.check("Agent Framework, example")
