"""Runs the command `cupel`: the binary that `CUPEL` names, otherwise ``python -m cupel``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def command() -> list[str]:
    """Returns the command line of the command."""
    binary = os.environ.get("CUPEL")
    return [binary] if binary else [sys.executable, "-m", "cupel"]


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the command and returns its output. Its exit status is not checked."""
    return subprocess.run(
        [*command(), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        check=False,
    )
