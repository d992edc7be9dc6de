"""Requests per second of CPU time: `fit_batches` in an engine, and `cupel batch`, which is Rust.

Run it with a release build of the package, in the environment of the engine:

    python tests/request_log.py FOLDER 100000
    python tests/engines/throughput.py FOLDER rust duckdb polars spark ray

CPU time is user and system time of all processes of the engine, from Parquet to the sums of the
figures, without its start: on a busy machine it says more than the time on the clock.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

import cupel

COLUMNS = ["conversation", "order", "request"]
SUMS = "count(*), sum(tokens_after), sum(reused_tokens), sum(cost)"
FIGURES = """conversation string, `order` long, tokens_before long, tokens_after long, kept long,
    dropped long, shortened long, kept_indices array<long>, dropped_indices array<long>,
    reasons array<string>, shortened_indices array<long>, reused_tokens long, reused_share double,
    cost double, warnings array<string>, error_code string, error string, error_place string"""


def cpu_seconds() -> float:
    """Returns the CPU time of this process and of all that it started."""
    times: dict[int, tuple[int, int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:  # It ended.
            continue
        # ppid, and utime, stime, cutime, cstime: proc(5).
        times[int(stat.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    own = {os.getpid()}
    while True:
        found = {pid for pid, (parent, _) in times.items() if parent in own} - own
        if not found:
            return sum(times[pid][1] for pid in own if pid in times) / os.sysconf("SC_CLK_TCK")
        own |= found


def rust(folder: str) -> Callable[[], int]:
    lines = tempfile.mkdtemp() + "/log.jsonl"
    count = 0
    with open(lines, "w", encoding="utf-8") as file:
        for batch in ds.dataset(folder).to_batches(columns=["request"], batch_size=1_000):
            for request in batch["request"].to_pylist():
                file.write((request or "null") + "\n")
                count += 1

    def run() -> int:
        command = [sys.executable, "-m", "cupel", "batch", lines, os.devnull, "--brief"]
        subprocess.run([*command, "--budget", "2k", "--quiet"], stderr=subprocess.DEVNULL)
        return count

    return run


def process(folder: str) -> Callable[[], int]:
    def run() -> int:
        batches = ds.dataset(folder).to_batches(columns=COLUMNS, batch_size=1_000)
        fitted = cupel.fit_batches(batches, "2k")
        for _ in fitted:
            pass
        return int(fitted.summary["rows"])

    return run


def duckdb(folder: str) -> Callable[[], int]:
    import duckdb

    def run() -> int:
        log = duckdb.connect().sql(
            f"select conversation, \"order\", request from '{folder}/*.parquet'"
        )
        figures = cupel.fit_batches(log, "2k")
        connection = duckdb.connect()
        connection.register("figures", figures)
        [row] = connection.sql(f"select {SUMS} from figures").fetchall()
        return int(row[0])

    return run


def polars(folder: str) -> Callable[[], int]:
    import polars as pl

    def run() -> int:
        log = pl.scan_parquet(f"{folder}/*.parquet").select(COLUMNS)
        figures = pl.DataFrame(cupel.fit_batches(log.collect_batches(chunk_size=1_000), "2k"))
        figures.select(pl.col("tokens_after", "reused_tokens", "cost").sum())
        return figures.height

    return run


def spark(folder: str) -> Callable[[], int]:
    sys.path.insert(0, str(Path(__file__).parent / "spark"))
    from session import start

    session = start(2)

    def fit_log(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import cupel

        yield from cupel.fit_batches(batches, "2k", threads=1)

    def run() -> int:
        log = session.read.parquet(folder).select(*COLUMNS)
        figures = log.mapInArrow(fit_log, FIGURES)
        [row] = figures.selectExpr(*SUMS.split(", ")).collect()
        return int(row[0])

    return run


def ray(folder: str) -> Callable[[], int]:
    sys.path.insert(0, str(Path(__file__).parent / "ray"))
    import ray
    from cluster import start

    start(2)

    def fit_log(batch: pa.Table) -> pa.Table:
        import cupel

        fitted = cupel.fit_batches(batch, "2k", threads=1)
        sums = pa.table(fitted).group_by([]).aggregate([("tokens_after", "sum"), ("cost", "sum")])
        return sums.append_column("rows", pa.array([fitted.summary["rows"]]))

    def run() -> int:
        log = ray.data.read_parquet(folder).select_columns(COLUMNS)
        sums = log.map_batches(
            fit_log, batch_format="pyarrow", batch_size=None, zero_copy_batch=True
        )
        parts = sums.iter_batches(batch_size=None, batch_format="pyarrow")
        return sum(sum(part["rows"].to_pylist()) for part in parts)

    return run


ENGINES: dict[str, Callable[[str], Callable[[], int]]] = {
    it.__name__: it for it in (rust, process, duckdb, polars, spark, ray)
}


def measure(engine: str, folder: str) -> None:
    """Prints the requests per CPU second, and the most memory of this process."""
    run: Any = ENGINES[engine](folder)
    cpu, clock = cpu_seconds(), time.perf_counter()
    requests = run()
    cpu, clock = cpu_seconds() - cpu, time.perf_counter() - clock
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{engine}: {requests} requests, {cpu:.1f} s of CPU, {clock:.1f} s, "
        f"{requests / cpu:.0f} requests per CPU second, {peak:.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) == 3:
        measure(sys.argv[2], sys.argv[1])
    for name in sys.argv[2:] if len(sys.argv) > 3 else ():
        # A process of its own, so that none finds the texts that another one counted.
        subprocess.run([sys.executable, __file__, sys.argv[1], name], check=True)
