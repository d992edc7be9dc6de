"""An agent behind a LiteLLM proxy that reads a log day by day, in windows of 4,000 tokens.

Install it with `pip install "cupel-context[litellm]" "litellm[proxy]"`. The proxy runs in this
process and its model is a stub. Your proxy has `CupelHook` in its configuration, and the agent has
its address.
"""

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from fastapi.testclient import TestClient
from litellm.proxy import proxy_server
from litellm.types.utils import ChatCompletionMessageToolCall, Choices, Message, ModelResponse

import cupel
from cupel.litellm import CupelHook

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


class Stub(litellm.CustomLLM):
    """Reads the log of each day, then answers."""

    async def acompletion(self, *given: Any, **options: Any) -> ModelResponse:
        day = len(windows)
        message = Message(content="The disk was full on day 5.")
        if day <= DAYS:
            function = {"name": "read_log", "arguments": json.dumps({"day": day})}
            call = ChatCompletionMessageToolCall(id=f"call-{day}", function=function)
            message = Message(content=None, tool_calls=[call])
        return ModelResponse(choices=[Choices(message=message)])


def start_proxy() -> TestClient:
    """Starts a proxy with the stub as its model."""
    litellm.callbacks = [CupelHook(budget="4k", on_fit=show)]
    litellm.custom_provider_map = [{"provider": "stub", "custom_handler": Stub()}]
    models = [{"model_name": "gpt-4o", "litellm_params": {"model": "stub/gpt-4o"}}]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(json.dumps({"model_list": models}))  # JSON is YAML
        asyncio.run(proxy_server.initialize(config=str(config)))
    return TestClient(proxy_server.app)


def run(client: TestClient, question: str) -> str:
    """Asks the model until it calls no tool any more."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You read logs."},
        {"role": "user", "content": question},
    ]
    parameters = {"type": "object", "properties": {"day": {"type": "integer"}}}
    function = {"name": "read_log", "parameters": parameters}
    tools = [{"type": "function", "function": function}]
    while True:
        request = {"model": "gpt-4o", "messages": messages, "tools": tools}
        response = client.post("/v1/chat/completions", json=request)
        response.raise_for_status()
        message = response.json()["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        for call in message["tool_calls"]:
            result = read_log(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


print(run(start_proxy(), "On which day was the disk full?"))
