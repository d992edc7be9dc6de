"""Fits the messages that an agent of Microsoft's Agent Framework sends to a model."""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Unpack

from agent_framework import ChatContext, ChatMiddleware, Content, FunctionTool, Message

from cupel._adapter import Adapter, OnFit
from cupel._fit import Fitted
from cupel._offload import offload
from cupel._rebuild import fixed, rebuild
from cupel._types import BudgetLike, FitOptions

__all__ = ["CupelMiddleware"]


class CupelMiddleware(ChatMiddleware):
    """Fits the messages of each model call into a budget, for `Agent(middleware=[...])`.

    Takes the options of `cupel.fit`. The instructions and the tools are counted. The session
    keeps every message; shortened messages are copies. `on_fit` is called with each
    `cupel.Fitted`.

    >>> from agent_framework import Agent
    >>> from agent_framework.openai import OpenAIChatClient  # doctest: +SKIP
    >>> middleware = CupelMiddleware(budget="8k")
    >>> agent = Agent(OpenAIChatClient(), middleware=[middleware])  # doctest: +SKIP
    """

    def __init__(
        self,
        budget: BudgetLike | None = None,
        *,
        on_fit: OnFit | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        self._adapter = Adapter("CupelMiddleware", budget, options, on_fit).check()

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Calls the model with the messages that fit."""
        window, fitted = await offload(context.messages, partial(self._fit, context))
        self._adapter.report(fitted)
        context.messages = window
        await call_next()

    def _fit(self, context: ChatContext) -> tuple[list[Message], Fitted[Any]]:
        messages = list(context.messages)
        originals = [_openai(message) for message in messages]
        options = context.options or {}
        model = options.get("model") or getattr(context.client, "model", None)
        tools = options.get("tools") or []
        fitted = self._adapter.fit(
            originals,
            shape="openai",
            model=model if isinstance(model, str) else None,
            system=options.get("instructions"),
            tools=[_tool(tool) for tool in (tools if isinstance(tools, list) else [tools])],
        )

        def shortened(message: Message, texts: list[str | None]) -> Message:
            # A compaction that summarizes the copy has to know what it stands for.
            return context.record_message_replacement(_with_texts(message, texts), message)

        window = rebuild(fitted, originals, messages, copy=shortened, marker=_marker)
        return window, fitted


def _pieces(content: Content) -> Iterable[Content]:
    """Returns what has a block of its own: what a tool returned, or the content itself."""
    return content.items if content.type == "function_result" and content.items else [content]


def _openai(message: Message) -> dict[str, Any]:
    """Returns the message of Chat Completions that a message stands for."""
    blocks: list[dict[str, Any]] = []
    calls = []
    results = []
    for content in message.contents:
        if _is_call(content):
            arguments = content.arguments
            text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
            function = {"name": content.name or "", "arguments": text}
            calls.append({"id": content.call_id, "type": "function", "function": function})
            continue
        is_result = content.type == "function_result" and message.role == "tool"
        if is_result:
            results.append(content.call_id)
        pieces = _pieces(content) if is_result else [content]
        blocks += [_block(piece) for piece in pieces]
    found: dict[str, Any] = {"role": message.role, "content": blocks or ""}
    if message.author_name and message.role in ("user", "assistant"):
        found["name"] = message.author_name
    if calls:
        found["tool_calls"] = calls
    if results:
        found["tool_call_ids"] = results
    return found


def _is_call(content: Content) -> bool:
    # The result of a call that the provider executed is part of the same message.
    is_hosted = content.informational_only or content.hosted
    return content.type == "function_call" and not is_hosted


def _block(content: Content) -> dict[str, Any]:
    match content.type:
        case "text":
            return {"type": "text", "text": content.text or ""}
        case "function_result":
            return {"type": "text", "text": str(content.result or "")}
        case "text_reasoning" if content.text or not content.protected_data:
            return {"type": "thinking", "thinking": content.text or ""}
        case "text_reasoning":
            return {"type": "redacted_thinking", "data": content.protected_data}
        case "data" | "uri" if (content.media_type or "").startswith("image/"):
            return {"type": "image_url", "image_url": {"url": content.uri}}
        case "data" | "uri" | "hosted_file" | "hosted_vector_store":
            return {"type": "media"}
        case "usage":
            return {"type": "fallback"}  # counts nothing
    return fixed(json.dumps(content.to_dict(), default=str))


def _with_texts(message: Message, texts: list[str | None]) -> Message:
    """Returns a copy of a message with other texts."""
    new = iter(texts)
    contents = []
    for content in message.contents:
        if _is_call(content):
            contents.append(content)
        elif content.type == "function_result" and message.role == "tool" and content.items:
            items = [_with_text(item, next(new)) for item in content.items]
            result = copy.copy(content)
            result.items = items
            result.result = "\n".join(it.text for it in items if it.type == "text" and it.text)
            contents.append(result)
        else:
            contents.append(_with_text(content, next(new)))
    changed = copy.copy(message)
    changed.contents = contents
    return changed


def _with_text(content: Content, text: str | None) -> Content:
    key = "result" if content.type == "function_result" else "text"
    if text is None or getattr(content, key) == text:
        return content
    changed = copy.copy(content)
    setattr(changed, key, text)
    return changed


def _tool(tool: Any) -> dict[str, Any]:
    if isinstance(tool, FunctionTool):
        return tool.to_json_schema_spec()
    if isinstance(tool, Mapping):
        return dict(tool)
    # A tool of the provider: its definition is there.
    return {"type": "function", "function": {"name": getattr(tool, "name", type(tool).__name__)}}


def _marker(role: str, text: str) -> Message:
    return Message(role, [text])
