"""Spark: `mapInArrow` over lists and structs, `applyInArrow` over groups; byte-equal results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import cupel
from batch_data import as_lists, as_rows, as_structs, newest, random_requests, serialized
from pages import run_page

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
from session import start  # noqa: E402
from whole_chats import check_large, check_page  # noqa: E402

REQUESTS = random_requests(11, 400)
EXPECTED = serialized([row for request in REQUESTS for row in newest(request)])
SCHEMA = """request_id string, index long, rank long, score double, status string, reason string,
    position long, tokens long"""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start(1)
    yield session
    session.stop()


# A worker cannot import this module, but gets lambdas by value.
select = lambda batches: cupel.select_batches(batches, policy="newest", threads=1)  # noqa: E731


@pytest.mark.parametrize("layout", [as_lists, as_structs])
def test_map_in_arrow(spark: SparkSession, tmp_path: Path, layout: Any) -> None:
    pq.write_table(layout(REQUESTS), tmp_path / "log.parquet", row_group_size=50)
    log = spark.read.parquet(str(tmp_path / "log.parquet")).repartition(3)
    assert serialized(log.mapInArrow(select, SCHEMA).toArrow()) == EXPECTED


def with_places() -> pa.Table:
    """Rows with the position of each item, because a shuffle does not keep the order."""
    places = [place for request in REQUESTS for place in range(len(request.items))]
    return as_rows(REQUESTS).append_column("place", pa.array(places))


def test_apply_in_arrow(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(with_places(), tmp_path / "log.parquet", row_group_size=500)
    log = spark.read.parquet(str(tmp_path / "log.parquet"))

    def one(group: pa.Table) -> pa.Table:
        return pa.table(cupel.select_batches(group.sort_by("place"), policy="newest", threads=1))

    assert serialized(log.groupBy("request_id").applyInArrow(one, SCHEMA).toArrow()) == EXPECTED


def test_rows_collected_to_structs(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(with_places(), tmp_path / "log.parquet", row_group_size=500)
    log = spark.read.parquet(str(tmp_path / "log.parquet"))
    item = F.struct("place", "content", "tokens", "timestamp", "pinned")
    lists = log.groupBy("request_id", "budget").agg(
        F.sort_array(F.collect_list(item)).alias("items")
    )
    assert serialized(lists.mapInArrow(select, SCHEMA).toArrow()) == EXPECTED


def test_an_invalid_request_fails_the_job_with_its_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = pa.table({"request_id": ["a", "b"], "content": [["x"], [""]], "budget": [5, 5]})
    pq.write_table(table, tmp_path / "log.parquet")
    log = spark.read.parquet(str(tmp_path / "log.parquet"))
    with pytest.raises(PythonException, match='request "b", items\\[0\\].content'):
        log.mapInArrow(select, SCHEMA).toArrow()


def test_the_page_runs(spark: SparkSession) -> None:
    names = run_page({"spark": spark}, "The log", "One machine", "Spark")
    assert serialized(names["on_spark"]) == serialized(names["new"])
    assert serialized(names["by_group"]) == serialized(names["new"])


def test_the_page_fits_whole_chats(spark: SparkSession) -> None:
    check_page("Spark", "chats_on_spark", {"spark": spark})


def test_100_000_requests_have_the_figures_of_one_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    check_large("Spark", "chats_on_spark", {"spark": spark}, tmp_path)
