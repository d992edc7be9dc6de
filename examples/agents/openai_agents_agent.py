"""An agent of the OpenAI Agents SDK that reads a log day by day, in windows of 4,000 tokens.

Install it with `pip install "cupel-context[openai-agents]"`.
The model is a stub: put yours in its place.
"""

import json
from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

import cupel
from cupel.openai_agents import input_filter

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


@function_tool
def read_log(day: int) -> str:
    """Returns the log of a day."""
    status = "no space left on device" if day == 5 else "ok"
    lines = [f"day {day}, job {job:02}: backup of volume {job}: {status}" for job in range(60)]
    return "\n".join(lines)


class Stub(Model):
    """Reads the log of each day, then answers."""

    async def get_response(self, *given: Any, **options: Any) -> ModelResponse:
        day = len(windows)
        output: Any = ResponseFunctionToolCall(
            type="function_call",
            call_id=f"call-{day}",
            name="read_log",
            arguments=json.dumps({"day": day}),
        )
        if day > DAYS:
            answer = ResponseOutputText(
                type="output_text", text="The disk was full on day 5.", annotations=[]
            )
            output = ResponseOutputMessage(
                id="answer", type="message", role="assistant", status="completed", content=[answer]
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *given: Any, **options: Any) -> Any:
        raise NotImplementedError


set_tracing_disabled(True)
agent = Agent(name="reader", instructions="You read logs.", model=Stub(), tools=[read_log])
fit = input_filter(budget="4k", model="gpt-4o", on_fit=show)
result = Runner.run_sync(
    agent,
    "On which day was the disk full?",
    run_config=RunConfig(call_model_input_filter=fit),
    max_turns=99,
)
print(result.final_output)
