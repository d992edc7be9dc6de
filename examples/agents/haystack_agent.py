"""An agent of Haystack that reads a log day by day, in windows of 4,000 tokens.

Install it with `pip install "cupel-context[haystack]"`.
The model is a stub: put yours in its place.
"""

import os
from typing import Any

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import tool

import cupel
from cupel.haystack import CupelChatGenerator

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


@tool
def read_log(day: int) -> str:
    """Returns the log of a day."""
    status = "no space left on device" if day == 5 else "ok"
    lines = [f"day {day}, job {job:02}: backup of volume {job}: {status}" for job in range(60)]
    return "\n".join(lines)


@component
class Stub:
    """Reads the log of each day, then answers."""

    model = "gpt-4o"

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        day = len(windows)
        if day > DAYS:
            return {"replies": [ChatMessage.from_assistant("The disk was full on day 5.")]}
        call = ToolCall("read_log", {"day": day}, id=f"call-{day}")
        return {"replies": [ChatMessage.from_assistant(tool_calls=[call])]}


model = CupelChatGenerator(Stub(), budget="4k", on_fit=show)
agent = Agent(chat_generator=model, tools=[read_log], system_prompt="You read logs.")
result = agent.run(messages=[ChatMessage.from_user("On which day was the disk full?")])
print(result["last_message"].text)
