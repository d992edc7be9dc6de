"""``Pipeline``: a policy that runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, overload

from cupel import _cupel
from cupel._cupel import Item, Items, Policy, Selection
from cupel._types import BudgetLike, Counter, PlacerLike, ScorerLike, SlicerLike
from cupel.types import OverflowStrategy

T = TypeVar("T")


class Pipeline:
    """Selects items with one policy.

    Args:
        scorer: As in :class:`Policy`, or a policy with all of the others.
        slicer: As in :class:`Policy`.
        placer: As in :class:`Policy`.
        deduplication: Whether only the best of items with the same text stays. Default: True.
        overflow_strategy: ``"throw"``, ``"truncate"`` or ``"proceed"``. Default: ``"throw"``.

    >>> import cupel
    >>> def brief(items):
    ...     return [1 / len(item.content) for item in items]
    >>> pipeline = cupel.Pipeline(brief)
    >>> items = [{"content": "a long text", "tokens": 5}, {"content": "short", "tokens": 5}]
    >>> pipeline.run(items, 5).items
    [{'content': 'short', 'tokens': 5}]
    """

    def __init__(
        self,
        scorer: ScorerLike | Policy,
        slicer: SlicerLike | None = None,
        placer: PlacerLike | None = None,
        *,
        deduplication: bool = True,
        overflow_strategy: OverflowStrategy = "throw",
    ) -> None:
        if isinstance(scorer, Mapping) and "scorer" in scorer:
            scorer = Policy.from_dict(scorer)
        if isinstance(scorer, Policy):
            given = (slicer, placer, deduplication, overflow_strategy)
            if given != (None, None, True, "throw"):
                raise TypeError("a Policy has its slicer, placer and settings")
            self.policy = scorer
        else:
            self.policy = Policy(
                scorer,
                slicer,
                placer,
                deduplication=deduplication,
                overflow_strategy=overflow_strategy,
            )

    @overload
    def run(
        self,
        items: Items,
        budget: BudgetLike,
        *,
        query: str | None = None,
        trace: bool = False,
        counter: Counter | None = None,
    ) -> Selection[Item]: ...
    @overload
    def run(
        self,
        items: Iterable[T],
        budget: BudgetLike,
        *,
        query: str | None = None,
        trace: bool = False,
        counter: Counter | None = None,
    ) -> Selection[T]: ...
    def run(
        self,
        items: Iterable[Any],
        budget: BudgetLike,
        *,
        query: str | None = None,
        trace: bool = False,
        counter: Counter | None = None,
    ) -> Selection[Any]:
        """Selects the items that fit a budget, as :func:`select` does with the policy.

        >>> import cupel
        >>> cupel.Pipeline("recency").run([{"content": "a", "tokens": 3}], "1k").tokens
        3
        """
        return _cupel.select(items, budget, self.policy, query=query, trace=trace, counter=counter)

    def __repr__(self) -> str:
        return f"Pipeline({self.policy!r})"
