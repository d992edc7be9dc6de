"""`select_batches` against the Rust engine: 1,000,000 items in 10,000 requests, 1 and 2 threads.

Run it with the release build of the package (`maturin develop --release`):

    python bench/batches.py [--items 1000000] [--requests 10000] [--runs 5]

It builds `examples/select_requests.rs`, which does the same in Rust, and compares the fastest of
several interleaved runs. Limits: at most 1.5 times the Rust program, and two threads at least 1.7
times as fast as one. Exit status 1 if one is missed, by wall time and by CPU time: wall time means
nothing on a busy machine. By CPU time, the speedup is 1 / (s + (1 - s) / 2), where s is the share
of the calling thread, which does what is not parallel (Amdahl 1967).
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
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import cupel

PACKAGE = Path(__file__).resolve().parent.parent
PRESET, BUDGET = "chat", 4000
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


@dataclass
class Best:
    """The fastest of several runs, in seconds."""

    wall: float = math.inf
    cpu: float = math.inf
    share: float = 0.0

    def add(self, wall: float, cpu: float, caller: float = 0.0) -> None:
        """Adds a run: wall time, CPU time, and the CPU time of the calling thread."""
        self.wall = min(self.wall, wall)
        if cpu < self.cpu:
            self.cpu, self.share = cpu, caller / cpu


def measure(table: pa.Table, threads: int, best: Best) -> None:
    """Times one call that reads the whole result."""
    clocks = (time.perf_counter, time.process_time, time.thread_time)
    before = [clock() for clock in clocks]
    result = pa.table(cupel.select_batches(table, BUDGET, PRESET, threads=threads))
    wall, cpu, caller = (clock() - start for clock, start in zip(clocks, before, strict=True))
    best.add(wall, cpu, caller)
    assert result.num_rows > 0


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
    best = {(name, threads): Best() for name in names for threads in (1, 2)}
    with tempfile.TemporaryDirectory() as directory:
        write(table, Path(directory))
        for _ in range(arguments.runs):
            for threads in (1, 2):
                # Two runs: the first of a process pays for its memory.
                command = [str(program), directory, PRESET, str(BUDGET), str(threads), "2"]
                printed = subprocess.run(command, check=True, capture_output=True, text=True)
                for name, line in zip(names, printed.stdout.splitlines(), strict=False):
                    numbers = [float(number) for number in line.split()]
                    for wall, cpu in zip(numbers[::2], numbers[1::2], strict=True):
                        best[name, threads].add(wall, cpu)
                measure(table, threads, best["lists", threads])
                measure(by_row, threads, best["rows", threads])
    print(f"{'':22}{'wall: 1':>8}{'2':>7}{'speedup':>9}{'to Rust':>9}", end="")
    print(f"{'CPU: 1':>9}{'2':>7}{'speedup':>9}{'to Rust':>9}")
    failed = False
    for name in names:
        one, two, rust = best[name, 1], best[name, 2], best[names[0], 1]
        wall, ratio = one.wall / two.wall, one.wall / rust.wall
        print(f"{name:22}{one.wall:8.3f}{two.wall:7.3f}{wall:9.2f}{ratio:9.2f}", end="")
        speedup = 1 / (two.share + (1 - two.share) / 2)
        shown = f"{speedup:.2f}" if two.share else ""
        print(f"{one.cpu:9.3f}{two.cpu:7.3f}{shown:>9}{one.cpu / rust.cpu:9.2f}")
        if name in ("lists", "rows"):
            failed |= wall < SPEEDUP and speedup < SPEEDUP
            failed |= ratio > RATIO and one.cpu / rust.cpu > RATIO
    print(f"limits: to Rust at most {RATIO}, speedup at least {SPEEDUP}:", end=" ")
    print("missed" if failed else "met")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
