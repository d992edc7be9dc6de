"""Fits the messages of a pydantic-ai agent before each model request."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, Unpack

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters

from cupel._adapter import Adapter, OnFit
from cupel._fit import Fitted
from cupel._offload import offload
from cupel._rebuild import fixed, positions, texts
from cupel._types import BudgetLike, FitOptions

__all__ = ["CupelCapability"]


class CupelCapability(AbstractCapability[Any]):
    """Fits the messages that a model gets into a budget, for `Agent(capabilities=[...])`.

    Takes the options of `cupel.fit`. The instructions and the tools are counted. The history of
    the run keeps every message. A request is fitted by its parts: the kept parts are the
    agent's own objects. `on_fit` is called with each `cupel.Fitted`.

    >>> from pydantic_ai import Agent
    >>> agent = Agent("test", capabilities=[CupelCapability(budget="8k")])
    >>> agent.run_sync("Hello!").output
    'success (no tool calls)'
    """

    def __init__(
        self,
        budget: BudgetLike | None = None,
        *,
        on_fit: OnFit | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        self._adapter = Adapter("CupelCapability", budget, options, on_fit).check()

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Returns the request with the fitted messages."""
        call = partial(self._fit, request_context)
        messages, fitted = await offload(request_context.messages, call)
        self._adapter.report(fitted)
        return replace(request_context, messages=messages)

    def _fit(self, request_context: ModelRequestContext) -> tuple[list[ModelMessage], Fitted[Any]]:
        parameters = request_context.model_request_parameters
        parts = [*_parts(request_context.messages)]
        fitted = self._adapter.fit(
            [message for _, _, message in parts],
            shape="openai",
            model=request_context.model.model_name,
            system=_instructions(parameters),
            tools=[_tool(t) for t in (*parameters.function_tools, *parameters.output_tools)],
        )
        # The kept parts with the position of their message, which is `None` for a marker.
        kept: list[tuple[int | None, Any]] = []
        for index, message in positions(fitted):
            if index is None:
                kept.append((None, _marker(message)))
            else:
                owner, part, original = parts[index]
                kept.append((owner, part if message is original else _with_texts(part, message)))
        messages: list[ModelMessage] = []
        for owner, group in groupby(kept, key=lambda it: it[0]):
            new = [part for _, part in group]
            old = None if owner is None else request_context.messages[owner]
            if not isinstance(old, ModelRequest):
                messages += new
            elif len(new) == len(old.parts) and all(map(operator.is_, new, old.parts)):
                messages.append(old)
            else:
                messages.append(replace(old, parts=new))
        return messages, fitted


def _parts(messages: Iterable[ModelMessage]) -> Iterable[tuple[int, Any, dict[str, Any]]]:
    """Yields each part of a request and each response: its message's position, it, and its JSON."""
    for owner, message in enumerate(messages):
        if isinstance(message, ModelResponse):
            yield owner, message, _response(message)
        else:
            for part in message.parts:
                yield owner, part, _request_part(part)


def _request_part(part: Any) -> dict[str, Any]:
    match part:
        case SystemPromptPart():
            return {"role": "system", "content": part.content}
        case UserPromptPart(content=str()):
            return {"role": "user", "content": part.content}
        case UserPromptPart():
            return {"role": "user", "content": [_user_content(item) for item in part.content]}
        case ToolReturnPart():
            text = part.model_response_str()
            files = [_user_content(file) for file in part.files]
            # A text with files is one value for the framework: it stays as it is.
            content = [fixed(text), *files] if files else text
            return {"role": "tool", "tool_call_id": part.tool_call_id, "content": content}
        case RetryFeedbackPart():
            return {"role": "user", "content": [fixed(part.model_response())]}
    if part.part_kind == "retry-prompt" and part.tool_name is not None:
        content = [fixed(part.model_response())]
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": content}
    # Other parts record a change of instructions or tools: system messages are always kept.
    return {"role": "system", "content": [fixed(str(getattr(part, "content", "")))]}


def _user_content(item: Any) -> dict[str, Any]:
    match item:
        case str():
            return {"type": "text", "text": item}
        case TextContent():
            return {"type": "text", "text": item.content}
        case ImageUrl():
            return {"type": "image_url", "image_url": {"url": item.url}}
        case BinaryContent(is_image=True):
            return {"type": "image_url", "image_url": {"url": item.data_uri}}
    return {"type": "media"}


def _response(response: ModelResponse) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    calls = []
    for part in response.parts:
        match part:
            case ToolCallPart():
                function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
                calls.append({"id": part.tool_call_id, "type": "function", "function": function})
            case TextPart():
                content.append({"type": "text", "text": part.content})
            case ThinkingPart():
                content.append({"type": "thinking", "thinking": part.content})
            case _:
                value = getattr(part, "content", None) or getattr(part, "args", "")
                media = isinstance(value, BinaryContent)
                content.append({"type": "media"} if media else fixed(str(value)))
    return {"role": "assistant", "content": content or ""} | (
        {"tool_calls": calls} if calls else {}
    )


def _with_texts(part: Any, message: dict[str, Any]) -> Any:
    """Returns a copy of a part or response with the shortened texts of its message."""
    new = iter(texts(message))
    if isinstance(part, ModelResponse):
        parts = [p if isinstance(p, ToolCallPart) else _with_text(p, next(new)) for p in part.parts]
        return replace(part, parts=parts)
    if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
        return replace(part, content=[_with_text(item, next(new)) for item in part.content])
    return _with_text(part, next(new))


def _with_text(part: Any, text: str | None) -> Any:
    old = part if isinstance(part, str) else getattr(part, "content", None)
    if text is None or text == old:
        return part
    return text if isinstance(part, str) else replace(part, content=text)


def _marker(message: dict[str, Any]) -> ModelMessage:
    if message["role"] == "assistant":
        return ModelResponse(parts=[TextPart(message["content"])])
    return ModelRequest(parts=[UserPromptPart(message["content"])])


def _instructions(parameters: ModelRequestParameters) -> str | None:
    parts = [part.content for part in parameters.instruction_parts or []]
    if parameters.prompted_output_instructions:
        parts.append(parameters.prompted_output_instructions)
    return "\n\n".join(parts) or None


def _tool(tool: Any) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description or "",
        "parameters": tool.parameters_json_schema,
    }
    return {"type": "function", "function": function}
