"""Runs the examples of docstrings and documents."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import os
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import cupel
from command import ROOT

# Adapters whose framework is not in this environment. Their examples run in tests/frameworks.
ELSEWHERE = {"litellm", "llama_index", "openai_agents", "pydantic_ai"}


def modules() -> list[ModuleType]:
    """Returns the public modules of the package that this environment can import."""
    folder = inspect.getfile(cupel)
    names = sorted(path[:-3] for path in os.listdir(os.path.dirname(folder)) if path[-3:] == ".py")
    public = [name for name in names if not name.startswith("_") and name not in ELSEWHERE]
    return [cupel, *(importlib.import_module(f"cupel.{name}") for name in public)]


def documented() -> Iterator[tuple[str, str]]:
    """Yields the name and the docstring of each public function, class and method."""
    for module in modules():
        yield module.__name__, module.__doc__ or ""
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            if not inspect.isroutine(value) and not inspect.isclass(value):
                continue
            yield f"{module.__name__}.{name}", value.__doc__ or ""
            members = vars(value) if inspect.isclass(value) else {}
            for member, inner in members.items():
                if not member.startswith("_") and isinstance(inner.__doc__, str):
                    yield f"{module.__name__}.{name}.{member}", inner.__doc__


DOCUMENTED = dict(documented())


def test_every_public_name_has_a_docstring() -> None:
    names = [name for name, text in DOCUMENTED.items() if not text.strip()]
    assert names == []


@pytest.mark.parametrize("name", [name for name, text in DOCUMENTED.items() if ">>>" in text])
def test_the_examples_of_a_docstring_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    example = doctest.DocTestParser().get_doctest(
        inspect.cleandoc(DOCUMENTED[name]), {"cupel": cupel}, name, None, None
    )
    output = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    results = runner.run(example, out=output.write)
    assert results.attempted and not results.failed, output.getvalue()


DOCUMENTS = ["README.md", "bindings/python/README.md", "docs/python.md", "docs/replay.md"]


def blocks(text: str) -> Iterator[tuple[str, str | None]]:
    """Yields each Python block with the `text` block that follows it: its output."""
    pattern = r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?"
    for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        yield match[1], match[2]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_examples_of_a_document_print_what_it_shows(
    document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    found = list(blocks((ROOT / document).read_text(encoding="utf-8")))
    assert found and any(shown for _, shown in found)
    names: dict[str, Any] = {}
    for source, shown in found:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(source, document, "exec"), names)
        if shown is not None:
            assert output.getvalue() == shown
