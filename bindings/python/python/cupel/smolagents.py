"""Fits the messages that an agent of smolagents sends to its model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from smolagents.models import ChatMessage, MessageRole, Model, get_tool_json_schema

from cupel._adapter import Adapter, OnFit
from cupel._fit import Fitted
from cupel._rebuild import rebuild
from cupel._types import BudgetLike, FitOptions

__all__ = ["CupelModel"]


class CupelModel(Model):
    """A model that fits the messages into a budget before it calls another one.

    Takes the options of `cupel.fit`. It stands for the other model in agents, which keep every
    message in their memory. The tools are counted. Kept messages are the caller's own objects;
    shortened messages are copies. `on_fit` is called with each `cupel.Fitted`.

    >>> class Offline(Model):
    ...     def generate(self, messages, **options):
    ...         return ChatMessage(MessageRole.ASSISTANT, "Hello!")
    >>> model = CupelModel(Offline(), budget="8k")
    >>> model([ChatMessage(MessageRole.USER, [{"type": "text", "text": "Hi."}])]).content
    'Hello!'
    """

    def __init__(
        self,
        model: Model,
        /,
        budget: BudgetLike | None = None,
        *,
        on_fit: OnFit | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        # Without the constructor of the base: its fields, such as `model_id`, are the model's.
        self._adapter = Adapter("CupelModel", budget, options, on_fit).check()
        self.model = model

    def __getattr__(self, name: str) -> Any:
        if name in ("model", "_adapter") or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = getattr(self.model, name)
        # An agent looks whether its model has this method.
        return partial(self._stream, found) if name == "generate_stream" else found

    def generate(self, messages: Sequence[Any], *given: Any, **options: Any) -> ChatMessage:
        """Calls the other model with the messages that fit."""
        return self.model.generate(self._window(messages, options), *given, **options)

    def _stream(
        self, stream: Any, messages: Sequence[Any], *given: Any, **options: Any
    ) -> Iterator[Any]:
        yield from stream(self._window(messages, options), *given, **options)

    def parse_tool_calls(self, message: ChatMessage) -> ChatMessage:
        """Calls the method of the other model."""
        return self.model.parse_tool_calls(message)

    def to_dict(self) -> dict[str, Any]:
        """Returns the other model as a dict."""
        return self.model.to_dict()

    def _window(self, messages: Sequence[Any], options: dict[str, Any]) -> list[Any]:
        steps = _steps(messages)
        originals = [original for original, _ in steps]
        model = getattr(self.model, "model_id", None)
        fitted: Fitted[Any] = self._adapter.fit(
            originals,
            shape="openai",
            model=model if isinstance(model, str) else None,
            tools=[get_tool_json_schema(tool) for tool in options.get("tools_to_call_from") or ()],
        )
        self._adapter.report(fitted)
        sources = [source for _, source in steps]
        window = rebuild(fitted, originals, sources, copy=_with_texts, marker=_marker)
        return [message for source in window for message in source]


def _steps(messages: Sequence[Any]) -> list[tuple[dict[str, Any], list[Any]]]:
    """Returns messages of Chat Completions, each with the messages that it stands for.

    A memory has no ids: a step is a text of the model, its calls as a text, images and results.

    ```text
    memory              assistant, tool-call    user (images), tool-response, tool-response
    Chat Completions    assistant, calls "1"    tool "1"
    ```

    The answer and its calls are one message: a provider gets them as one, and the requests of the
    chat before, which a replay cuts as they were, ended before it. An answer that could not be
    parsed has no call: its error is a result of the answer itself.
    """
    steps: list[tuple[dict[str, Any], list[Any]]] = []
    for message in messages:
        role = _role(message)
        content = [_block(block) for block in _content(message)]
        last, source = steps[-1] if steps else ({}, [])
        has_images_only = bool(content) and all(it["type"] == "image_url" for it in content)
        is_result = role == "tool-response" or (role == "user" and has_images_only)
        if is_result and last.get("role") == "tool":
            last["content"] += content
            source.append(message)
        elif is_result and last.get("role") == "assistant":
            [call] = last.setdefault("tool_calls", [_call(len(steps), "")])
            result = {"role": "tool", "tool_call_id": call["id"], "content": content}
            steps.append((result, [message]))
        elif role == "tool-call":
            # As the arguments of a call, which are never shortened.
            text = "".join(block.get("text") or "" for block in content)
            if last.get("role") != "assistant" or "tool_calls" in last:
                last, source = {"role": "assistant", "content": []}, []
                steps.append((last, source))
            last["tool_calls"] = [_call(len(steps), text)]
            source.append(message)
        else:
            role = "user" if role == "tool-response" else role
            steps.append(({"role": role, "content": content}, [message]))
    return steps


def _call(number: int, arguments: str) -> dict[str, Any]:
    function = {"name": "tool", "arguments": arguments}
    return {"id": f"{number}", "type": "function", "function": function}


def _role(message: Any) -> str:
    role = message["role"] if isinstance(message, dict) else message.role
    return str(getattr(role, "value", role))


def _content(message: Any) -> list[Any]:
    content = message.get("content") if isinstance(message, dict) else message.content
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _block(block: dict[str, Any]) -> dict[str, Any]:
    match block.get("type"):
        case "text":
            return {"type": "text", "text": block["text"]}
        case "image_url":
            return {"type": "image_url", "image_url": block["image_url"]}
        case "image":
            # An image of PIL, without its data: to encode it costs more time than to fit the chat.
            return {"type": "image_url"}
    return {"type": "media"}


def _with_texts(source: list[Any], texts: list[str | None]) -> list[Any]:
    """Returns copies of the messages of a step with other texts."""
    new = iter(texts)
    return [
        message if _role(message) == "tool-call" else _copied(message, new) for message in source
    ]


def _copied(message: Any, new: Iterator[str | None]) -> Any:
    """Returns a message with the next texts, itself if they are its own."""
    blocks = _content(message)
    pairs = [(block, next(new)) for block in blocks]
    if all(text is None or block["text"] == text for block, text in pairs):
        return message
    content: Any = [block if text is None else {**block, "text": text} for block, text in pairs]
    is_dict = isinstance(message, dict)
    if isinstance(message["content"] if is_dict else message.content, str):
        content = content[0]["text"]
    return {**message, "content": content} if is_dict else replace(message, content=content)


def _marker(role: str, text: str) -> list[Any]:
    # As blocks: models join messages of one role by their blocks.
    return [ChatMessage(MessageRole(role), [{"type": "text", "text": text}])]
