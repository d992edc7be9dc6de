"""Runs the Python blocks of docs/replay.md."""

from __future__ import annotations

import re
from typing import Any

from command import ROOT

PAGE = ROOT / "docs/replay.md"


def run_page(names: dict[str, Any], *sections: str) -> dict[str, Any]:
    """Runs the blocks of some sections, in the order given."""
    page = PAGE.read_text(encoding="utf-8")
    parts = re.split(r"^## (.*)\n", page, flags=re.MULTILINE)
    texts = dict(zip(parts[1::2], parts[2::2], strict=True))
    for section in sections:
        found = re.findall(
            r"^```(?:python|py)\n(.*?)^```$", texts[section], re.MULTILINE | re.DOTALL
        )
        assert found, section
        for block in found:
            exec(compile(block, str(PAGE), "exec"), names)
    return names
