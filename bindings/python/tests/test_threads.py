"""The global interpreter lock is released while the engine runs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import cupel
from strategies import Json

# The knapsack has 2,000 times 5,000 cells: some ten milliseconds per run.
ITEMS: list[Json] = [
    {"content": f"item {at}", "tokens": 1 + at * 7919 % 97, "future_relevance_hint": at % 89 / 89}
    for at in range(2_000)
]
POLICY = cupel.Policy("reflexive", {"type": "knapsack", "bucket_size": 1})


def test_another_thread_makes_progress_during_a_run() -> None:
    prebuilt = cupel.Items(ITEMS)
    done = threading.Event()
    progress = 0

    def count() -> None:
        nonlocal progress
        while not done.is_set():
            progress += 1

    counter = threading.Thread(target=count)
    cupel.select_index(prebuilt, 5_000, POLICY)
    counter.start()
    before = progress
    cupel.select_index(prebuilt, 5_000, POLICY)
    after = progress
    done.set()
    counter.join()
    # The interpreter switches threads every 5 ms, so few steps would fit without a release.
    assert after - before > 1_000


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
