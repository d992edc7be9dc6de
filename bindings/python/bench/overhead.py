"""Measures the package next to the engine alone, and two threads next to one.

Needs a release build with the feature `bench`: ``cargo xtask bench-python``. The engine is timed in
the same process, in turns with the package, so that both see the same load of the machine.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import cupel
from cupel._cupel import engine_nanoseconds  # type: ignore[attr-defined]

ROOT = Path(__file__).resolve().parents[3]
ITEMS = 1_000
ROUNDS = 60
BUDGET = 40_000


def documents() -> list[dict[str, Any]]:
    """Returns items as a retrieval step makes them: hundreds of characters, times, hints."""
    rng = random.Random(1)
    words = "order parcel carrier invoice bicycle refund branch merge error test".split()
    start = datetime(2026, 3, 2, tzinfo=UTC)
    return [
        {
            "content": f"{at} " + " ".join(rng.choice(words) for _ in range(rng.randint(20, 120))),
            "tokens": rng.randint(20, 160),
            "kind": rng.choice(["Message", "Document", "ToolOutput"]),
            "timestamp": start + timedelta(seconds=at),
            "future_relevance_hint": rng.random(),
        }
        for at in range(ITEMS)
    ]


def values(items: list[dict[str, Any]]) -> list[list[Any]]:
    """Returns the values of every item."""
    return [[item[key] for key in item] for item in items]


def timed(call: Callable[[], object]) -> int:
    """Returns the nanoseconds of one call."""
    start = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - start


def repeat(call: Callable[[], object], runs: int) -> None:
    """Calls a function several times."""
    for _ in range(runs):
        call()


def main() -> int:
    """Prints one table and returns 1 if a bar is missed."""
    items = documents()
    prebuilt = cupel.Items(items)
    missed = 0

    def row(
        name: str, microseconds: float, ratio: float, bar: float | None, *, at_least: bool
    ) -> None:
        nonlocal missed
        if bar is None:
            print(f"{name:34}  {microseconds:10.1f}  {ratio:5.2f}")
            return
        is_met = ratio >= bar if at_least else ratio <= bar
        missed += not is_met
        sign = ">=" if at_least else "<="
        verdict = "ok" if is_met else "MISSED"
        print(f"{name:34}  {microseconds:10.1f}  {ratio:5.2f}  {sign} {bar:<4}  {verdict}")

    def compare(
        form: str,
        call: Callable[[], object],
        policy: cupel.Policy,
        *,
        build: bool,
        bar: float | None,
    ) -> None:
        engine: list[int] = []
        times: list[int] = []
        # In turns, so that both sides see the same load and the same caches.
        for _ in range(ROUNDS):
            engine.extend(engine_nanoseconds(prebuilt, BUDGET, policy, 1, build=build))
            times.append(timed(call))
        print(f"{'  engine':34}  {statistics.median(engine) / 1e3:10.1f}")
        ratio = statistics.median(t / e for t, e in zip(times, engine, strict=True))
        row(f"  {form}", statistics.median(times) / 1e3, ratio, bar, at_least=False)

    print(f"{ITEMS:,} items, medians of {ROUNDS} rounds\n")
    print(f"{'':34}  {'us per run':>10}  {'ratio':>5}  bar")
    for name in ("chat", "rag"):
        policy = cupel.Policy.preset(name)
        dicts = partial(cupel.select, items, BUDGET, policy)
        again = partial(cupel.select, prebuilt, BUDGET, policy)
        print(f"policy {name}, engine alone")
        compare("select, prebuilt items", again, policy, build=False, bar=1.2)
        # No bar: CPython alone takes longer than the engine to read the values of so many dicts.
        compare("Python reads the dicts", partial(values, items), policy, build=False, bar=None)
        compare("select, dicts", dicts, policy, build=False, bar=None)
        print(f"policy {name}, engine that builds its items first")
        compare("select, dicts", dicts, policy, build=True, bar=3.0)

    chat = json.loads((ROOT / "examples/agent-session.json").read_text(encoding="utf-8"))
    many = cupel.Items([{**item, "tags": [f"t{i % 9}"]} for i, item in enumerate(items * 10)])
    frequency = cupel.Policy("frequency", deduplication=False)
    loads: dict[str, tuple[Callable[[], object], int]] = {
        "fit of a chat": (partial(cupel.fit, chat, "2k"), 100),
        "select_index, 10,000 items": (partial(cupel.select_index, many, BUDGET, frequency), 200),
        "select_index, 1,000 items": (partial(cupel.select_index, prebuilt, BUDGET, "chat"), 2_000),
    }
    for name, (call, runs) in loads.items():
        one, two = [], []
        with ThreadPoolExecutor(2) as pool:
            for _ in range(9):
                one.append(timed(partial(repeat, call, runs)))
                two.append(timed(lambda: list(pool.map(partial(repeat, call), [runs // 2] * 2))))  # noqa: B023
        speedup = statistics.median(first / second for first, second in zip(one, two, strict=True))
        print(f"{f'1 thread, {name}':34}  {statistics.median(one) / runs / 1e3:10.1f}")
        row("  2 threads", statistics.median(two) / runs / 1e3, speedup, 1.7, at_least=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
