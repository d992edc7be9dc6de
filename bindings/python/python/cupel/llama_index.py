"""Fits the nodes and the chat history of LlamaIndex."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    CachePoint,
    ChatMessage,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import Memory
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from cupel._cupel import select
from cupel._fit import fit
from cupel._rebuild import positions, texts

__all__ = ["CupelMemory", "CupelPostprocessor"]


class CupelPostprocessor(BaseNodePostprocessor):
    """Selects the nodes that fit a budget, by their scores.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> nodes = [NodeWithScore(node=TextNode(text="word " * n), score=1 / n) for n in (9, 90)]
    >>> [n.score for n in CupelPostprocessor(budget=50).postprocess_nodes(nodes)]
    [0.1111111111111111]
    """

    budget: int | str
    policy: Any = "rag"

    @classmethod
    def class_name(cls) -> str:
        return "CupelPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        # Hints are between 0 and 1; scores of some retrievers are not.
        scores = [max(0.0, node.score or 0.0) for node in nodes]
        highest = max([1.0, *scores])
        items = [
            {
                "content": node.node.get_content(metadata_mode=MetadataMode.LLM),
                "kind": "Document",
                "future_relevance_hint": score / highest,
            }
            for node, score in zip(nodes, scores, strict=True)
        ]
        query = query_bundle.query_str if query_bundle else None
        selection = select(items, self.budget, self.policy, query=query)
        return [nodes[index] for index in selection.indices]


class CupelMemory(Memory):
    """A memory that stores every message and returns those that fit a budget.

    Takes the options of `cupel.fit` as `options`. An agent adds its system prompt and its tools
    to what a memory returns: `system` and `tools` are counted.

    >>> memory = CupelMemory.from_defaults(budget="8k")
    >>> memory.put(ChatMessage(role="user", content="Hello!"))
    >>> [m.content for m in memory.get()]
    ['Hello!']
    """

    budget: int | str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    system: str | None = None
    tools: list[Any] = Field(default_factory=list, exclude=True)

    @classmethod
    def class_name(cls) -> str:
        return "CupelMemory"

    @classmethod
    def from_defaults(  # type: ignore[override]
        cls,
        *,
        budget: int | str | None = None,
        system: str | None = None,
        tools: Sequence[Any] = (),
        options: dict[str, Any] | None = None,
        **memory: Any,
    ) -> CupelMemory:
        """Creates a memory. Takes the arguments of `Memory.from_defaults` as well.

        `token_limit`, beyond which a `Memory` ejects messages, defaults to no limit.
        """
        created = super().from_defaults(**{"token_limit": sys.maxsize, **memory})
        assert isinstance(created, cls)
        created.budget, created.system = budget, system
        created.tools, created.options = list(tools), options or {}
        return created

    async def aget(
        self, input: str | ChatMessage | None = None, **block_kwargs: Any
    ) -> list[ChatMessage]:
        """Returns the messages that fit the budget."""
        messages = await super().aget(input=input, **block_kwargs)
        if not messages:
            return messages
        originals = [_openai(message) for message in messages]
        fitted = fit(
            originals,
            self.budget,
            system=self.system,
            tools=[tool.metadata.to_openai_tool() for tool in self.tools],
            **{**self.options, "shape": "openai"},
        )
        window = []
        for index, message in positions(fitted):
            if index is None:
                window.append(ChatMessage(role=message["role"], content=message["content"]))
            elif message is originals[index]:
                window.append(messages[index])
            else:
                window.append(_with_texts(messages[index], message))
        return window


_ROLES = {MessageRole.CHATBOT: "assistant", MessageRole.MODEL: "assistant"}


def _openai(message: ChatMessage) -> dict[str, Any]:
    """Returns the message of Chat Completions that a message stands for."""
    calls = {}
    for block in message.blocks:
        if isinstance(block, ToolCallBlock):
            arguments = block.tool_kwargs
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            calls[block.tool_call_id or ""] = (block.tool_name, text)
    # Older integrations keep the calls of OpenAI here, as objects or dicts.
    for call in message.additional_kwargs.get("tool_calls") or []:
        fields = call if isinstance(call, dict) else call.model_dump()
        function = fields["function"]
        calls[fields["id"]] = (function["name"], function["arguments"])
    blocks = [_block(block) for block in message.blocks if not isinstance(block, ToolCallBlock)]
    found: dict[str, Any] = {
        "role": _ROLES.get(message.role, message.role.value),
        "content": blocks or "",
    }
    if calls:
        found["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": text}}
            for id, (name, text) in calls.items()
        ]
    for key in ("tool_call_id", "name"):
        if key in message.additional_kwargs:
            found[key] = message.additional_kwargs[key]
    return found


def _block(block: Any) -> dict[str, Any]:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ThinkingBlock():
            return {"type": "thinking", "thinking": block.content or ""}
        case ImageBlock():
            url = block.url or f"data:image/png;base64,{block.resolve_image(True).read().decode()}"
            return {"type": "image_url", "image_url": {"url": str(url)}}
        case CachePoint():
            return {"type": "fallback"}  # counts nothing
    return {"type": "media"}


def _with_texts(message: ChatMessage, fitted: dict[str, Any]) -> ChatMessage:
    """Returns a copy of a message with the shortened texts."""
    new = iter(texts(fitted))
    blocks: list[Any] = []
    for block in message.blocks:
        text = None if isinstance(block, ToolCallBlock) else next(new)
        blocks.append(block if text is None else block.model_copy(update={"text": text}))
    return message.model_copy(update={"blocks": blocks})
