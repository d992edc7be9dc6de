"""The engine of the package ``cupel``."""

import datetime
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import GenericAlias
from typing import Any, Generic, Literal, NoReturn, Self, final, overload

from typing_extensions import TypeVar

from cupel._types import (
    BudgetLike,
    ExcludedEntry,
    FitReport,
    FitSummary,
    IncludedEntry,
    PlacerLike,
    PolicyLike,
    ScorerLike,
    SlicerLike,
)
from cupel.types import (
    ContextBudget,
    ContextItem,
    ContextView,
    CountRequirementShortfall,
    EncodingName,
    EvidenceReport,
    ExclusionReason,
    FitAnswer,
    ModelAnswer,
    OverflowStrategy,
    PresetName,
    SelectAnswer,
    Shape,
)

__all__ = [
    "__version__",
    "Budget",
    "Choice",
    "FittedBatches",
    "Item",
    "Items",
    "Placer",
    "Policy",
    "Report",
    "Scorer",
    "SelectedBatches",
    "Selection",
    "Session",
    "Slicer",
    "_restore_policy",
    "_restore_report",
    "as_json",
    "ask",
    "check_fit",
    "count",
    "count_texts",
    "evaluate",
    "fit",
    "fit_batches",
    "hints_of_scores",
    "instead_of",
    "is_request_field",
    "main",
    "models",
    "presets",
    "refuse_table",
    "select",
    "select_batches",
    "select_index",
    "set_span_writer",
    "shape_of",
    "span_names",
]

_T = TypeVar("_T")
# What `to_dict` returns.
_Answer = TypeVar("_Answer", covariant=True, default=SelectAnswer | FitReport)

__version__: str

