"""Ray Data: `map_batches` over lists and structs, `map_groups` over rows; byte-equal results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray

import cupel
from batch_data import as_lists, as_rows, as_structs, newest, random_requests, serialized
from pages import run_page

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
from cluster import start  # noqa: E402
from whole_chats import check_large, check_page  # noqa: E402

REQUESTS = random_requests(11, 400)
EXPECTED = serialized([row for request in REQUESTS for row in newest(request)])


@pytest.fixture(scope="session", autouse=True)
def cluster() -> Iterator[None]:
    start(1)
    yield
    ray.shutdown()


def collected(dataset: ray.data.Dataset) -> pa.Table:
    return pa.concat_tables(dataset.iter_batches(batch_size=None, batch_format="pyarrow"))


# A worker cannot import this module, but gets lambdas by value.
select = lambda batch: pa.table(  # noqa: E731
    cupel.select_batches(batch, policy="newest", threads=1)
)


@pytest.mark.parametrize("layout", [as_lists, as_structs])
def test_map_batches(tmp_path: Path, layout: Any) -> None:
    pq.write_table(layout(REQUESTS), tmp_path / "log.parquet", row_group_size=50)
    log = ray.data.read_parquet(str(tmp_path / "log.parquet"))
    answers = log.map_batches(select, batch_format="pyarrow", batch_size=64, zero_copy_batch=True)
    assert serialized(collected(answers)) == EXPECTED


def test_map_groups(tmp_path: Path) -> None:
    places = [place for request in REQUESTS for place in range(len(request.items))]
    rows = as_rows(REQUESTS).append_column("place", pa.array(places))
    pq.write_table(rows, tmp_path / "log.parquet", row_group_size=500)
    log = ray.data.read_parquet(str(tmp_path / "log.parquet"))

    groups = log.groupby("request_id", num_partitions=2)
    answers = groups.map_groups(
        lambda group: select(group.sort_by("place")), batch_format="pyarrow"
    )
    assert serialized(collected(answers)) == EXPECTED


def test_an_invalid_request_fails_the_job_with_its_name() -> None:
    table = pa.table({"request_id": ["a", "b"], "content": [["x"], [""]], "budget": [5, 5]})
    log = ray.data.from_arrow(table)
    with pytest.raises(Exception, match='request "b", items\\[0\\].content'):
        collected(log.map_batches(select, batch_format="pyarrow"))


def test_the_page_runs() -> None:
    names = run_page({}, "The log", "One machine", "Ray Data")
    assert serialized(names["on_ray"]) == serialized(names["new"])
    assert serialized(names["by_group"]) == serialized(names["new"])


def test_the_page_fits_whole_chats() -> None:
    check_page("Ray Data", "chats_on_ray", {"ray": ray})


def test_100_000_requests_have_the_figures_of_one_process(tmp_path: Path) -> None:
    check_large("Ray Data", "chats_on_ray", {"ray": ray}, tmp_path)
