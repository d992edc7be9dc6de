"""The engine of the package ``cupel``."""

import datetime
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import GenericAlias
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar, final, overload

__all__ = [
    "__version__",
    "Budget",
    "Choice",
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
    "command",
    "count_texts",
    "dumps",
    "fit",
    "main",
    "presets",
    "select",
    "select_batches",
    "select_index",
    "shape_of",
]

_T = TypeVar("_T")

_BudgetLike: TypeAlias = int | str | Mapping[str, Any] | Budget
_PolicyLike: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Policy
_ScorerLike: TypeAlias = str | Mapping[str, Any] | Scorer | Callable[[list[Item]], Sequence[float]]
_SlicerLike: TypeAlias = (
    str
    | Mapping[str, Any]
    | Slicer
    | Callable[[list[tuple[Item, float]], Budget], Sequence[int] | Choice]
)
_PlacerLike: TypeAlias = (
    str | Mapping[str, Any] | Placer | Callable[[list[tuple[Item, float]]], Sequence[int]]
)

__version__: str

@final
class Item:
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
    ) -> Item: ...
    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Item: ...
    def to_dict(self) -> dict[str, Any]: ...
    @property
    def content(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def priority(self) -> int | None: ...
    @property
    def tags(self) -> list[str]: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    @property
    def timestamp(self) -> datetime.datetime | None: ...
    @property
    def future_relevance_hint(self) -> float | None: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def original_tokens(self) -> int | None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Items:
    def __new__(cls, items: Iterable[Item | Mapping[str, Any]]) -> Items: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Item: ...
    def __iter__(self) -> Iterator[Item]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Budget:
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
    def from_dict(fields: Mapping[str, Any]) -> Budget: ...
    def to_dict(self) -> dict[str, Any]: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def target_tokens(self) -> int: ...
    @property
    def output_reserve(self) -> int: ...
    @property
    def reserved_slots(self) -> dict[str, int]: ...
    @property
    def estimation_safety_margin_percent(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Policy:
    def __new__(
        cls,
        scorer: _ScorerLike,
        slicer: _SlicerLike | None = None,
        placer: _PlacerLike | None = None,
        *,
        deduplication: bool = True,
        overflow_strategy: str = "throw",
    ) -> Policy: ...
    @staticmethod
    def preset(name: str) -> Policy: ...
    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> Policy: ...
    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Policy: ...
    def to_dict(self) -> dict[str, Any]: ...
    def with_query(self, query: str) -> Policy: ...
    @property
    def needs_query(self) -> bool: ...
    @property
    def name(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Scorer:
    @staticmethod
    def from_dict(fields: _ScorerLike) -> Scorer: ...
    @staticmethod
    def composite(entries: Sequence[tuple[_ScorerLike, float]]) -> Scorer: ...
    def with_query(self, query: str) -> Scorer: ...
    def __call__(self, items: Items | Iterable[Item | Mapping[str, Any]]) -> list[float]: ...

@final
class Slicer:
    @staticmethod
    def from_dict(fields: _SlicerLike) -> Slicer: ...
    def select(
        self, scored: Iterable[tuple[Item | Mapping[str, Any], float]], budget: _BudgetLike
    ) -> Choice: ...
    def __call__(
        self, scored: Iterable[tuple[Item | Mapping[str, Any], float]], budget: _BudgetLike
    ) -> list[int]: ...

@final
class Choice:
    def __new__(
        cls,
        kept: Sequence[int],
        *,
        refusals: Iterable[tuple[int, Mapping[str, Any]]] | None = None,
        shortfalls: Iterable[Mapping[str, Any]] | None = None,
    ) -> Choice: ...
    @property
    def kept(self) -> list[int]: ...
    @property
    def refusals(self) -> list[tuple[int, dict[str, Any]]]: ...
    @property
    def shortfalls(self) -> list[dict[str, Any]]: ...

@final
class Placer:
    @staticmethod
    def from_dict(fields: _PlacerLike) -> Placer: ...
    def __call__(self, scored: Iterable[tuple[Item | Mapping[str, Any], float]]) -> list[int]: ...

@final
class Selection(Generic[_T]):
    @property
    def items(self) -> list[_T]: ...
    @property
    def indices(self) -> list[int]: ...
    @property
    def tokens(self) -> int: ...
    @property
    def report(self) -> Report: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_T]: ...
    def _repr_html_(self) -> str: ...
    @classmethod
    def __class_getitem__(cls, item: Any) -> GenericAlias: ...

@final
class Report:
    def to_dict(self) -> dict[str, Any]: ...
    def to_arrow(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_html(self) -> str: ...
    def _repr_html_(self) -> str: ...
    @property
    def included(self) -> list[dict[str, Any]]: ...
    @property
    def excluded(self) -> list[dict[str, Any]]: ...
    @property
    def tokens_used(self) -> int: ...
    def __len__(self) -> int: ...

@overload
def select(
    items: Items,
    budget: _BudgetLike,
    policy: _PolicyLike | None = None,
    *,
    query: str | None = None,
    trace: bool = False,
) -> Selection[Item]: ...
@overload
def select(
    items: Iterable[_T],
    budget: _BudgetLike,
    policy: _PolicyLike | None = None,
    *,
    query: str | None = None,
    trace: bool = False,
) -> Selection[_T]: ...
def select_index(
    items: Items | Iterable[Any],
    budget: _BudgetLike,
    policy: _PolicyLike | None = None,
    *,
    query: str | None = None,
) -> list[int]: ...
def presets() -> list[str]: ...

@final
class SelectedBatches:
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __iter__(self) -> Self: ...
    # A pyarrow.RecordBatch; pyarrow has no types.
    def __next__(self) -> Any: ...

def select_batches(
    data: object,
    budget: _BudgetLike | None = None,
    policy: _PolicyLike | None = None,
    *,
    request_id: str = "request_id",
    query: str | None = None,
    model: str | None = None,
    encoding: str | None = None,
    errors: Literal["raise", "report"] = "raise",
    threads: int | None = None,
) -> SelectedBatches: ...
def main(arguments: Sequence[str]) -> int: ...
def command(
    arguments: Sequence[str],
    input: str | None = None,
    policies: Mapping[str, _PolicyLike] | None = None,
) -> Any: ...
def dumps(value: object, path: str) -> str: ...

@final
class Session:
    def __new__(cls, state: str | None = None) -> Session: ...
    def state(self) -> str: ...

def fit(
    arguments: Sequence[str],
    chat: object,
    policy: _PolicyLike | None = None,
    session: Session | None = None,
) -> tuple[
    dict[str, Any],
    list[int | str | tuple[int, list[tuple[str, str]]]],
    str | None,
    Report,
    list[str],
]: ...
def shape_of(messages: object) -> str: ...
def count_texts(texts: Sequence[str], encoding: str) -> list[int]: ...
def _restore_policy(arguments: tuple[Any, ...], options: dict[str, Any]) -> Policy: ...
