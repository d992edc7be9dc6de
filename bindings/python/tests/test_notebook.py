"""Executes the notebook of the examples. ``python tests/test_notebook.py`` renews its outputs."""

from __future__ import annotations

import re
from typing import Any

import nbformat
from nbclient import NotebookClient

from command import ROOT

PATH = ROOT / "examples/cupel.ipynb"


def read() -> Any:
    return nbformat.reads(PATH.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]


def executed() -> Any:
    notebook = read()
    client = NotebookClient(
        notebook,
        timeout=60,
        kernel_name="python3",
        resources={"metadata": {"path": PATH.parent}},
        record_timing=False,
    )
    client.execute()
    return notebook


def outputs(notebook: Any) -> list[Any]:
    """Returns the outputs of the cells with code, without the numbers of their executions."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[{**it, "execution_count": None} for it in cell.outputs] for cell in cells]


def html(notebook: Any) -> list[str]:
    """Returns the outputs that are HTML."""
    data = [it.get("data", {}) for cell in outputs(notebook) for it in cell]
    return [it["text/html"] for it in data if "text/html" in it]


def without_frames(notebook: Any) -> Any:
    """Removes the pages of reports, as GitHub does: it shows no frames and runs no scripts."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/html" in data:
                data["text/html"] = re.sub("<iframe.*?</iframe>", "", data["text/html"], flags=re.S)
    return notebook


def test_the_notebook_shows_what_its_cells_return() -> None:
    notebook = executed()
    [page] = html(notebook)
    assert page.startswith("<iframe") and "srcdoc" in page and len(page) <= 300_000
    found = outputs(without_frames(notebook))
    assert found == outputs(read()), "run `python tests/test_notebook.py`"
    assert all(found)


def test_the_outputs_are_visible_without_scripts() -> None:
    """The notebook on GitHub: its outputs are stored, and need no frame, script or style."""
    [shown] = html(read())
    assert not re.search("<(iframe|script|style|link|img)", shown)
    rows = re.findall("<tr>(.*?)</tr>", shown)
    assert len(rows) == 1 + 44  # a row per message
    text = re.sub("<.*?>", " ", shown)
    assert re.search(r"\d+ of 44 included, [\d,]+ tokens", text)


if __name__ == "__main__":
    renewed = without_frames(executed())
    for cell in renewed.cells:
        cell.metadata.pop("execution", None)
    PATH.write_text(nbformat.writes(renewed) + "\n", encoding="utf-8")  # type: ignore[no-untyped-call]
