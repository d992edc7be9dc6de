"""Fits the nodes and the chat history of LlamaIndex."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
from llama_index.core.schema import NodeWithScore, QueryBundle

from cupel._adapter import Adapter, OnFit, check_callback
from cupel._cupel import Policy, check_fit, presets, select
from cupel._fit import Fitted
from cupel._offload import offload
from cupel._rebuild import rebuild
from cupel._types import PolicyLike

__all__ = ["CupelMemory", "CupelPostprocessor"]


class CupelPostprocessor(BaseNodePostprocessor):
    """Selects the nodes that fit a budget, by their scores.

    Scores between 0 and 1 are the hints of the nodes, as `future_relevance_hint` of `cupel.select`.
    If one is outside, such as those of many rerankers, the ranks of all scores are: the best has 1.
    A node without a score comes last. `counter` counts the tokens of a text. `on_fit` is called
    with each `cupel.Selection`.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> nodes = [NodeWithScore(node=TextNode(text="word " * n), score=1 / n) for n in (9, 90)]
    >>> [n.score for n in CupelPostprocessor(budget=50).postprocess_nodes(nodes)]
    [0.1111111111111111]
    """

    budget: int | str
    policy: Any = "rag"
    counter: Any = Field(default=None, exclude=True)
    on_fit: Any = Field(default=None, exclude=True)

    def __init__(
        self,
        budget: int | str,
        policy: Any = "rag",
        on_fit: Any = None,
        counter: Callable[[str], int] | None = None,
        **fields: Any,
    ) -> None:
        # Before pydantic, which wraps errors. The policy apart: it may need the query of a run.
        check_fit({"policy": policy}, {"counter": counter})
        select([], budget)
        check_callback("on_fit", on_fit)
        given = {"budget": budget, "policy": policy, "on_fit": on_fit, "counter": counter}
        super().__init__(**given, **fields)

    @classmethod
    def class_name(cls) -> str:
        return "CupelPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        policy = _policy(self.policy)
        # An engine hands over its query whether or not the policy reads one.
        query = query_bundle.query_str if query_bundle and policy.needs_query else None
        selection = select(nodes, self.budget, policy, query=query, counter=self.counter)
        if self.on_fit is not None:
            self.on_fit(selection)
        return selection.items


def _policy(policy: PolicyLike) -> Policy:
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, Mapping):
        return Policy.from_dict(policy)
    is_preset = isinstance(policy, str) and policy in presets()
    return Policy.preset(str(policy)) if is_preset else Policy.from_file(policy)


class CupelMemory(Memory):
    """A memory that stores every message and returns those that fit a budget.

    Takes the options of `cupel.fit` as `options`. An agent adds its system prompt and its tools
    to what a memory returns: `system` and `tools` are counted. `on_fit` is called with each
    `cupel.Fitted`.

    >>> memory = CupelMemory.from_defaults(budget="8k")
    >>> memory.put(ChatMessage(role="user", content="Hello!"))
    >>> [m.content for m in memory.get()]
    ['Hello!']
    """

    budget: int | str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    system: str | None = None
    tools: list[Any] = Field(default_factory=list, exclude=True)
    # Not typed as a function: the error of another value is that of this package.
    on_fit: Any = Field(default=None, exclude=True)

    @classmethod
    def class_name(cls) -> str:
        return "CupelMemory"

    def _adapter(self) -> Adapter:
        return Adapter("CupelMemory", self.budget, self.options, self.on_fit)

    @classmethod
    def from_defaults(  # type: ignore[override]
        cls,
        *,
        budget: int | str | None = None,
        system: str | None = None,
        tools: Sequence[Any] = (),
        options: dict[str, Any] | None = None,
        on_fit: OnFit | None = None,
        **memory: Any,
    ) -> CupelMemory:
        """Creates a memory. Takes the arguments of `Memory.from_defaults` as well.

        `token_limit`, beyond which a `Memory` ejects messages, defaults to no limit.
        """
        created = super().from_defaults(**{"token_limit": sys.maxsize, **memory})
        assert isinstance(created, cls)
        created.budget, created.system = budget, system
        created.tools, created.options = list(tools), options or {}
        created.on_fit = on_fit
        created._adapter().check()
        return created

    async def aget(
        self, input: str | ChatMessage | None = None, **block_kwargs: Any
    ) -> list[ChatMessage]:
        """Returns the messages that fit the budget."""
        messages = await super().aget(input=input, **block_kwargs)
        if not messages:
            return messages
        adapter = self._adapter()
        window, fitted = await offload(messages, partial(self._fit, adapter, messages))
        adapter.report(fitted)
        return window

    def _fit(
        self, adapter: Adapter, messages: list[ChatMessage]
    ) -> tuple[list[ChatMessage], Fitted[Any]]:
        originals = [_openai(message) for message in messages]
        fitted = adapter.fit(
            originals,
            shape="openai",
            system=self.system,
            tools=[tool.metadata.to_openai_tool() for tool in self.tools],
        )
        return rebuild(fitted, originals, messages, copy=_with_texts, marker=_marker), fitted


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


def _with_texts(message: ChatMessage, texts: list[str | None]) -> ChatMessage:
    """Returns a copy of a message with other texts."""
    new = iter(texts)
    blocks: list[Any] = []
    for block in message.blocks:
        text = None if isinstance(block, ToolCallBlock) else next(new)
        blocks.append(block if text is None else block.model_copy(update={"text": text}))
    return message.model_copy(update={"blocks": blocks})


def _marker(role: str, text: str) -> ChatMessage:
    return ChatMessage(role=role, content=text)
