"""An agent of LlamaIndex that reads a log day by day, in windows of 4,000 tokens.

Install it with `pip install "cupel-context[llama-index]"`.
The model is a stub: put yours in its place.
"""

import asyncio
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool

import cupel
from cupel.llama_index import CupelMemory

DAYS = 8
windows: list[cupel.Fitted[Any]] = []


def show(window: cupel.Fitted[Any]) -> None:
    """Prints what the agent gets of its memory, which it reads several times per run."""
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


def answer(messages: list[ChatMessage], **options: Any) -> ChatMessage:
    """Reads the log of the day that is asked for, then answers."""
    asked = [message.content or "" for message in messages if message.role == "user"][-1]
    if messages[-1].role == "tool" or not asked[-2].isdigit():
        return ChatMessage(role="assistant", content="The disk was full on day 5.")
    call = ToolCallBlock(
        tool_call_id=f"call-{asked[-2]}", tool_name="read_log", tool_kwargs={"day": asked[-2]}
    )
    return ChatMessage(role="assistant", blocks=[call])


tool = FunctionTool.from_defaults(read_log)
prompt = "You read logs."
memory = CupelMemory.from_defaults(
    budget="4k", system=prompt, tools=[tool], options={"model": "gpt-4o"}, on_fit=show
)
model = MockFunctionCallingLLM(response_generator=answer)
agent = FunctionAgent(tools=[tool], llm=model, system_prompt=prompt, streaming=False)


async def main() -> None:
    for day in range(1, DAYS + 1):
        await agent.run(f"Read the log of day {day}.", memory=memory)
    print(await agent.run("On which day was the disk full?", memory=memory))


asyncio.run(main())
