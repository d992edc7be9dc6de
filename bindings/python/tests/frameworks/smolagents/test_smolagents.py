"""The example of docs/python-frameworks.md for smolagents."""

from __future__ import annotations

from typing import Any

from smolagents import ChatMessage, MessageRole, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

import adapters
import long_chat


class Offline(Model):
    """Calls a tool three times, then answers; remembers the messages that it was sent."""

    seen: list[list[ChatMessage]] = []

    def generate(self, messages: list[ChatMessage], **options: Any) -> ChatMessage:
        self.seen.append(messages)
        done = len(self.seen) > 3
        function = ChatMessageToolCallFunction(
            name="final_answer" if done else "weather",
            arguments={"answer": "It is sunny."} if done else {"city": "Bonn"},
        )
        call = ChatMessageToolCall(function=function, id=str(len(self.seen)), type="function")
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


@tool
def weather(city: str) -> str:
    """Returns the weather of a city.

    Args:
        city: The name of the city.
    """
    return adapters.OLD[:16000]


def test_the_model_gets_the_window_of_the_memory() -> None:
    names = adapters.run_example("smolagents", {"model": Offline()})
    agent = ToolCallingAgent(tools=[weather], model=names["FittedModel"](), verbosity_level=0)
    Offline.seen.clear()
    assert agent.run(adapters.QUESTION) == "It is sunny."
    window, memory = Offline.seen[-1], agent.write_memory_to_messages()
    assert sum(len(str(m.content)) for m in window) < 8000 * 5 < 3 * 16000
    assert sum(len(str(m.content)) for m in memory) > 3 * 16000
    roles = [m.role.value for m in window]
    assert roles[:2] == ["system", "user"]
    assert roles.count("tool-call") == roles.count("tool-response") >= 1


class Reviewer(Model):
    """Calls both tools, then answers, in each turn."""

    reuse = long_chat.Reuse()

    def generate(self, messages: list[ChatMessage], **options: Any) -> ChatMessage:
        turn, step = divmod(self.reuse.calls, 2)
        self.reuse.add(long_chat.as_json([message.dict() for message in messages]))
        if step:
            chosen = [(f"answer-{turn}", "final_answer", {"answer": long_chat.answer(turn)})]
        else:
            chosen = [long_chat.call(turn, name) for name in ("read", "search")]
        calls = [
            ChatMessageToolCall(
                function=ChatMessageToolCallFunction(name=name, arguments=arguments),
                id=id,
                type="function",
            )
            for id, name, arguments in chosen
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    names = adapters.run_example("smolagents", {"model": Reviewer()})
    agent = ToolCallingAgent(
        tools=[tool(function) for function in long_chat.tools()],
        model=names["FittedModel"](),
        verbosity_level=0,
    )
    for turn in range(long_chat.TURNS):
        answer = agent.run(long_chat.question(turn), reset=False)
        assert answer == long_chat.answer(turn)
    Reviewer.reuse.check("smolagents, example")
