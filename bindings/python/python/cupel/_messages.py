"""Messages of callers: what the engine reads of them, and copies with other texts."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cupel import _cupel
from cupel._errors import InvalidInputError

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def is_langchain(message: object) -> bool:
    """Returns whether a message is one of langchain-core's."""
    messages = sys.modules.get("langchain_core.messages")
    return messages is not None and isinstance(message, messages.BaseMessage)


def as_document(message: Any, path: str = "messages") -> Any:
    """Returns a message as the engine reads it; the extension dumps models itself."""
    if message is None or isinstance(message, (str, bytes, int, float, list, tuple)):
        kind = type(message).__name__
        raise InvalidInputError(f"expected a message or an item, got {kind}", path=path)
    if is_langchain(message):
        return {"type": message.type, "data": _langchain_fields(message, path)}
    return message


_NOT_SENT = {"artifact", "response_metadata", "usage_metadata"}
"""Fields of langchain-core's messages that are not sent to a model, and may hold any object."""


def _langchain_fields(message: Any, path: str) -> Any:
    try:
        # Not `exclude_unset`: a call that is appended to the default list does not set the field.
        return message.model_dump(mode="json", exclude_defaults=True, exclude=_NOT_SENT)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"cannot be written as JSON: {error}", path=path) from error


def as_input(data: Any, path: str = "data", *, has_chat: bool = True) -> Any:
    """Returns a chat, a list of items or a request as the engine reads it.

    A request of a chat keeps the fields that the engine reads: the others may hold what a client
    takes and JSON has not, such as a timeout. With `has_chat=False` the chat is elsewhere in it.
    """
    if isinstance(data, Mapping):
        lists = [data[key] for key in _MESSAGES if key in data]
        has_chat = has_chat and any(isinstance(it, (list, tuple, str)) for it in lists)
        return {
            key: as_input(value, f"{path}.messages")
            if key == "messages" and isinstance(value, (list, tuple))
            else value
            for key, value in data.items()
            if not (has_chat and _is_left_out(key, value))
        }
    _cupel.refuse_table(data, path)
    if isinstance(data, (str, bytes)) or not hasattr(data, "__iter__"):
        kind = type(data).__name__
        message = f"expected a list of messages or items, or a request, got {kind}"
        raise InvalidInputError(message, path=path)
    listed = list(data)
    # Most messages are dicts. A call and a path for each of 10,000 take 14 ms.
    if all(type(message) is dict for message in listed):
        return listed
    if any(map(is_langchain, listed)):
        for position, message in enumerate(listed):
            if not is_langchain(message):
                kind = type(message).__name__
                raise InvalidInputError(
                    f"expected a LangChain message as the others are, got {kind}",
                    path=f"{path}[{position}]",
                    help="convert all with langchain_core.messages.convert_to_messages",
                )
    return [as_document(message, f"{path}[{position}]") for position, message in enumerate(listed)]


_LISTS = {"openai-responses": "input", "gemini": "contents"}
"""The keys of the messages in requests, where they are not ``messages``."""
_MESSAGES = ("messages", *_LISTS.values())


def _is_left_out(key: Any, value: Any) -> bool:
    """Returns whether the engine does not read a field, or a client does not send it."""
    # `omit` and `NOT_GIVEN` of the openai and anthropic packages: arguments that are not given.
    is_absent = type(value).__name__ in ("Omit", "NotGiven")
    return isinstance(key, str) and (is_absent or not _cupel.is_request_field(key))


def as_list(messages: Any) -> Any:
    """Returns the messages of a generator as a list, and a list or a request as it is."""
    is_known = isinstance(messages, (Mapping, list, tuple, str))
    if is_known or not hasattr(messages, "__iter__"):
        return messages
    _cupel.refuse_table(messages, "messages")
    return list(messages)


def snapshot(data: Any, levels: int = 3) -> Any:
    """Returns a copy of a list of messages, or of a request and its lists, with the same messages.

    Another thread may change the lists meanwhile, and decisions are positions in them.
    """
    if isinstance(data, (list, tuple)):
        return list(data)
    if isinstance(data, Mapping) and levels:
        return {key: snapshot(value, levels - 1) for key, value in dict(data).items()}
    return data


def request_of(
    messages: Sequence[Any],
    *,
    tools: Iterable[Any] | None,
    system: Any,
    shape: str,
) -> dict[str, Any]:
    """Returns a request with messages, tools and a system prompt."""
    request: dict[str, Any] = {_LISTS.get(shape, "messages"): messages}
    if tools is not None:
        request["tools"] = list(tools)
    if system is not None:
        text = system.content if is_langchain(system) else system
        if shape == "gemini":
            is_text = isinstance(text, str)
            request["systemInstruction"] = {"parts": [{"text": text}]} if is_text else text
        elif shape == "openai-responses":
            request["instructions"] = text
        elif shape == "bedrock" and isinstance(text, str):
            request["system"] = [{"text": text}]
        else:
            request["system"] = text
    return request


def at(document: Any, pointer: str) -> Any:
    """Returns the value at a JSON pointer (RFC 6901)."""
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        document = document[int(step) if isinstance(document, (list, tuple)) else step]
    return document


def copied_fields(fields: Mapping[Any, Any]) -> Any:
    """Returns a shallow copy, of the same type if it is a dict, such as an OrderedDict."""
    return copy.copy(fields) if isinstance(fields, dict) else dict(fields)


def with_list(document: Any, pointer: str, messages: list[Any]) -> Any:
    """Returns a copy of a document with other messages. What is not changed is shared."""
    first, _, rest = pointer[1:].partition("/")
    if not pointer:
        return messages
    step: Any = first.replace("~1", "/").replace("~0", "~")
    changed: Any
    if isinstance(document, Mapping):
        changed = copied_fields(document)
    else:
        changed, step = list(document), int(step)
    changed[step] = with_list(document[step], f"/{rest}" if rest else "", messages)
    return changed


def with_texts(message: Any, texts: Sequence[tuple[str, str]]) -> Any:
    """Returns a copy of a message with other texts. What is not changed is shared."""
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


def with_mark(value: Any, path: str, json_text: str) -> Any:
    """Returns a copy of a message or a request with a cache breakpoint: a key of an object, or a
    new element of a list. What is not changed is shared."""
    steps: list[str | int] = [name or int(index) for name, index in _STEP.findall(path)]
    return _put(value, steps, json.loads(json_text))


def _put(value: Any, steps: Sequence[str | int], new: Any) -> Any:
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        changed = list(value)
        if rest:
            changed[step] = _put(value[step], rest, new)
        else:
            changed.insert(step, new)
        return changed
    if isinstance(value, Mapping):
        fields: Any = copy.copy(value)
        fields[step] = _put(value[step], rest, new) if rest else new
        return fields
    inner = _put(getattr(value, step), rest, new) if rest else new
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
