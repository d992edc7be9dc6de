"""Times a replay of 1,000,000 items in 10,000 requests on Spark with 1 and 2 workers.

Run it with a release build of the package: `python tests/engines/spark/scale.py`. The time is that
of the second run in a session, from Parquet to the sums of the decisions, without its start.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

SCHEMA = """request_id string, index long, rank long, score double, status string, reason string,
    position long, tokens long"""


def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import cupel

    yield from cupel.select_batches(batches, 4000, "chat", threads=1)


def measure(path: str, workers: int) -> None:
    from session import start

    spark = start(workers)
    for _ in range(2):
        started = time.perf_counter()
        decisions = spark.read.parquet(path).mapInArrow(answer, SCHEMA)
        rows = decisions.groupBy("status").agg({"tokens": "sum", "*": "count"}).collect()
        seconds = time.perf_counter() - started
    print(f"Spark, {workers} workers: {seconds:.1f} s, {sorted(map(tuple, rows))}", flush=True)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        from scaling import run

        run(__file__)
