"""`select_batches` against the Rust engine: 1,000,000 items in 10,000 requests, 1 and 2 threads.

Run it with the release build of the package (`maturin develop --release`):

    python bench/batches.py [--items 1000000] [--requests 10000] [--runs 5]

It builds `examples/select_requests.rs`, which does the same in Rust, and compares the fastest of
several interleaved runs by wall time, which needs an idle machine. Limits: at most 1.5 times the
Rust program with one thread, and two threads at least 1.7 times as fast as one. Exit status 1 if
one is missed.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

import cupel
from cupel.types import PresetName

PACKAGE = Path(__file__).resolve().parent.parent
PRESET: PresetName = "chat"
BUDGET = 4000
RATIO, SPEEDUP = 1.5, 1.7


def log(requests: int, items: int, seed: int = 1) -> pa.Table:
    """Returns a random log with list columns."""
    rng = random.Random(seed)
    words = ["budget", "window", "token", "item", "score", "rank", "slice", "place", "report"]
    line = " ".join(rng.choice(words) for _ in range(4000))
    each = items // requests
    offsets = pa.array(range(0, items + 1, each), pa.int32())

    def text() -> str:
        start = rng.randrange(20_000)
        return line[start : start + rng.randrange(40, 400)]

    def lists(values: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(offsets, values)

    start = 1_767_225_600_000_000
    return pa.table(
        {
            "request_id": [f"request-{number}" for number in range(requests)],
            "content": lists(pa.array([text() for _ in range(items)])),
            "tokens": lists(pa.array([rng.randrange(10, 100) for _ in range(items)])),
            "timestamp": lists(
                pa.array(
                    [start + rng.randrange(10**9) for _ in range(items)], pa.timestamp("us", "UTC")
                )
            ),
        }
    )


def rows(table: pa.Table) -> pa.Table:
    """Returns the log with one row per item."""
    ids = table["request_id"].combine_chunks()
    lists = {name: table[name].combine_chunks() for name in table.column_names[1:]}
    parents = lists["content"].value_parent_indices()
    return pa.table(
        {"request_id": ids.take(parents), **{name: it.flatten() for name, it in lists.items()}}
    )


def write(table: pa.Table, directory: Path) -> None:
    """Writes the columns for the Rust program."""
    content = table["content"].combine_chunks()
    texts = content.flatten()
    (directory / "counts").write_bytes(
        memoryview(content.value_lengths().cast(pa.uint32()).buffers()[1])
    )
    (directory / "offsets").write_bytes(memoryview(texts.buffers()[1]))
    (directory / "texts").write_bytes(memoryview(texts.buffers()[2]))
    for name, column in [("tokens", "tokens"), ("times", "timestamp")]:
        values = table[column].combine_chunks().flatten()
        (directory / name).write_bytes(memoryview(values.buffers()[1]))


def build() -> Path:
    """Builds the Rust program and returns its path."""
    # The features of `cargo xtask bench-python`, so that nothing is built twice.
    command = ["cargo", "build", "--release", "--example", "select_requests"]
    subprocess.run([*command, "--features", "pyo3/extension-module,bench"], cwd=PACKAGE, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", PACKAGE / "target")
    return Path(target) / "release" / "examples" / "select_requests"


def measure(table: pa.Table, threads: int) -> float:
    """Returns the seconds of one call that reads the whole result."""
    start = time.perf_counter()
    result = pa.table(cupel.select_batches(table, BUDGET, PRESET, threads=threads))
    seconds = time.perf_counter() - start
    assert result.num_rows > 0
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    program = build()
    table = log(arguments.requests, arguments.items)
    by_row = rows(table)
    print(f"{arguments.items:,} items in {arguments.requests:,} requests, preset {PRESET},")
    print(f"load {os.getloadavg()[0]:.1f}, fastest of {arguments.runs} runs, seconds")
    names = ["Rust, items built", "Rust, prebuilt items", "lists", "rows"]
    best = {(name, threads): math.inf for name in names for threads in (1, 2)}

    def add(name: str, threads: int, seconds: float) -> None:
        best[name, threads] = min(best[name, threads], seconds)

    with tempfile.TemporaryDirectory() as directory:
        write(table, Path(directory))
        for _ in range(arguments.runs):
            for threads in (1, 2):
                # Two runs: the first of a process pays for its memory.
                command = [str(program), directory, PRESET, str(BUDGET), str(threads), "2"]
                printed = subprocess.run(command, check=True, capture_output=True, text=True)
                for name, line in zip(names, printed.stdout.splitlines(), strict=False):
                    numbers = [float(number) for number in line.split()]
                    # Wall and CPU time of each run.
                    add(name, threads, min(numbers[::2]))
                add("lists", threads, measure(table, threads))
                add("rows", threads, measure(by_row, threads))
    print(f"{'threads':22}{'1':>8}{'2':>8}{'speedup':>9}{'to Rust: 1':>12}{'2':>8}")
    failed = False
    for name in names:
        one, two = best[name, 1], best[name, 2]
        ratios = [best[name, threads] / best[names[0], threads] for threads in (1, 2)]
        print(f"{name:22}{one:8.3f}{two:8.3f}{one / two:9.2f}{ratios[0]:12.2f}{ratios[1]:8.2f}")
        if name in ("lists", "rows"):
            failed |= one / two < SPEEDUP or ratios[0] > RATIO
    print(f"limits: to Rust at most {RATIO}, speedup at least {SPEEDUP}:", end=" ")
    print("missed" if failed else "met")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
