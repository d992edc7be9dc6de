"""An agent of LangChain that reads a log day by day, in windows of 4,000 tokens.

Install it with `pip install "cupel-context[langchain]"`.
The model is a stub: put yours in its place.
"""

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

import cupel
from cupel.langchain import CupelMiddleware

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


class Stub(BaseChatModel):
    """Reads the log of each day, then answers."""

    model_name: str = "gpt-4o"

    @property
    def _llm_type(self) -> str:
        return "stub"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, *given: Any, **options: Any) -> ChatResult:
        day = len(windows)
        answer = AIMessage("The disk was full on day 5.")
        if day <= DAYS:
            call = {"name": "read_log", "args": {"day": day}, "id": f"call-{day}"}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


agent = create_agent(
    Stub(),
    [read_log],
    system_prompt="You read logs.",
    middleware=[CupelMiddleware(budget="4k", on_fit=show)],
)
question = ("user", "On which day was the disk full?")
result = agent.invoke({"messages": [question]}, {"recursion_limit": 99})
print(result["messages"][-1].text)
