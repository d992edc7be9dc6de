"""Runs a script over a log of 1,000,000 items in 10,000 requests, with 1 and 2 workers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from batches import log  # noqa: E402

FILES = 8


def run(script: str) -> None:
    """Runs `script FOLDER WORKERS`, each time in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for part in range(FILES):
            table = log(10_000 // FILES, 1_000_000 // FILES, seed=part)
            pq.write_table(table, f"{folder}/part-{part}.parquet")
        for workers in ("1", "2"):
            subprocess.run([sys.executable, script, folder, workers], check=True)
