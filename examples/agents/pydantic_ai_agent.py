"""An agent of pydantic-ai that reads a log day by day, in windows of 4,000 tokens.

Install it with `pip install "cupel-context[pydantic-ai]"`.
The model is a stub: put yours in its place.
"""

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import cupel
from cupel.pydantic_ai import CupelCapability

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


def stub(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Reads the log of each day, then answers."""
    day = len(windows)
    if day > DAYS:
        return ModelResponse(parts=[TextPart("The disk was full on day 5.")])
    return ModelResponse(parts=[ToolCallPart("read_log", {"day": day}, f"call-{day}")])


agent = Agent(
    FunctionModel(stub),
    instructions="You read logs.",
    tools=[read_log],
    capabilities=[CupelCapability(budget="4k", model="gpt-4o", on_fit=show)],
)
print(agent.run_sync("On which day was the disk full?").output)
