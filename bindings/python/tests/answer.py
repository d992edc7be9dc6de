"""Answers the questions of ``cupel conform --exec`` with the public interface of the package.

A question and its answer are one line of JSON each: crates/cupel-conformance/PROGRAM.md.
With ``--wrapped`` the strategies of a run are Python callables around the built-in ones.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import cupel

T = TypeVar("T")
Json = dict[str, Any]


class Failed(Exception):
    """A question whose answer is an error."""

    def __init__(self, error: cupel.CupelError, code: str, *, at_construction: bool) -> None:
        super().__init__(error.message)
        self.error: Json = {
            "code": error.code or code,
            "message": error.cause or error.message,
            "at_construction": at_construction,
        }


def construct(code: str, build: Callable[[], T]) -> T:
    """Returns a part of the question. `code` is the code of an error that has none."""
    try:
        return build()
    except cupel.CupelError as error:
        raise Failed(error, code, at_construction=True) from error


def run(call: Callable[[], T]) -> T:
    """Returns the result of a call of the engine."""
    try:
        return call()
    except cupel.CupelError as error:
        raise Failed(error, "", at_construction=False) from error


def answer(question: Json, *, wrapped: bool) -> Json:
    """Returns the answer to a question."""
    match question["task"]:
        case "score":
            items = read_items(question["items"])
            scorer = read_scorer(question["scorer"])
            return {"scores": run(lambda: scorer(items))}
        case "slice":
            scored = read_scored(question["items"])
            budget = read_budget(question["budget"])
            slicer = read_slicer(question["slicer"])
            selected = run(lambda: slicer.select(scored, budget))
            return {
                "kept": selected.kept,
                "shortfalls": selected.shortfalls,
                "cap_rejected": [
                    position
                    for position, reason in selected.refusals
                    if reason["reason"] == "CountCapExceeded"
                ],
            }
        case "place":
            scored = read_scored(question["items"])
            placer = read_placer(question["placer"])
            return {"order": run(lambda: placer(scored))}
        case "run":
            items = read_items(question["items"])
            budget = read_budget(question["budget"])
            document = question["policy"]
            if wrapped:
                policy = wrap(document)
                report = run(lambda: cupel.select(items, budget, policy, trace=True)).report
                return {**report.to_dict()}
            policy = construct("PipelineConfig", lambda: cupel.Policy.from_dict(document))
            selection = run(lambda: cupel.select(question["items"], budget, policy, trace=True))
            return {**selection.report.to_dict()}
        case task:
            return {"unsupported": f"unknown task {task!r}"}


def wrap(document: Json) -> cupel.Policy:
    """Returns the policy of a document with Python callables as its strategies."""
    scorer = read_scorer(document["scorer"])
    slicer = read_slicer(document["slicer"])
    placer = read_placer(document["placer"])

    def score(items: Sequence[cupel.Item]) -> list[float]:
        return scorer(items)

    def slice_(scored: Sequence[tuple[cupel.Item, float]], budget: cupel.Budget) -> cupel.Choice:
        return slicer.select(scored, budget)

    def place(scored: Sequence[tuple[cupel.Item, float]]) -> list[int]:
        return placer(scored)

    return construct(
        "PipelineConfig",
        lambda: cupel.Policy(
            score,
            slice_,
            place,
            deduplication=document["deduplication"],
            overflow_strategy=document["overflow_strategy"],
        ),
    )


def read_items(items: list[Json]) -> cupel.Items:
    return construct("Document", lambda: cupel.Items(items))


def read_scored(scored: list[Json]) -> list[tuple[cupel.Item, float]]:
    items = read_items([entry["item"] for entry in scored])
    return list(zip(items, (float(entry["score"]) for entry in scored), strict=True))


def read_budget(budget: Json) -> cupel.Budget:
    margin = float(budget["estimation_safety_margin_percent"])
    budget = budget | {"estimation_safety_margin_percent": margin}
    return construct("InvalidBudget", lambda: cupel.Budget(**budget))


def read_scorer(document: Json) -> cupel.Scorer:
    return construct("ScorerConfig", lambda: cupel.Scorer.from_dict(document))


def read_slicer(document: Json) -> cupel.Slicer:
    return construct("SlicerConfig", lambda: cupel.Slicer.from_dict(document))


def read_placer(document: Json) -> cupel.Placer:
    return construct("Document", lambda: cupel.Placer.from_dict(document))


def write(value: Any) -> Any:
    """Returns a value with the numbers that JSON cannot express as strings."""
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case dict():
            return {key: write(member) for key, member in value.items()}
        case list():
            return [write(member) for member in value]
        case _:
            return value


def main() -> None:
    """Answers one question per line until the input ends."""
    wrapped = "--wrapped" in sys.argv[1:]
    for line in sys.stdin:
        try:
            result = answer(json.loads(line), wrapped=wrapped)
        except Failed as failed:
            result = {"error": failed.error}
        print(json.dumps(write(result)), flush=True)


if __name__ == "__main__":
    main()