@final
class Item:
    """A candidate for the context window: a text, its tokens, and what policies read of it.

    Args:
        content: The text, not empty.
        tokens: Its tokens; negative ones exclude the item. Default: counted with `o200k_base`.
        kind: The kind, such as `"Message"` or `"ToolOutput"`. Default: `"Message"`.
        source: Where it comes from, such as `"Chat"` or `"Rag"`. Default: `"Chat"`.
        priority: Any integer; higher is more important.
        tags: Texts that a policy may weight or count.
        metadata: Texts by key.
        timestamp: An aware `datetime`, or a string in RFC 3339 with an offset from UTC.
        future_relevance_hint: The caller's own score, from 0 to 1.
        pinned: Whether it is always in the window. Default: False.
        original_tokens: Its tokens before it was shortened.
        views: Shorter forms with fewer tokens: dicts with `content` and `tokens`, and perhaps
            `level` and `value`, the share of the score that it keeps, from 0 to 1.

    >>> import cupel
    >>> item = cupel.Item("The keys are on the fridge.", 8, kind="Memory", priority=2)
    >>> item.tokens, item.kind, item.pinned
    (8, 'Memory', False)
    """
    def __new__(
        cls,
        content: str,
        tokens: int | None = None,
        *,
        kind: str | None = None,
        source: str | None = None,
        priority: int | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, str] | None = None,
        timestamp: datetime.datetime | str | None = None,
        future_relevance_hint: float | None = None,
        pinned: bool = False,
        original_tokens: int | None = None,
        views: Sequence[Mapping[str, Any]] | None = None,
    ) -> Item: ...
    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Item:
        """Builds an item from its fields, as in a request document.

        >>> import cupel
        >>> cupel.Item.from_dict({"content": "Hello!", "tokens": 2}) == cupel.Item("Hello!", 2)
        True
        """
    def to_dict(self) -> ContextItem:
        """Returns the fields that are set.

        >>> import cupel
        >>> cupel.Item("Hello!", 2, pinned=True).to_dict()["pinned"]
        True
        """
    @property
    def content(self) -> str:
        """The text."""
    @property
    def tokens(self) -> int:
        """The tokens."""
    @property
    def kind(self) -> str:
        """The kind, such as `"Message"`."""
    @property
    def source(self) -> str:
        """Where it comes from, such as `"Chat"`."""
    @property
    def priority(self) -> int | None:
        """The priority; higher is more important."""
    @property
    def tags(self) -> list[str]:
        """The tags."""
    @property
    def metadata(self) -> dict[str, str]:
        """The metadata, by key."""
    @property
    def timestamp(self) -> datetime.datetime | None:
        """The time, in UTC."""
    @property
    def future_relevance_hint(self) -> float | None:
        """The caller's own score, from 0 to 1."""
    @property
    def pinned(self) -> bool:
        """Whether it is always in the window."""
    @property
    def original_tokens(self) -> int | None:
        """The tokens before it was shortened."""
    @property
    def views(self) -> list[ContextView]:
        """The shorter forms, largest first: dicts with `content`, `tokens`, `level` and `value`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Items(Sequence[Item]):
    """An immutable sequence of items, the fastest input of `select`. A slice of it is `Items` too.

    Args:
        items: Items, dicts with their fields, documents, or other objects with the fields as
            attributes.
        counter: A function that counts the tokens of items that have none. Default: o200k.

    >>> import cupel
    >>> items = cupel.Items([{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}])
    >>> len(items), items[0].content, items[1:]
    (2, 'old', <cupel.Items: 1 items>)
    """
    def __new__(
        cls, items: Iterable[Any], *, counter: Callable[[str], int] | None = None
    ) -> Items: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> Item: ...
    @overload
    def __getitem__(self, index: slice, /) -> Items: ...
    def __contains__(self, item: object, /) -> bool: ...
    def __iter__(self) -> Iterator[Item]: ...
    def __reversed__(self) -> Iterator[Item]: ...
    def index(self, item: Any, start: int = 0, stop: int = ..., /) -> int:
        """Returns the first position of an item, as `list.index` does.

        >>> import cupel
        >>> items = cupel.Items([{"content": "a", "tokens": 1}, {"content": "b", "tokens": 1}])
        >>> items.index(items[1])
        1
        """
    def count(self, item: Any, /) -> int:
        """Returns how often an item occurs.

        >>> import cupel
        >>> items = cupel.Items([{"content": "a", "tokens": 1}, {"content": "a", "tokens": 1}])
        >>> items.count(items[0])
        2
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Budget:
    """The limits of a window, in tokens.

    Args:
        max_tokens: The model's context window, 0 or more.
        target_tokens: The most tokens of the window, at most `max_tokens`. Default: `max_tokens`
            without the reserve.
        output_reserve: Tokens for the model's answer, at most `max_tokens`. Default: 0.
        reserved_slots: Tokens that are kept free for items of a kind, by kind.
        estimation_safety_margin_percent: What is taken off the limits if tokens are estimates,
            from 0 to 100. Default: 0.

    >>> import cupel
    >>> cupel.Budget(8000, output_reserve=1000)
    Budget(8000, target_tokens=7000, output_reserve=1000)
    """
    def __new__(
        cls,
        max_tokens: int,
        *,
        target_tokens: int | None = None,
        output_reserve: int = 0,
        reserved_slots: Mapping[str, int] | None = None,
        estimation_safety_margin_percent: float = 0.0,
    ) -> Budget: ...
    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Budget:
        """Builds a budget from its fields, as in a request document.

        >>> import cupel
        >>> cupel.Budget.from_dict({"max_tokens": 8000, "output_reserve": 1000}).output_reserve
        1000
        """
    def to_dict(self) -> ContextBudget:
        """Returns all fields.

        >>> import cupel
        >>> cupel.Budget(8000).to_dict()["target_tokens"]
        8000
        """
    @property
    def max_tokens(self) -> int:
        """The model's context window."""
    @property
    def target_tokens(self) -> int:
        """The most tokens of the window."""
    @property
    def output_reserve(self) -> int:
        """The tokens for the model's answer."""
    @property
    def reserved_slots(self) -> dict[str, int]:
        """The tokens that are kept free, by kind."""
    @property
    def estimation_safety_margin_percent(self) -> float:
        """What is taken off the limits if tokens are estimates, from 0 to 100."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Policy:
    """How a window is chosen: a scorer, a slicer, a placer and settings.

    Args:
        scorer: How relevant an item is: a name such as `"recency"`, a dict with a `type`, a
            `Scorer`, or a function of all items that returns one number per item.
        slicer: What fits: a name such as `"knapsack"`, a dict, a `Slicer`, or a function of the
            ranked pairs of item and score and the budget that returns positions.
            Default: `"greedy"`.
        placer: The order of the window: a name, a dict, a `Placer`, or a function of the pairs
            that returns a permutation of their positions. Default: `"chronological"`.
        deduplication: Whether only the best of items with the same text stays. Default: True.
        overflow_strategy: What happens if pinned and selected items exceed the budget: `"throw"`
            an error, `"truncate"` to what fits, or `"proceed"` with all. Default: `"throw"`.

    >>> import cupel
    >>> policy = cupel.Policy("reflexive", {"type": "knapsack", "bucket_size": 1}, "u-shaped")
    >>> items = [{"content": "a", "tokens": 7, "future_relevance_hint": 0.9},
    ...          {"content": "b", "tokens": 6, "future_relevance_hint": 0.6}]
    >>> cupel.select_index(items, 10, policy)
    [0]
    """
    def __new__(
        cls,
        scorer: ScorerLike,
        slicer: SlicerLike | None = None,
        placer: PlacerLike | None = None,
        *,
        deduplication: bool = True,
        overflow_strategy: OverflowStrategy = "throw",
    ) -> Policy: ...
    @staticmethod
    def preset(name: str) -> Policy:
        """Returns a preset: one of the names of `presets()`.

        >>> import cupel
        >>> cupel.Policy.preset("rag").name
        'rag'
        """
    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Policy:
        """Builds a policy from its fields, as in a policy document.

        >>> import cupel
        >>> cupel.Policy.from_dict({"name": "mine", "scorer": {"type": "recency"}}).name
        'mine'
        """
    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Policy:
        """Reads a policy document: JSON, TOML or YAML.

        >>> import cupel
        >>> cupel.Policy.from_file("examples/policy.toml").needs_query
        False
        """
    def to_dict(self) -> dict[str, Any]:
        """Returns the fields of a policy document. One with functions of Python has none: an error.

        >>> import cupel
        >>> cupel.Policy("recency").to_dict()["scorer"]
        {'type': 'recency'}
        """
    def with_query(self, query: str) -> Policy:
        """Returns this policy for a question, which scorers such as `relevance` read.

        >>> import cupel
        >>> cupel.Policy.preset("memory").with_query("Where are my keys?").needs_query
        False
        """
    @property
    def needs_query(self) -> bool:
        """Whether a scorer needs a question."""
    @property
    def name(self) -> str:
        """The name in errors and summaries."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Scorer:
    """A built-in scorer, or a combination of scorers. It is called with items.

    >>> import cupel
    >>> scorer = cupel.Scorer.from_dict("priority")
    >>> scorer([{"content": text, "tokens": 1, "priority": len(text)} for text in ("a", "bb")])
    [0.0, 1.0]
    """
    @staticmethod
    def from_dict(fields: ScorerLike) -> Scorer:
        """Builds a scorer from its name or its fields.

        >>> import cupel
        >>> cupel.Scorer.from_dict({"type": "kind", "weights": {"Memory": 0.7}})
        <cupel.Scorer KindScorer>
        """
    @staticmethod
    def composite(entries: Sequence[tuple[ScorerLike, float]]) -> Scorer:
        """Builds the weighted average of scorers, built-in ones or functions.

        Args:
            entries: Pairs of a scorer and its weight, which is above 0.

        >>> import cupel
        >>> equal = lambda items: [1.0] * len(items)
        >>> scorer = cupel.Scorer.composite([("reflexive", 3), (equal, 1)])
        >>> scorer([{"content": "a", "tokens": 1, "future_relevance_hint": 0.6}])
        [0.7]
        """
    def with_query(self, query: str) -> Scorer:
        """Returns this scorer for a question.

        >>> import cupel
        >>> scorer = cupel.Scorer.from_dict("relevance").with_query("keys")
        >>> [score > 0 for score in scorer([{"content": "It rains."}, {"content": "The keys!"}])]
        [False, True]
        """
    def __call__(self, items: Items | Iterable[Item | Mapping[str, Any]]) -> list[float]: ...

