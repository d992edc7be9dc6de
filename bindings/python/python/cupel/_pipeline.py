"""``Pipeline``: a policy that runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from cupel import _cupel
from cupel._cupel import Policy, Selection

T = TypeVar("T")


class Pipeline:
    """Selects items with one policy.

    Each strategy is a name, a dict, a built-in one or a callable.

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
        scorer: Any,
        slicer: Any = None,
        placer: Any = None,
        *,
        deduplication: bool = True,
        overflow_strategy: str = "throw",
    ) -> None:
        """Builds the pipeline from strategies, or from a :class:`Policy`."""
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

    def run(
        self, items: Iterable[T], budget: Any, *, query: str | None = None, trace: bool = False
    ) -> Selection[T]:
        """Selects the items that fit a budget; see :func:`cupel.select`."""
        return _cupel.select(items, budget, self.policy, query=query, trace=trace)

    def __repr__(self) -> str:
        return f"Pipeline({self.policy!r})"
