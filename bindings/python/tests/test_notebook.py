"""Executes the notebook of the examples."""

from __future__ import annotations

from typing import Any

import nbformat
from nbclient import NotebookClient

from command import ROOT


def printed(cell: Any) -> str:
    """Returns what a cell printed."""
    return "".join(output["text"] for output in cell.outputs if output.output_type == "stream")


def test_the_notebook_shows_what_it_prints() -> None:
    path = ROOT / "examples/cupel.ipynb"
    text = path.read_text(encoding="utf-8")
    stored: Any = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    executed: Any = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(
        executed, timeout=60, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    ).execute()
    cells = [cell for cell in executed.cells if cell.cell_type == "code"]
    expected = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [printed(cell) for cell in cells] == [printed(cell) for cell in expected]
    assert sum(bool(printed(cell)) for cell in expected) >= 3
    # The report is shown as the page, in a frame.
    [page] = [
        output["data"]["text/html"]
        for cell in cells
        for output in cell.outputs
        if "text/html" in output.get("data", {})
    ]
    assert "<iframe" in page and "srcdoc" in page