@final
class Slicer:
    """A built-in slicer. It is called with pairs of item and score, best first, and a budget.

    >>> import cupel
    >>> slicer = cupel.Slicer.from_dict("greedy")
    >>> slicer([({"content": "a", "tokens": 9}, 0.9), ({"content": "b", "tokens": 3}, 0.5)], 10)
    [1]
    """
    @staticmethod
    def from_dict(fields: SlicerLike) -> Slicer:
        """Builds a slicer from its name or its fields.

        >>> import cupel
        >>> cupel.Slicer.from_dict({"type": "knapsack", "bucket_size": 1})
        <cupel.Slicer KnapsackSlice>
        """
    def select(
        self, scored: Iterable[tuple[Item | Mapping[str, Any], float]], budget: BudgetLike
    ) -> Choice:
        """Returns the choice with its reasons.

        >>> import cupel
        >>> scored = [({"content": "a", "tokens": 9}, 0.9), ({"content": "b", "tokens": 3}, 0.5)]
        >>> cupel.Slicer.from_dict("greedy").select(scored, 10).kept
        [1]
        """
    def __call__(
        self, scored: Iterable[tuple[Item | Mapping[str, Any], float]], budget: BudgetLike
    ) -> list[int]: ...

@final
class Choice:
    """The choice of a slicer. A slicer in Python that states reasons returns one.

    Args:
        kept: Positions of the items that stay.
        refusals: Pairs of a position and its reason: a dict with `reason` and other fields.
        shortfalls: What a count requirement lacks: dicts with `kind`, `required_count` and
            `satisfied_count`.

    >>> import cupel
    >>> def first(scored, budget):
    ...     return cupel.Choice([0], refusals=[(1, {"reason": "NotFirst"})])
    >>> items = [{"content": "a", "tokens": 2}, {"content": "b", "tokens": 2}]
    >>> selection = cupel.select(items, 10, cupel.Policy("reflexive", first))
    >>> selection.report.excluded[0]["reason"]
    {'reason': 'NotFirst'}
    """
    def __new__(
        cls,
        kept: Sequence[int],
        *,
        refusals: Iterable[tuple[int, Mapping[str, Any]]] | None = None,
        shortfalls: Iterable[Mapping[str, Any]] | None = None,
    ) -> Choice: ...
    @property
    def kept(self) -> list[int]:
        """The kept positions, in the order of the choice."""
    @property
    def refusals(self) -> list[tuple[int, ExclusionReason]]:
        """The refused positions with their reasons."""
    @property
    def shortfalls(self) -> list[CountRequirementShortfall]:
        """The count requirements that were not met."""

