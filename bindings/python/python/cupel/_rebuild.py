"""Maps fitted OpenAI messages to the objects of a framework that they stand for.

An adapter writes the messages of its framework as Chat Completions and fits those:

```text
framework    [A, B, C, D]
originals    [a, b, c, d]    one dict per message, and one block per part with a text
window       [a, marker, c', d]
returned     [A, marker, copy of C, D]
```

A message that did not change is the same dict in the window, which makes it the same object of the
framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from cupel._fit import Fitted

__all__ = ["fixed", "positions", "rebuild", "texts"]

M = TypeVar("M")


def rebuild(
    fitted: Fitted[Any],
    originals: Sequence[dict[str, Any]],
    messages: Sequence[M],
    *,
    copy: Callable[[M, list[str | None]], M],
    marker: Callable[[str, str], M],
) -> list[M]:
    """Returns the window as messages of a framework.

    `copy` returns a copy of a message with other texts, one per block of its dict and `None` for
    a block without a text. `marker` returns a new message with a role and a text.
    """
    window: list[M] = []
    for index, message in positions(fitted):
        if index is None:
            window.append(marker(message["role"], message["content"]))
        elif message is originals[index]:
            window.append(messages[index])
        else:
            window.append(copy(messages[index], texts(message)))
    return window


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


def fixed(text: str) -> dict[str, Any]:
    """Returns a block that is counted and never shortened."""
    return {"type": "non_standard", "value": text}
