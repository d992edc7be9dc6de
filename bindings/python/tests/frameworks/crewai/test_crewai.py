"""The example of docs/python-frameworks.md for CrewAI."""

from __future__ import annotations

import json
import os
from typing import Any

os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["OTEL_SDK_DISABLED"] = "true"

from crewai import Agent, BaseLLM
from crewai.tools import tool

import adapters
import long_chat


class Offline(BaseLLM):
    """Calls a tool until it was called three times, then answers."""

    seen: list[list[dict[str, Any]]] = []

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        self.seen.append([dict(message) for message in messages])
        if len(self.seen) <= 3:
            return 'Thought: I need it.\nAction: weather\nAction Input: {"city": "Bonn"}'
        return "Thought: I know.\nFinal Answer: It is sunny."


def test_the_model_gets_the_window_of_the_messages() -> None:
    from crewai.hooks import unregister_before_llm_call_hook

    days = iter(range(9))

    @tool
    def weather(city: str) -> str:
        """Returns the weather of a city."""
        return f"Day {next(days)}. " + adapters.OLD[:16000]

    names = adapters.run_example("CrewAI", {})
    try:
        model = Offline(model="offline", seen=[])
        agent = Agent(
            role="Assistant", goal="Help.", backstory="Brief.", llm=model, tools=[weather]
        )
        result = agent.kickoff(adapters.QUESTION)
    finally:
        unregister_before_llm_call_hook(names["fit_messages"])
    assert result.raw == "It is sunny."
    sizes = [sum(len(str(m["content"])) for m in messages) for messages in model.seen]
    assert sizes[-1] < 8000 * 5 < 3 * 16000
    assert adapters.QUESTION in str(model.seen[-1])


class Reviewer(Offline):
    """Calls a tool, then answers, in each turn."""

    reuse: Any = None

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        turn, step = divmod(self.reuse.calls, 2)
        self.reuse.add(long_chat.as_json([dict(message) for message in messages]))
        if step:
            return f"Thought: I know.\nFinal Answer: {long_chat.answer(turn)}"
        arguments = json.dumps(long_chat.call(turn, "read")[2])
        return f"Thought: I need it.\nAction: read\nAction Input: {arguments}"


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    from crewai.hooks import unregister_before_llm_call_hook

    read, _ = long_chat.tools()
    names = adapters.run_example("CrewAI", {})
    model = Reviewer(model="offline", reuse=long_chat.Reuse())
    chat: list[Any] = []
    try:
        for turn in range(long_chat.TURNS):
            chat.append({"role": "user", "content": long_chat.question(turn)})
            agent = Agent(
                role="Reviewer",
                goal="Review.",
                backstory=long_chat.SYSTEM,
                llm=model,
                tools=[tool(read)],
            )
            result = agent.kickoff(chat)
            assert result.raw == long_chat.answer(turn)
            chat = [message for message in result.messages if message["role"] != "system"]
    finally:
        unregister_before_llm_call_hook(names["fit_messages"])
    model.reuse.check("CrewAI, example")
