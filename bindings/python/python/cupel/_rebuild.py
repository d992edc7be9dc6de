"""Maps fitted OpenAI messages to the objects of a framework that they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cupel._fit import Fitted

__all__ = ["positions", "texts"]


def positions(fitted: Fitted[Any]) -> Iterator[tuple[int | None, Any]]:
    """Yields each message of the window with its position in the input, `None` for a marker."""
    markers = {m["before"] for m in fitted.markers if m.get("merged_into") is None}
    messages = iter(fitted.messages)
    for index in fitted.kept:
        if index in markers:
            yield None, next(messages)
        yield index, next(messages)


def texts(message: dict[str, Any]) -> list[str | None]:
    """Returns the text of each content block, `None` for a block without a text."""
    content = message["content"]
    if isinstance(content, str):
        return [content]
    return [block.get("text") for block in content or []]