@final
class Placer:
    """A built-in placer. It is called with pairs of item and score, and returns their order.

    >>> import cupel
    >>> placer = cupel.Placer.from_dict("u-shaped")
    >>> placer([({"content": "a", "tokens": 1}, score) for score in (0.1, 0.9, 0.5)])
    [1, 0, 2]
    """
    @staticmethod
    def from_dict(fields: PlacerLike) -> Placer:
        """Builds a placer from its name or its fields.

        >>> import cupel
        >>> cupel.Placer.from_dict("chronological")
        <cupel.Placer ChronologicalPlacer>
        """
    def __call__(self, scored: Iterable[tuple[Item | Mapping[str, Any], float]]) -> list[int]: ...

@final
class Selection(Sequence[_T]):
    """The result of `select`: a sequence of the selected items, in the order of the window.

    >>> import cupel
    >>> selection = cupel.select([{"content": "a", "tokens": 3}, {"content": "b", "tokens": 4}], 5)
    >>> len(selection), selection[0]["content"], selection
    (1, 'a', <cupel.Selection: 1 of 2 items, 3 tokens>)
    """
    @property
    def items(self) -> list[_T]:
        """The selected items, in the order of the window: the caller's own objects. A shortened
        item is a copy.
        """
    @property
    def indices(self) -> list[int]:
        """The positions of the selected items, in the order of the window."""
    @property
    def tokens(self) -> int:
        """The tokens of the selected items."""
    @property
    def report(self) -> Report[SelectAnswer]:
        """Why each item is in or out."""
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> _T: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[_T]: ...
    def __contains__(self, item: object, /) -> bool: ...
    def __iter__(self) -> Iterator[_T]: ...
    def __reversed__(self) -> Iterator[_T]: ...
    def index(self, item: Any, start: int = 0, stop: int = ..., /) -> int:
        """Returns the first position of an item in the window, as `list.index` does.

        >>> import cupel
        >>> items = [{"content": "a", "tokens": 3}, {"content": "b", "tokens": 4}]
        >>> cupel.select(items, 9).index({"content": "b", "tokens": 4})
        1
        """
    def count(self, item: Any, /) -> int:
        """Returns how often an item is in the window.

        >>> import cupel
        >>> cupel.select([{"content": "a", "tokens": 3}], 9).count({"content": "a", "tokens": 3})
        1
        """
    def __reduce__(self) -> NoReturn: ...
    def _repr_html_(self) -> str: ...
    @classmethod
    def __class_getitem__(cls, item: Any) -> GenericAlias: ...

