"""The example of docs/python-frameworks.md for the Agent Development Kit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.events import Event
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

import adapters
import long_chat


class Offline(BaseLlm):
    """Calls the tool once, then answers; remembers the contents that it was sent."""

    seen: list[Any] = []

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.seen.append(llm_request)
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            part = types.Part(text="It is sunny.")
        else:
            part = types.Part.from_function_call(name="weather", args={"city": "Bonn"})
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def weather(city: str) -> str:
    """Returns the weather of a city."""
    return "sunny"


def test_the_model_gets_the_window_of_the_session() -> None:
    model = Offline(model="gemini-2.5-flash", seen=[])
    agent = adapters.run_example("Agent Development Kit", {"model": model, "weather": weather})[
        "agent"
    ]
    runner = InMemoryRunner(agent=agent, app_name="app")

    async def main() -> Any:
        session = await runner.session_service.create_session(app_name="app", user_id="user")
        old = [("user", "Hi."), ("model", adapters.OLD), ("user", "Go on."), ("model", "Gladly.")]
        for role, text in old:
            content = types.Content(role=role, parts=[types.Part(text=text)])
            author = "user" if role == "user" else "assistant"
            event = Event(author=author, content=content, invocation_id="old")
            await runner.session_service.append_event(session, event)
        question = types.Content(role="user", parts=[types.Part(text=adapters.QUESTION)])
        async for event in runner.run_async(
            user_id="user", session_id=session.id, new_message=question
        ):
            last = event
        stored = await runner.session_service.get_session(
            app_name="app", user_id="user", session_id=session.id
        )
        return last, stored

    last, stored = asyncio.run(main())
    assert last.content.parts[0].text == "It is sunny."
    for request in model.seen:
        texts = [part.text or "" for content in request.contents for part in content.parts]
        assert adapters.OLD not in texts
        assert adapters.QUESTION in texts
    assert len(stored.events) == 4 + 4


class Reviewer(Offline):
    """Calls both tools, then answers, in each turn."""

    reuse: Any = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        turn, step = divmod(self.reuse.calls, 2)
        system = llm_request.config.system_instruction
        contents = [content.model_dump(exclude_none=True) for content in llm_request.contents]
        self.reuse.add(long_chat.as_json([system, *contents]))
        calls = [long_chat.call(turn, name) for name in ("read", "search")]
        if step:
            parts = [types.Part(text=long_chat.answer(turn))]
        else:
            parts = [types.Part.from_function_call(name=n, args=a) for _, n, a in calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def test_a_long_chat_reuses_the_prefix_of_its_windows() -> None:
    model = Reviewer(model="gemini-2.5-flash", reuse=long_chat.Reuse())
    read, search = long_chat.tools()
    names = adapters.run_example("Agent Development Kit", {"model": model, "weather": read})
    agent = names["agent"]
    agent.tools.append(search)
    runner = InMemoryRunner(agent=agent, app_name="app")

    async def main() -> None:
        session = await runner.session_service.create_session(app_name="app", user_id="user")
        for turn in range(long_chat.TURNS):
            question = types.Content(role="user", parts=[types.Part(text=long_chat.question(turn))])
            async for _ in runner.run_async(
                user_id="user", session_id=session.id, new_message=question
            ):
                pass

    asyncio.run(main())
    model.reuse.check("Agent Development Kit, example")
