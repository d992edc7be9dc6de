"""DuckDB, Polars and pandas in and out of `select_batches`: byte-equal results."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cupel
from batch_data import as_lists, as_rows, as_structs, newest, random_requests, serialized

REQUESTS = random_requests(11, 400)
LAYOUTS = {"rows": as_rows, "lists": as_lists, "structs": as_structs}
EXPECTED = serialized([row for request in REQUESTS for row in newest(request)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs in Parquet, in several row groups; those of `rows` cut requests."""
    folder = tmp_path_factory.mktemp("logs")
    for name, layout in LAYOUTS.items():
        pq.write_table(layout(REQUESTS), folder / f"{name}.parquet", row_group_size=97)
    return folder


@pytest.mark.parametrize("layout", LAYOUTS)
def test_duckdb_reads_and_writes_streams(folder: Path, layout: str) -> None:
    connection = duckdb.connect()
    # A cursor of its own: a connection has one open result, and the query below is another.
    log = connection.cursor().sql(f"select * from '{folder / layout}.parquet'")
    connection.register("decisions", cupel.select_batches(log, policy="newest"))
    result = connection.sql("select * from decisions").to_arrow_table()
    assert serialized(result) == EXPECTED


def test_duckdb_sorts_rows_into_requests(folder: Path) -> None:
    connection = duckdb.connect()
    # A column that the package does not know is ignored: here the position before the shuffle.
    connection.execute(
        f"""create table log as
        select *, row_number() over () as place from '{folder}/rows.parquet' order by hash(place)"""
    )
    log = connection.sql("select * from log order by request_id, place")
    result = pa.table(cupel.select_batches(log, policy="newest"))
    assert serialized(result) == EXPECTED


@pytest.mark.parametrize("layout", LAYOUTS)
def test_polars_frames(folder: Path, layout: str) -> None:
    frame = pl.read_parquet(folder / f"{layout}.parquet")
    result = pl.DataFrame(cupel.select_batches(frame, policy="newest"))
    assert serialized(result.to_arrow()) == EXPECTED


@pytest.mark.parametrize("layout", LAYOUTS)
def test_polars_lazy_frames_in_batches(folder: Path, layout: str) -> None:
    batches = pl.scan_parquet(folder / f"{layout}.parquet").collect_batches(chunk_size=50)
    result = pl.DataFrame(cupel.select_batches(batches, policy="newest"))
    assert serialized(result.to_arrow()) == EXPECTED


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pandas_frames_with_arrow_types(folder: Path, layout: str) -> None:
    frame = pd.read_parquet(folder / f"{layout}.parquet", dtype_backend="pyarrow")
    result = pa.table(cupel.select_batches(frame, policy="newest"))
    assert serialized(result) == EXPECTED


def test_pandas_frames_with_numpy_types(folder: Path) -> None:
    frame = pd.read_parquet(folder / "rows.parquet")
    assert frame["tokens"].dtype == "int64"
    result = pa.table(cupel.select_batches(frame, policy="newest"))
    assert serialized(result) == EXPECTED
    # numpy has no time zones: the lists of a frame lose them.
    frame = pd.read_parquet(folder / "lists.parquet")
    with pytest.raises(ValueError, match="expected timestamps with a time zone"):
        cupel.select_batches(frame, policy="newest")