# Not iterable: `included` and `excluded` are lists, and `to_arrow()` is a table.
@final
class Report(Generic[_Answer]):
    """Why each candidate of a run is in or out.

    It is not iterable: `included` and `excluded` are lists, `to_arrow()` is a table with a row per
    candidate, and `to_html()` is a page with every text. A notebook shows that page, or a table of
    the newest 1,000 candidates if the page has more than 300 kB.

    >>> import cupel
    >>> items = [{"content": "a", "tokens": 3}, {"content": "b", "tokens": 4}]
    >>> report = cupel.select(items, 5).report
    >>> report
    <cupel.Report: 1 of 2 included, 3 tokens>
    >>> report.excluded[0]["index"], report.excluded[0]["reason"]["reason"]
    (1, 'BudgetExceeded')
    """
    def to_dict(self) -> _Answer:
        """Returns the report as the command prints it in JSON.

        >>> import cupel
        >>> report = cupel.select([{"content": "a", "tokens": 3}], 5).report
        >>> sorted(report.to_dict())
        ['excluded', 'included', 'overflow', 'report', 'selected']
        """
    def to_arrow(self) -> Any:
        """Returns the report as a `pyarrow.Table`, one row per candidate.

        >>> import cupel
        >>> report = cupel.select([{"content": "a", "tokens": 3}], 5).report
        >>> report.to_arrow().column_names
        ['index', 'rank', 'score', 'status', 'reason', 'position', 'tokens']
        """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_html(self) -> str:
        """Returns a self-contained web page that explains the window at every budget.

        Write it to a file and open it in a browser. Any size is possible: the page has every text.

        >>> import cupel
        >>> page = cupel.select([{"content": "a", "tokens": 3}], 5).report.to_html()
        >>> page[:15]
        '<!doctype html>'
        """
    def _repr_html_(self) -> str: ...
    @property
    def included(self) -> list[IncludedEntry]:
        """The candidates in the window, in its order: dicts with `index`, `score` and `reason`."""
    @property
    def excluded(self) -> list[ExcludedEntry]:
        """The other candidates, best score first: dicts with `index`, `score` and `reason`."""
    @property
    def tokens_used(self) -> int:
        """The tokens of the window."""
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @classmethod
    def __class_getitem__(cls, item: Any) -> GenericAlias: ...

