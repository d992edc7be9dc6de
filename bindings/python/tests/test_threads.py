"""The global interpreter lock is released while the engine runs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import cupel
from strategies import Json

# The knapsack has 2,000 times 5,000 cells: some ten milliseconds per run.
ITEMS: list[Json] = [
    {"content": f"item {at}", "tokens": 1 + at * 7919 % 97, "future_relevance_hint": at % 89 / 89}
    for at in range(2_000)
]
POLICY = cupel.Policy("reflexive", {"type": "knapsack", "bucket_size": 1})


@pytest.fixture
def no_switches() -> Iterator[None]:
    """Keeps the interpreter from switching threads unless one releases the lock."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    yield
    sys.setswitchinterval(interval)


def test_another_thread_makes_progress_during_a_run(no_switches: None) -> None:
    prebuilt = cupel.Items(ITEMS)
    done = threading.Event()
    progress = 0

    def count() -> None:
        nonlocal progress
        while not done.is_set():
            progress += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    counter.start()
    before = progress
    # A busy machine may wake the other thread late: one run of many is enough.
    for _ in range(100):
        cupel.select_index(prebuilt, 5_000, POLICY)
        if progress > before:
            break
    after = progress
    done.set()
    counter.join()
    assert after > before


def test_threads_get_the_same_answers() -> None:
    prebuilt = cupel.Items(ITEMS[:300])
    expected = [cupel.select_index(prebuilt, budget, POLICY) for budget in range(500, 540)]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(
            lambda budget: cupel.select_index(prebuilt, budget, POLICY), range(500, 540)
        )
        assert list(found) == expected


def test_a_callable_runs_in_the_thread_of_its_caller() -> None:
    threads: list[int] = []

    def score(items: object) -> list[float]:
        threads.append(threading.get_ident())
        return [float(at) for at in range(50)]

    policy = cupel.Policy(score, "rank")
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(
            lambda _: (threading.get_ident(), cupel.select_index(ITEMS[:50], 9, policy)), range(20)
        )
        callers = [caller for caller, _ in found]
    assert sorted(threads) == sorted(callers)
