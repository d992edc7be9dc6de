"""Messages of callers: what the engine reads of them, and copies with other texts."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def is_langchain(message: object) -> bool:
    """Returns whether a message is one of langchain-core's."""
    messages = sys.modules.get("langchain_core.messages")
    return messages is not None and isinstance(message, messages.BaseMessage)


def as_document(message: Any) -> Any:
    """Returns a message as the engine reads it; the extension dumps models itself."""
    if is_langchain(message):
        return {"type": message.type, "data": message.model_dump(mode="json", exclude_unset=True)}
    return message


def as_chat(
    messages: Sequence[Any] | Mapping[str, Any],
    *,
    model: str | None,
    tools: Sequence[Any] | None,
    system: Any,
    shape: str | None,
) -> tuple[Any, Sequence[Any], int]:
    """Returns the chat as the engine reads it, its messages, and how many of those it adds in front."""
    if isinstance(messages, Mapping):
        request = dict(messages)
        key = message_key(request)
        listed: Sequence[Any] = request[key] if key else []
        if tools is not None:
            request["tools"] = list(tools)
    else:
        listed = messages if isinstance(messages, (list, tuple)) else list(messages)
        is_responses = shape == "openai-responses"
        key = {"openai-responses": "input", "gemini": "contents"}.get(shape or "", "messages")
        request = {key: listed}
        if tools is not None:
            request["tools"] = list(tools)
        if is_responses and system is not None:
            request["instructions"], system = system, None
    if key is None:
        return request, [], 0
    documents = [as_document(message) for message in listed]
    added = 0
    if system is not None:
        if shape in ("anthropic", "gemini", "bedrock") or "system" in request:
            request["system"] = system
        else:
            first = listed[0] if listed else None
            documents.insert(0, _system_document(system, langchain=is_langchain(first)))
            added = 1
    if not isinstance(messages, Mapping) and set(request) == {key} and key == "messages":
        return documents, listed, added
    request[key] = documents
    if model is not None:
        request.setdefault("model", model)
    return request, listed, added


def _system_document(system: Any, *, langchain: bool) -> Any:
    if not isinstance(system, str):
        return as_document(system)
    if langchain:
        return {"type": "system", "data": {"type": "system", "content": system}}
    return {"role": "system", "content": system}


def message_key(request: Mapping[str, Any]) -> str | None:
    """Returns the key of the messages in a request."""
    return next((key for key in ("messages", "input", "contents") if key in request), None)


def with_texts(message: Any, texts: Sequence[tuple[str, str]]) -> Any:
    """Returns a copy of a message with other texts. What is not changed is shared with the message."""
    for path, text in texts:
        steps: list[str | int] = [
            name if name else int(index) for name, index in _STEP.findall(path)
        ]
        if is_langchain(message) and steps[0] == "data":
            steps = steps[1:]
        message = _replaced(message, steps, text)
    return message


def _replaced(value: Any, steps: Sequence[str | int], text: str) -> Any:
    if not steps:
        # The text of a value that is not a string is its JSON.
        return text if isinstance(value, str) else json.loads(text)
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        changed = list(value)
        changed[step] = _replaced(value[step], rest, text)
        return changed
    if isinstance(value, Mapping):
        fields = copy.copy(value)
        fields[step] = _replaced(value[step], rest, text)  # type: ignore[index]
        return fields
    inner = _replaced(getattr(value, step), rest, text)
    if hasattr(value, "model_copy"):
        return value.model_copy(update={step: inner})
    changed_object = copy.copy(value)
    setattr(changed_object, step, inner)
    return changed_object


def from_document(text: str, like: object) -> Any:
    """Returns a new message: of langchain-core if its neighbors are, otherwise a dict."""
    document = json.loads(text)
    if is_langchain(like):
        from langchain_core.messages import messages_from_dict

        return messages_from_dict([document])[0]
    return document
