"""Writes the docstrings of the extension module into its stub: ``python tests/stubs.py``.

The Rust sources have the docstrings. Editors and type checkers read the stub alone.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import cupel
from command import ROOT
from cupel import _cupel

PATH = ROOT / "bindings/python/python/cupel/_cupel.pyi"

Documented = ast.FunctionDef | ast.ClassDef


def nodes(body: list[ast.stmt], owner: Any) -> Iterator[tuple[Documented, str]]:
    """Yields each class and function of a stub with its docstring; an overload has it once."""
    seen = set()
    for node in body:
        if not isinstance(node, Documented) or node.name in seen:
            continue
        seen.add(node.name)
        value = getattr(owner, node.name, None)
        # Others are for the package itself, or are what every object has, such as `__eq__`.
        is_public = owner is not _cupel or getattr(cupel, node.name, None) is value
        is_public = is_public and not node.name.startswith("_")
        yield node, inspect.cleandoc(getattr(value, "__doc__", None) or "") if is_public else ""
        if isinstance(node, ast.ClassDef):
            yield from nodes(node.body, value)


def literal(text: str, indent: str) -> str:
    lines = [f"{indent}{line}".rstrip() for line in text.replace("\\", "\\\\").split("\n")]
    lines[0] = f'{indent}"""{lines[0].strip()}'
    return "\n".join(lines) + (f'\n{indent}"""' if len(lines) > 1 else '"""')


def written(stub: str) -> str:
    """Returns a stub with the docstrings of the extension module."""
    lines = stub.split("\n")
    found = list(nodes(ast.parse(stub).body, _cupel))
    for node, text in sorted(found, key=lambda it: it[0].lineno, reverse=True):
        first, last = node.body[0], node.body[-1]
        decorators = getattr(first, "decorator_list", [])
        start = min(it.lineno for it in [first, *decorators]) - 1
        has_text = ast.get_docstring(node) is not None
        indent = " " * (node.col_offset + 4)
        if isinstance(node, ast.ClassDef) and has_text:
            assert first.end_lineno
            del lines[start : first.end_lineno]
        elif not isinstance(node, ast.ClassDef):
            # The header ends before the body, which may be on the same line.
            assert last.end_lineno
            header = lines[first.lineno - 1][: first.col_offset].rstrip()
            lines[first.lineno - 1 : last.end_lineno] = [
                f"{header} ..." if header else f"{indent}..."
            ]
        if not text:
            continue
        shown = literal(text, indent)
        if isinstance(node, ast.ClassDef):
            lines.insert(start, shown)
        else:
            header = lines[first.lineno - 1].removesuffix("...").rstrip()
            lines[first.lineno - 1 : first.lineno] = [*([header] if header else []), shown]
    format = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(PATH), "-"]
    return subprocess.run(
        format, input="\n".join(lines), capture_output=True, check=True, text=True
    ).stdout


if __name__ == "__main__":
    PATH.write_text(written(PATH.read_text(encoding="utf-8")), encoding="utf-8")
