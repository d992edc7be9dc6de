"""Runs the examples of docstrings and documents, and checks that every public name has some."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import os
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, get_args, is_typeddict

import pytest

import blocks
import cupel
import stubs
from command import ROOT
from cupel import _cupel

# Adapters whose framework is not in this environment. Their examples run in tests/frameworks.
ELSEWHERE = {
    "agent_framework",
    "crewai",
    "google_adk",
    "haystack",
    "litellm",
    "llama_index",
    "openai_agents",
    "pydantic_ai",
    "smolagents",
}


def modules() -> list[ModuleType]:
    """Returns the public modules of the package that this environment can import."""
    folder = inspect.getfile(cupel)
    names = sorted(path[:-3] for path in os.listdir(os.path.dirname(folder)) if path[-3:] == ".py")
    public = [name for name in names if not name.startswith("_") and name not in ELSEWHERE]
    return [cupel, *(importlib.import_module(f"cupel.{name}") for name in public)]


def members(owner: Any) -> Iterator[tuple[str, Any]]:
    """Yields the public methods and properties of a class. Those of its base have their own."""
    for name, value in vars(owner).items():
        # The docstring of a class has its fields.
        if not name.startswith("_") and not inspect.ismemberdescriptor(value):
            yield name, value if isinstance(value, property) else getattr(owner, name)


def documented() -> Iterator[tuple[str, Any]]:
    """Yields each public module, function, class, method and property with its name."""
    for module in modules():
        yield module.__name__, module
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            if inspect.isroutine(value) or inspect.isclass(value):
                yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                for member, inner in members(value):
                    yield f"{module.__name__}.{name}.{member}", inner


DOCUMENTED = dict(documented())
# A field or a property has no example of its own: that of its class has them. Neither have types:
# the example of the module `cupel.types` shows how they are used.
CALLABLE: dict[str, Any] = {
    name: value
    for name, value in DOCUMENTED.items()
    if callable(value) and not name.startswith("cupel.types.")
}


def text(value: Any) -> str:
    return inspect.cleandoc(value.__doc__ or "")


def test_every_public_name_has_a_docstring() -> None:
    assert {"cupel.fit", "cupel.Item.views", "cupel.types.FitAnswer"} <= DOCUMENTED.keys()
    assert [name for name, value in DOCUMENTED.items() if not text(value)] == []
    # What `dataclass` and `TypedDict` write says nothing.
    made = [name for name, value in DOCUMENTED.items() if text(value).startswith(("dict(", "("))]
    assert made == []


def test_every_public_function_class_and_method_has_an_example() -> None:
    assert {"cupel.fit", "cupel.Item", "cupel.Policy.preset", "cupel.CupelError"} <= CALLABLE.keys()
    assert [name for name, value in CALLABLE.items() if ">>> " not in text(value)] == []


def described(docstring: str) -> set[str]:
    """Returns the names that a docstring describes: ``line, column (from 1): The place.``"""
    lines = re.findall(r"^ +([\w, ]+?)(?: \([^)]*\))?: ", docstring, re.MULTILINE)
    return {name.strip() for line in lines for name in line.split(",")}


@pytest.mark.parametrize("name", [name for name in CALLABLE if name.count(".") == 1])
def test_a_docstring_describes_every_argument(name: str) -> None:
    value, docstring = CALLABLE[name], text(CALLABLE[name])
    try:
        parameters = list(inspect.signature(value).parameters)
    except ValueError:  # a class without a constructor, such as Report
        assert inspect.isclass(value)
        return
    if is_typeddict(value):
        assert not set(value.__annotations__) - described(docstring)
    elif "arguments of" not in docstring and not issubclass_of_error(value):
        assert not set(parameters) - described(docstring) - {"args", "kwargs"}


def issubclass_of_error(value: Any) -> bool:
    """Returns whether it is an exception that has the arguments of its base."""
    return inspect.isclass(value) and issubclass(value, Exception) and "__init__" not in vars(value)


def test_the_types_describe_their_keys() -> None:
    from cupel import types

    for name in types.__all__:
        value = getattr(types, name)
        if is_typeddict(value):
            assert set(value.__annotations__) == described(text(value)), name
        else:
            assert get_args(value), name


def test_the_stub_has_the_docstrings() -> None:
    stub = stubs.PATH.read_text(encoding="utf-8")
    assert stubs.written(stub) == stub, "run `python tests/stubs.py`"
    found = {
        node.name: ast.get_docstring(node)
        for node in ast.parse(stub).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    public = [name for name in found if getattr(cupel, name, 0) is getattr(_cupel, name)]
    assert len(public) > 10
    # An overload has the docstring once.
    assert [name for name in public if text(getattr(cupel, name)) not in stub_texts(stub)] == []


def stub_texts(stub: str) -> set[str | None]:
    nodes = [node for node in ast.walk(ast.parse(stub))]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return {ast.get_docstring(node) for node in functions}


@pytest.mark.parametrize("name", [name for name, it in DOCUMENTED.items() if ">>>" in text(it)])
def test_the_examples_of_a_docstring_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    example = doctest.DocTestParser().get_doctest(text(DOCUMENTED[name]), {}, name, None, None)
    output = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    results = runner.run(example, out=output.write)
    assert results.attempted and not results.failed, output.getvalue()


def printed(source: str, document: str, names: dict[str, Any]) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(source, document, "exec"), names)
    return output.getvalue()


@pytest.mark.parametrize("block", blocks.BLOCKS, ids=lambda block: block.name)
def test_a_block_of_a_document_runs_alone(
    block: blocks.Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    output = printed(block.text, block.document, {})
    # A block that prints has its output below.
    assert output == (block.output or "")


def test_the_blocks_of_a_story_print_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/replay.md follows one log from block to block."""
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    for block in blocks.blocks("docs/replay.md"):
        assert printed(block.text, block.document, names) == (block.output or "")
    assert names


def test_each_block_with_a_framework_runs_in_the_environment_of_the_framework() -> None:
    tests = (ROOT / "bindings/python/tests/frameworks").glob("*/test_*.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in tests)
    calls = re.findall(r'run_example\(\s*"([^"]+)"(?:.*?block=(\d+))?', text)
    tested = {(section, int(block or 0)) for section, block in calls}
    page = (ROOT / "docs/python-frameworks.md").read_text(encoding="utf-8")
    found = {
        (section.split("\n", 1)[0], block)
        for section in re.split(r"^## ", page, flags=re.MULTILINE)
        for block in range(section.count("```python\n"))
    }
    assert len(found) > 10 and found == tested
