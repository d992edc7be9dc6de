"""An agent of Microsoft's Agent Framework that reads a log day by day, in windows of 4,000 tokens.

Install it with `pip install "cupel-context[agent-framework]"`.
The model is a stub: put yours in its place.
"""

import asyncio
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

import cupel
from cupel.agent_framework import CupelMiddleware

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


class Stub(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Reads the log of each day, then answers. The layers are in the order of real clients."""

    model = "gpt-4o"

    def _inner_get_response(self, *, messages: Any, **options: Any) -> Any:
        async def answer() -> ChatResponse:
            day = len(windows)
            content = Content.from_function_call(f"call-{day}", "read_log", arguments={"day": day})
            if day > DAYS:
                content = Content.from_text("The disk was full on day 5.")
            return ChatResponse(messages=[Message("assistant", [content])])

        return answer()


agent = Agent(
    Stub(),
    "You read logs.",
    tools=[read_log],
    middleware=[CupelMiddleware(budget="4k", on_fit=show)],
)
print(asyncio.run(agent.run("On which day was the disk full?")).text)