@overload
def select(
    items: Items,
    budget: BudgetLike,
    policy: PolicyLike | None = None,
    *,
    query: str | None = None,
    trace: bool = False,
    counter: Callable[[str], int] | None = None,
) -> Selection[Item]:
    """Selects the items that fit a budget.

    Args:
        items: Dicts with the fields of an `Item`, items, other objects with these attributes, or
            prebuilt `Items`; also texts, documents and hits of a search.
        budget: Tokens as `8000` or `"8k"`, a dict or a `Budget`.
        policy: A preset, the path of a file, a dict or a `Policy`. Default: `"chat"`, for
            documents with scores `"rag"`.
        query: The question, for policies that score by relevance.
        trace: Whether the report has the events of the stages. Default: False.
        counter: A function that counts the tokens of items that have none. Default: o200k.

    Raises:
        OverBudgetError: The pinned items do not fit.
        InvalidInputError: An argument is invalid.

    >>> import cupel
    >>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
    >>> selection = cupel.select(items, 50)
    >>> selection.items, selection.indices, selection.tokens
    ([{'content': 'new', 'tokens': 30}], [1], 30)
    """

@overload
def select(
    items: Iterable[_T],
    budget: BudgetLike,
    policy: PolicyLike | None = None,
    *,
    query: str | None = None,
    trace: bool = False,
    counter: Callable[[str], int] | None = None,
) -> Selection[_T]: ...
def select_index(
    items: Items | Iterable[Any],
    budget: BudgetLike,
    policy: PolicyLike | None = None,
    *,
    query: str | None = None,
    counter: Callable[[str], int] | None = None,
) -> list[int]:
    """Returns the positions of the items that fit a budget, in the order of the window.

    It takes the arguments of `select`, and is faster: nothing is recorded.

    >>> import cupel
    >>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
    >>> cupel.select_index(items, 50)
    [1]
    """

def presets() -> list[PresetName]:
    """Returns the names of the built-in policies. docs/policies.md says what each is for.

    >>> import cupel
    >>> "agent" in cupel.presets()
    True
    """

@final
class FittedBatches:
    """The figures of `fit_batches`: an Arrow stream, and an iterator of record batches.

    It can be read once. An error raises its exception from the iterator. A consumer of the stream
    raises its own, with the same text.

    >>> import cupel, pyarrow as pa
    >>> log = pa.table({"request": ['[{"role": "user", "content": "Hello!"}]']})
    >>> [batch.num_rows for batch in cupel.fit_batches(log, 100)]
    [1]
    """
    @property
    def summary(self) -> FitSummary:
        """The sums over the batches so far: `rows`, `failed`, `out_of_order` and `forgotten` (rows
        whose reuse is unknown), `tokens_before`, `tokens_after`, `reused_tokens` and `cost`.
        """
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __iter__(self) -> Self: ...
    # A pyarrow.RecordBatch; pyarrow has no types.
    def __next__(self) -> Any: ...

@final
class SelectedBatches:
    """The decisions of `select_batches`: an Arrow stream, and an iterator of record batches.

    It can be read once. An error raises its exception from the iterator. A consumer of the stream
    raises its own, with the same text.

    >>> import cupel, pyarrow as pa
    >>> requests = pa.table({"request_id": ["a"], "content": [["x", "y"]], "tokens": [[3, 4]]})
    >>> [batch.num_rows for batch in cupel.select_batches(requests, 6)]
    [2]
    """
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __iter__(self) -> Self: ...
    # A pyarrow.RecordBatch; pyarrow has no types.
    def __next__(self) -> Any: ...

