"""Fits the messages that a chat generator of Haystack gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from haystack import component, default_from_dict, default_to_dict
from haystack.core.serialization import component_to_dict
from haystack.dataclasses import (
    ChatMessage,
    ChatRole,
    ImageContent,
    ReasoningContent,
    StreamingCallbackT,
    TextContent,
    ToolCall,
    ToolCallResult,
)
from haystack.tools import ToolsType, flatten_tools_or_toolsets
from haystack.utils import deserialize_callable, serialize_callable
from haystack.utils.deserialization import deserialize_component_inplace

from cupel._adapter import Adapter, OnFit
from cupel._fit import Fitted
from cupel._offload import offload
from cupel._rebuild import rebuild
from cupel._types import BudgetLike, FitOptions

__all__ = ["CupelChatGenerator"]


@component
class CupelChatGenerator:
    """A chat generator that fits the messages into a budget before it calls another one.

    Takes the options of `cupel.fit`. It stands for the other generator in pipelines and in
    agents: the state of an agent keeps every message. The tools are counted. Kept messages are the
    caller's own objects; shortened messages are copies. `on_fit` is called with each
    `cupel.Fitted`.

    >>> from haystack.components.generators.chat import MockChatGenerator
    >>> generator = CupelChatGenerator(MockChatGenerator("Hello!", model="gpt-4o"), budget="8k")
    >>> generator.run([ChatMessage.from_user("Hi.")])["replies"][0].text
    'Hello!'
    """

    def __init__(
        self,
        chat_generator: Any,
        budget: BudgetLike | None = None,
        *,
        on_fit: OnFit | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        self._adapter = Adapter("CupelChatGenerator", budget, options, on_fit).check()
        self.chat_generator = chat_generator

    def __getattr__(self, name: str) -> Any:
        # `warm_up`, `close`, `model` and others that a generator may have or not. The names of
        # Haystack's own marks, and those that `copy` looks for, are those of this object.
        if name == "chat_generator" or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.chat_generator, name)

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage] | str,
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        tools: ToolsType | None = None,
    ) -> dict[str, Any]:
        """Calls the other generator with the messages that fit."""
        chat = [ChatMessage.from_user(messages)] if isinstance(messages, str) else messages
        window, fitted = self._fit(chat, tools)
        self._adapter.report(fitted)
        given = _given(streaming_callback, generation_kwargs, tools)
        found: dict[str, Any] = self.chat_generator.run(messages=window, **given)
        return found

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage] | str,
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        tools: ToolsType | None = None,
    ) -> dict[str, Any]:
        """Calls the other generator with the messages that fit."""
        chat = [ChatMessage.from_user(messages)] if isinstance(messages, str) else messages
        window, fitted = await offload(chat, partial(self._fit, chat, tools))
        self._adapter.report(fitted)
        given = _given(streaming_callback, generation_kwargs, tools)
        run_async = getattr(self.chat_generator, "run_async", None)
        if run_async is not None:
            found: dict[str, Any] = await run_async(messages=window, **given)
            return found
        return await asyncio.to_thread(self.chat_generator.run, messages=window, **given)

    def to_dict(self) -> dict[str, Any]:
        """Returns the component as a pipeline stores it."""
        on_fit = self._adapter.on_fit
        return default_to_dict(
            self,
            chat_generator=component_to_dict(self.chat_generator, "chat_generator"),
            budget=self._adapter.budget,
            on_fit=on_fit and serialize_callable(on_fit),
            **self._adapter.options,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CupelChatGenerator:
        """Creates the component as a pipeline stored it."""
        fields = data["init_parameters"]
        deserialize_component_inplace(fields, key="chat_generator")
        if fields.get("on_fit"):
            fields["on_fit"] = deserialize_callable(fields["on_fit"])
        created: CupelChatGenerator = default_from_dict(cls, data)
        return created

    def _fit(
        self, messages: list[ChatMessage], tools: ToolsType | None
    ) -> tuple[list[ChatMessage], Fitted[Any]]:
        originals = [_openai(message) for message in messages]
        model = getattr(self.chat_generator, "model", None)
        known = flatten_tools_or_toolsets(tools or getattr(self.chat_generator, "tools", None))
        fitted = self._adapter.fit(
            originals,
            shape="openai",
            model=model if isinstance(model, str) else None,
            tools=[{"type": "function", "function": tool.tool_spec} for tool in known],
        )
        return rebuild(fitted, originals, messages, copy=_with_texts, marker=_marker), fitted


def _given(callback: Any, generation_kwargs: Any, tools: Any) -> dict[str, Any]:
    """Returns the arguments that are given: a generator may not have the others."""
    all_of_them = {
        "streaming_callback": callback,
        "generation_kwargs": generation_kwargs,
        "tools": tools,
    }
    return {name: value for name, value in all_of_them.items() if value is not None}


def _openai(message: ChatMessage) -> dict[str, Any]:
    """Returns the message of Chat Completions that a message stands for."""
    blocks: list[dict[str, Any]] = []
    calls = []
    results = []
    for part in message._content:
        if isinstance(part, ToolCall):
            function = {"name": part.tool_name, "arguments": json.dumps(part.arguments)}
            calls.append({"id": _id(part), "type": "function", "function": function})
        else:
            blocks += [_block(piece) for piece in _pieces(part)]
        if isinstance(part, ToolCallResult):
            results.append(_id(part.origin))
    found: dict[str, Any] = {"role": message.role.value, "content": blocks or ""}
    if message.name is not None:
        found["name"] = message.name
    if calls:
        found["tool_calls"] = calls
    if results:
        found["tool_call_ids"] = results
    return found


def _id(call: ToolCall) -> str:
    # Some models give their calls no ids. A result has the call itself.
    return call.id or f"{call.tool_name} {json.dumps(call.arguments, sort_keys=True)}"


def _pieces(part: Any) -> Iterator[Any]:
    """Yields what has a block of its own: the part itself, or what a tool returned."""
    if isinstance(part, ToolCallResult) and not isinstance(part.result, str):
        yield from part.result
    else:
        yield part


def _block(piece: Any) -> dict[str, Any]:
    match piece:
        case TextContent():
            return {"type": "text", "text": piece.text}
        case ToolCallResult():
            return {"type": "text", "text": piece.result}
        case ReasoningContent():
            return {"type": "thinking", "thinking": piece.reasoning_text}
        case ImageContent():
            url = f"data:{piece.mime_type or 'image/jpeg'};base64,{piece.base64_image}"
            return {"type": "image_url", "image_url": {"url": url, "detail": piece.detail}}
    return {"type": "media"}


def _with_texts(message: ChatMessage, texts: list[str | None]) -> ChatMessage:
    """Returns a copy of a message with other texts."""
    new = iter(texts)
    parts: list[Any] = []
    for part in message._content:
        if isinstance(part, ToolCall):
            parts.append(part)
        elif isinstance(part, ToolCallResult) and not isinstance(part.result, str):
            result = [_with_text(piece, next(new)) for piece in part.result]
            parts.append(replace(part, result=result))
        else:
            parts.append(_with_text(part, next(new)))
    return replace(message, _content=parts)


def _with_text(piece: Any, text: str | None) -> Any:
    if text is None:
        return piece
    key = "result" if isinstance(piece, ToolCallResult) else "text"
    return piece if getattr(piece, key) == text else replace(piece, **{key: text})


def _marker(role: str, text: str) -> ChatMessage:
    return ChatMessage(_role=ChatRole(role), _content=[TextContent(text)])
