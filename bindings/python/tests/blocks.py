"""The Python blocks of the documents: ``python tests/blocks.py FOLDER`` writes each as a module.

Each block runs alone, and is checked by mypy and pyright.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from command import ROOT

DOCUMENTS = ["README.md", "bindings/python/README.md", "docs/python.md"]


class Block(NamedTuple):
    """A block of Python in a document."""

    document: str
    line: int
    source: str
    output: str | None
    """The block `text` that follows it."""

    @property
    def name(self) -> str:
        """The document and the line, as the name of a module."""
        return re.sub(r"\W", "_", f"{self.document.removesuffix('.md')}_{self.line}")

    @property
    def text(self) -> str:
        """The source with the line numbers of the document, which errors show."""
        return "\n" * self.line + self.source


def blocks(document: str) -> Iterator[Block]:
    """Yields the blocks of a document."""
    text = (ROOT / document).read_text(encoding="utf-8")
    pattern = r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?"
    for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        yield Block(document, text.count("\n", 0, match.start(1)), match[1], match[2])


BLOCKS = [block for document in DOCUMENTS for block in blocks(document)]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.py"):
        old.unlink()
    for block in BLOCKS:
        (folder / f"{block.name}.py").write_text(block.text, encoding="utf-8")