def select_batches(
    data: object,
    budget: BudgetLike | None = None,
    policy: PolicyLike | None = None,
    *,
    request_id: str = "request_id",
    query: str | None = None,
    model: str | None = None,
    encoding: EncodingName | None = None,
    errors: Literal["raise", "report"] = "raise",
    threads: int | None = None,
) -> SelectedBatches:
    """Runs a policy over every request of a table and returns the decisions as an Arrow stream.

    `data` has the fields of items as columns: `content`, `tokens` (counted if missing), `kind`,
    `source`, `priority`, `tags`, `metadata`, `timestamp` (with a time zone),
    `future_relevance_hint`, `pinned`, `original_tokens` and `views`. Other columns are ignored.
    There are three layouts: one row per request with a list per field; one row per request with a
    column `items`, a list of structs; or one row per item, where the rows of a request are
    contiguous. Without `content`, strategies that read texts, such as deduplication, are refused.

    The result has one row per item, in the order of the input: the request id, `index` (the
    position in the request), `rank`, `score`, `status` (`included` or `excluded`), `reason`,
    `position` (in the window) and `tokens` (those of its view if the item is shortened). Batches
    are pulled as the result is read, so that memory does not grow with the log, except for about
    20 bytes per request in the layout with one row per item.

    Args:
        data: A table, a record batch reader or another object with the Arrow C stream (pyarrow,
            Polars, DuckDB, pandas), or an iterable of them. Its buffers are read in place.
        budget: Tokens as `8000` or `"8k"`, a share of the model's window as `"50%"`, a dict or a
            `Budget`. Default: the column `budget`, which differs by request.
        policy: A preset, the path of a file, a dict or a `Policy`. Default: `"chat"`.
        request_id: The name of the column that tells requests apart. Default: `"request_id"`.
        query: The question, for policies that score by relevance. Default: the column `query`.
        model: The model that counts the tokens and whose window a percentage is of.
        encoding: The token counter. Default: the model's, otherwise `o200k_base`.
        errors: `"raise"` ends the stream at an invalid request, `"report"` makes it one row with
            the status `error` and the text as reason. Default: `"raise"`.
        threads: The most threads, 1 or more. Default: all cores.

    >>> import cupel, pyarrow as pa
    >>> texts, tokens = [["x", "y"], ["z"]], [[3, 4], [5]]
    >>> log = pa.table({"request_id": ["a", "b"], "content": texts, "tokens": tokens})
    >>> decisions = pa.table(cupel.select_batches(log, 6))
    >>> decisions.column("status").to_pylist()
    ['included', 'excluded', 'included']
    """

def fit_batches(
    data: object,
    parameters: Mapping[str, Any],
    others: Mapping[str, Any],
    columns: Sequence[tuple[str, str | None]] | None,
    keep: Sequence[str] | None,
    request: bool,
    prices: str | tuple[float, float],
    on_error: str,
    threads: int | None,
) -> FittedBatches: ...
def main(arguments: Sequence[str]) -> int: ...

@final
class Session:
    def __new__(cls, state: str | None = None) -> Session: ...
    def state(self) -> str:
        """Returns the state as JSON."""

def check_fit(parameters: Mapping[str, Any], others: Mapping[str, Any]) -> None: ...
def fit(
    chat: object,
    parameters: Mapping[str, Any],
    others: Mapping[str, Any],
    session: Session | None = None,
    author: str = "",
) -> tuple[
    FitAnswer,
    list[int | str | tuple[int, list[tuple[str, str]]]],
    list[tuple[int | None, str, str]],
    str | None,
    Report[FitReport],
]: ...
def set_span_writer(writer: object | None, verbosity: str) -> None: ...
def span_names() -> tuple[str, str]: ...
def shape_of(messages: object) -> Shape: ...
def ask(
    question: str,
    data: object,
    arguments: Mapping[str, Any],
    others: Mapping[str, Any],
) -> Any: ...
def evaluate(
    transcripts: Sequence[Any],
    policies: Iterable[PolicyLike],
    budgets: Iterable[int | str],
) -> EvidenceReport: ...
def count(
    data: object,
    model: str | None = None,
    encoding: str | None = None,
    counter: Callable[[str], int] | None = None,
) -> int: ...
def count_texts(
    texts: Sequence[str], encoding: str | None = None, model: str | None = None
) -> list[int]: ...
def hints_of_scores(scores: Sequence[float | None]) -> list[float]: ...
def models() -> list[ModelAnswer]: ...
def instead_of(option: str) -> str | None: ...
def is_request_field(name: str) -> bool: ...
def as_json(value: object, path: str) -> str: ...
def refuse_table(value: object, path: str) -> None: ...
def _restore_report(
    answer: str, scores: Sequence[float], ranks: Sequence[int | None]
) -> Report[FitReport]: ...
def _restore_policy(arguments: tuple[Any, ...], options: dict[str, Any]) -> Policy: ...
