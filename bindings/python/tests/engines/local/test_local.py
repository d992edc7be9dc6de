"""DuckDB and Polars: `fit_batches` over 100,000 requests, as the page does it."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pyarrow as pa

import cupel

sys.path.insert(0, str(Path(__file__).parents[1]))
from whole_chats import check_large  # noqa: E402


def test_100_000_requests_in_duckdb(tmp_path: Path) -> None:
    names = check_large("DuckDB", None, {}, tmp_path)
    # The page sums up; here are the rows.
    fitted: cupel.FittedBatches = names["fitted_log"]("agent")
    names["check"](pa.table(fitted))


def test_100_000_requests_in_polars(tmp_path: Path) -> None:
    def table(figures: pl.DataFrame) -> pa.Table:
        return figures.to_arrow()

    names = check_large("Polars", None, {}, tmp_path)
    names["check"](table(names["figures"]))
