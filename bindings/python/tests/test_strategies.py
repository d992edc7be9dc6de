"""Scorers, slicers and placers in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
import pytest

import cupel
from strategies import Json

ITEMS: list[Json] = [{"content": text, "tokens": 10} for text in ("a", "bbb", "cc")]
Scored = Sequence[tuple[cupel.Item, float]]


def length(items: Sequence[cupel.Item]) -> list[float]:
    """Scores items by the length of their content."""
    return [float(len(item.content)) for item in items]


def test_a_scorer_is_a_function_of_all_items() -> None:
    calls: list[int] = []

    def score(items: Sequence[cupel.Item]) -> list[float]:
        calls.append(len(items))
        return length(items)

    selection = cupel.select(ITEMS, 20, cupel.Policy(score, "rank"))
    assert sorted(selection.indices) == [1, 2]
    assert calls == [3]
    assert [entry["score"] for entry in selection.report.excluded] == [1.0]


def test_a_scorer_may_return_any_sequence_of_numbers() -> None:
    forms: list[Any] = [(1, 3, 2), numpy.array([1.0, 3.0, 2.0]), numpy.array([1, 3, 2])]
    for scores in forms:

        def score(_: Sequence[cupel.Item], scores: Any = scores) -> Any:
            return scores

        assert sorted(cupel.select_index(ITEMS, 20, cupel.Policy(score, "rank"))) == [1, 2]


def test_a_slicer_gets_scored_items_and_the_budget() -> None:
    seen: list[Any] = []

    def last(scored: Scored, budget: cupel.Budget) -> list[int]:
        seen.append(([(item.content, score) for item, score in scored], budget.target_tokens))
        return [len(scored) - 1]

    selection = cupel.select(ITEMS, 25, cupel.Policy(length, last))
    assert seen == [([("bbb", 3.0), ("cc", 2.0), ("a", 1.0)], 25)]
    assert selection.indices == [0]


def test_a_placer_orders_the_window() -> None:
    def backward(scored: Scored) -> list[int]:
        return list(reversed(range(len(scored))))

    forward = cupel.select_index(ITEMS, 30, cupel.Policy(length, "rank", lambda s: range(len(s))))
    assert forward == [1, 2, 0]
    assert cupel.select_index(ITEMS, 30, cupel.Policy(length, "rank", backward)) == [0, 2, 1]


def test_an_object_with_call_is_a_strategy() -> None:
    class ByLength:
        def __call__(self, items: Sequence[cupel.Item]) -> list[float]:
            return length(items)

    assert sorted(cupel.select_index(ITEMS, 20, cupel.Policy(ByLength(), "rank"))) == [1, 2]


def test_a_built_in_strategy_is_callable() -> None:
    items = [cupel.Item("a", 10, future_relevance_hint=0.5), cupel.Item("b", 10)]
    scorer = cupel.Scorer.from_dict({"type": "reflexive"})
    assert scorer(items) == [0.5, 0.0]
    scored = list(zip(items, scorer(items), strict=True))
    slicer = cupel.Slicer.from_dict({"type": "greedy"})
    assert slicer(scored, cupel.Budget(10)) == [0]
    assert slicer(scored, 10) == [0]
    placer = cupel.Placer.from_dict({"type": "u-shaped"})
    assert sorted(placer(scored)) == [0, 1]


class Odd(Exception):
    """An exception that the package does not know."""


def fail(*_: object) -> Any:
    raise Odd("from a strategy")


STRATEGIES = [
    (fail, "rank", "chronological"),
    (length, fail, "chronological"),
    (length, "rank", fail),
]


@pytest.mark.parametrize("strategies", STRATEGIES, ids=["scorer", "slicer", "placer"])
def test_an_exception_of_a_strategy_comes_out_as_itself(strategies: Any) -> None:
    with pytest.raises(Odd, match="from a strategy") as raised:
        cupel.select(ITEMS, 20, cupel.Policy(*strategies))
    # The traceback ends in the strategy.
    assert raised.traceback[-1].name == "fail"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, StopIteration])
def test_every_exception_comes_out(error: type[BaseException]) -> None:
    def score(_: object) -> list[float]:
        raise error

    with pytest.raises(error):
        cupel.select(ITEMS, 20, cupel.Policy(score))


BROKEN: list[tuple[str, Any, Any, Any]] = [
    ("scorer", lambda _: [1.0], "rank", "chronological"),
    ("scorer", lambda _: [1.0, 2.0, 3.0, 4.0], "rank", "chronological"),
    ("scorer", lambda _: ["1", "2", "3"], "rank", "chronological"),
    ("scorer", lambda _: None, "rank", "chronological"),
    ("scorer", lambda _: {0: 0.1, 1: 0.2, 2: 0.3}, "rank", "chronological"),
    ("scorer", lambda _: {0.1, 0.2, 0.3}, "rank", "chronological"),
    ("slicer", length, lambda scored, budget: [True, False, True], "chronological"),
    ("slicer", length, lambda scored, budget: [3], "chronological"),
    ("slicer", length, lambda scored, budget: [-1], "chronological"),
    ("slicer", length, lambda scored, budget: [0, 0], "chronological"),
    ("slicer", length, lambda scored, budget: ["0"], "chronological"),
    ("slicer", length, lambda scored, budget: None, "chronological"),
    ("placer", length, "rank", lambda scored: [0]),
    ("placer", length, "rank", lambda scored: [0, 0]),
    ("placer", length, "rank", lambda scored: [0, 5]),
    ("placer", length, "rank", lambda scored: 1),
]


@pytest.mark.parametrize("broken", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_contract_is_an_error_that_names_the_strategy(broken: Any) -> None:
    role, *strategies = broken
    with pytest.raises(cupel.CupelError, match=role):
        cupel.select(ITEMS, 20, cupel.Policy(*strategies))


@pytest.mark.parametrize("strategy", [5, None, object(), []], ids=str)
def test_something_that_is_no_strategy_is_refused(strategy: Any) -> None:
    with pytest.raises((cupel.InvalidInputError, TypeError)):
        cupel.Policy(strategy)


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(cupel.InvalidInputError, match="reflexive"):
        cupel.Policy("reflexiv")  # type: ignore[arg-type]


def test_a_policy_with_a_callable_cannot_be_written() -> None:
    with pytest.raises(cupel.CupelError):
        cupel.Policy(length).to_dict()


def test_the_error_names_the_element_that_is_not_a_number() -> None:
    items = [cupel.Item("a", 1), cupel.Item("b", 1)]
    with pytest.raises(cupel.CupelError, match="returned 'x' at 1, expected a float"):
        scores: Any = [0.5, "x"]
        cupel.select(items, 5, cupel.Policy(lambda items: scores))
    with pytest.raises(cupel.CupelError, match="returned -1 at 0, expected a position"):
        cupel.select(items, 5, cupel.Policy("recency", lambda scored, budget: [-1]))


def test_a_score_that_is_not_finite_is_a_float_in_the_report() -> None:
    policy = cupel.Policy(lambda items: [float("inf")] * len(items))
    (entry,) = cupel.select([cupel.Item("a", 1)], 5, policy).report.included
    assert entry["score"] == float("inf")


def test_policies_with_callables_are_equal_only_to_themselves() -> None:
    policy = cupel.Policy(length)
    assert policy == policy
    assert policy != cupel.Policy(length)
    assert cupel.Policy("recency") == cupel.Policy("recency") != cupel.Policy("priority")


def test_a_pipeline_of_a_policy_takes_nothing_else() -> None:
    policy = cupel.Policy("recency")
    assert cupel.Pipeline({"scorer": {"type": "recency"}}).policy == policy
    with pytest.raises(TypeError, match="a Policy has its slicer"):
        cupel.Pipeline(policy, "rank")
