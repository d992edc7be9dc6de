"""An agent of the Agent Development Kit that reads a log day by day, in windows of 4,000 tokens.

Install it with `pip install "cupel-context[google-adk]"`.
The model is a stub: put yours in its place.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import Agent
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

import cupel
from cupel.google_adk import CupelPlugin

DAYS = 8
windows: list[cupel.Fitted[Any]] = []


def show(window: cupel.Fitted[Any]) -> None:
    """Prints what a call of the model gets of the messages."""
    windows.append(window)
    print(
        f"call {len(windows)}: {len(window.kept)} kept, {len(window.shortened)} shortened,"
        f" {len(window.dropped)} dropped,"
        f" {window.tokens_after:,} of {window.tokens_before:,} tokens"
    )


def read_log(day: int) -> str:
    """Returns the log of a day."""
    status = "no space left on device" if day == 5 else "ok"
    lines = [f"day {day}, job {job:02}: backup of volume {job}: {status}" for job in range(60)]
    return "\n".join(lines)


class Stub(BaseLlm):
    """Reads the log of each day, then answers."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        day = len(windows)
        if day > DAYS:
            part = types.Part(text="The disk was full on day 5.")
        else:
            part = types.Part.from_function_call(name="read_log", args={"day": day})
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


agent = Agent(
    name="reader",
    model=Stub(model="gemini-2.5-flash"),
    instruction="You read logs.",
    tools=[read_log],
)
plugin = CupelPlugin(budget="4k", on_fit=show)
runner = InMemoryRunner(app=App(name="logs", root_agent=agent, plugins=[plugin]))


async def main() -> None:
    session = await runner.session_service.create_session(app_name="logs", user_id="user")
    question = types.Content(
        role="user", parts=[types.Part(text="On which day was the disk full?")]
    )
    events = runner.run_async(user_id="user", session_id=session.id, new_message=question)
    answer = [event async for event in events][-1]
    print(answer.content.parts[0].text)


asyncio.run(main())
