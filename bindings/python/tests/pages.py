"""Runs the Python blocks of docs/replay.md."""

from __future__ import annotations

import re
from typing import Any

from command import ROOT

PAGE = ROOT / "docs/replay.md"


def run_page(section: str, names: dict[str, Any]) -> dict[str, Any]:
    """Runs the blocks that come before the engines, and those of one engine's section."""
    common, *sections = re.split(r"^(?=## )", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    before = [text for text in sections if "```python\n" in text]
    [engine] = [text for text in sections if text.startswith(f"## {section}\n")]
    for text in [common, *before, engine]:
        for match in re.finditer(r"^```(?:python|py)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            exec(compile(match[1], str(PAGE), "exec"), names)
    return names
