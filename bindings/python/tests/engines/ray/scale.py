"""Times a replay of 1,000,000 items in 10,000 requests on Ray Data with 1 and 2 workers.

Run it with a release build of the package: `python tests/engines/ray/scale.py`. The time is that
of the second run in a cluster, from Parquet to the sums of the decisions, without its start.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow as pa


def answer(batch: pa.Table) -> pa.Table:
    import cupel

    decisions = pa.table(cupel.select_batches(batch, 4000, "chat", threads=1))
    sums = decisions.group_by("status").aggregate([("tokens", "sum"), ("tokens", "count")])
    return sums


def measure(path: str, workers: int) -> None:
    import ray
    from cluster import start

    start(workers)
    for _ in range(2):
        started = time.perf_counter()
        log = ray.data.read_parquet(path)
        sums = log.map_batches(
            answer, batch_format="pyarrow", batch_size=None, zero_copy_batch=True
        )
        parts = pa.concat_tables(sums.iter_batches(batch_size=None, batch_format="pyarrow"))
        rows = parts.group_by("status").aggregate([("tokens_sum", "sum"), ("tokens_count", "sum")])
        seconds = time.perf_counter() - started
    print(f"Ray Data, {workers} workers: {seconds:.1f} s, {rows.to_pylist()}", flush=True)
    ray.shutdown()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        from scaling import run

        run(__file__)
