"""An agent of CrewAI that reads a log day by day, in windows of 4,000 tokens.

Install it with `pip install "cupel-context[crewai]"`.
The model is a stub: put yours in its place.
"""

import json
import os
from typing import Any

os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"

from crewai import Agent, BaseLLM
from crewai.events.utils.console_formatter import set_suppress_console_output
from crewai.tools import tool

import cupel
from cupel.crewai import CupelLLM

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


class Stub(BaseLLM):
    """Reads the log of each day, then answers."""

    def call(self, messages: Any, *given: Any, **options: Any) -> str:
        day = len(windows)
        if day > DAYS:
            return "Thought: I know.\nFinal Answer: The disk was full on day 5."
        arguments = json.dumps({"day": day})
        return f"Thought: I read on.\nAction: read_log\nAction Input: {arguments}"


set_suppress_console_output(True)
agent = Agent(
    role="Reader",
    goal="Find what went wrong.",
    backstory="You read logs.",
    llm=CupelLLM(Stub(model="gpt-4o"), budget="4k", on_fit=show),
    tools=[read_log],
)
print(agent.kickoff("On which day was the disk full?").raw)
