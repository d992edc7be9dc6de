"""The settings for chats. Written by `cargo xtask schema`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypedDict


class ChatSettings(TypedDict, total=False):
    """How a chat is trimmed; see docs/policies.md. None is the policy's setting."""

    pin: str | int | Iterable[str | int] | None
    """Messages that always stay: 0,3-5,role:system."""

    keep_task: bool | None
    """Always keep the task, the first user turn."""

    max_result: int | str | None
    """Shorten every tool result to this, even if all fits."""

    shorten: Literal["off", "old", "all"] | None
    """Texts that may be shortened: off, old or all."""

    marker: str | None
    """Text in the place of dropped messages; off for none."""

    strict: bool | None
    """Drop what the provider rejects, even if all fits."""

    replay: bool | None
    """Cut rarely and deeply, so that a prompt cache can reuse the prefix."""

    cache_breakpoints: bool | None
    """Set breakpoints of the prompt cache (Anthropic, Bedrock)."""

    tool_results: Mapping[str, Literal["never", "by_path", "shorten_first", "keep"]] | None
    """Treat the results of a tool: never, by_path, shorten_first, keep."""
