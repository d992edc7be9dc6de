"""An agent of smolagents that reads a log day by day, in windows of 4,000 tokens.

Install it with `pip install "cupel-context[smolagents]"`.
The model is a stub: put yours in its place.
"""

from typing import Any

from smolagents import ChatMessage, MessageRole, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

import cupel
from cupel.smolagents import CupelModel

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
    """Returns the log of a day.

    Args:
        day: The number of the day.
    """
    status = "no space left on device" if day == 5 else "ok"
    lines = [f"day {day}, job {job:02}: backup of volume {job}: {status}" for job in range(60)]
    return "\n".join(lines)


class Stub(Model):
    """Reads the log of each day, then answers."""

    def generate(self, messages: list[ChatMessage], **options: Any) -> ChatMessage:
        day = len(windows)
        name, arguments = "read_log", {"day": day}
        if day > DAYS:
            name, arguments = "final_answer", {"answer": "The disk was full on day 5."}
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        call = ChatMessageToolCall(function=function, id=f"call-{day}", type="function")
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


agent = ToolCallingAgent(
    tools=[read_log],
    model=CupelModel(Stub(model_id="gpt-4o"), budget="4k", on_fit=show),
    verbosity_level=0,
)
print(agent.run("On which day was the disk full?"))
