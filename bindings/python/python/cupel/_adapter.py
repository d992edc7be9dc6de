"""What the adapters for frameworks have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from cupel._errors import InvalidInputError
from cupel._fit import Fitted, check_options, fit
from cupel._types import BudgetLike
from cupel.types import Shape

OnFit: TypeAlias = Callable[[Fitted[Any]], object]


@dataclass(frozen=True)
class Adapter:
    """The options of an adapter."""

    name: str
    budget: BudgetLike | None
    options: Mapping[str, Any]
    on_fit: OnFit | None = None

    def check(self) -> Adapter:
        """Raises an error for options that no chat would make valid, such as an unknown policy."""
        check_options(self.name, self.budget, self.options, own=("on_fit",))
        check_callback("on_fit", self.on_fit)
        return self

    def fit(
        self, messages: Sequence[Any] | Mapping[str, Any], *, shape: Shape, **given: Any
    ) -> Fitted[Any]:
        """Fits messages of a format. The options of the adapter take precedence over `given`."""
        options: dict[str, Any] = {**given, **self.options, "shape": shape}
        return fit(messages, self.budget, **options)

    def report(self, fitted: Fitted[Any]) -> None:
        """Hands a window to the callback."""
        if self.on_fit is not None:
            self.on_fit(fitted)


def check_callback(name: str, callback: Any) -> None:
    """Raises an error for a callback that cannot be called, or whose result would be awaited."""
    if callback is None:
        return
    got = type(callback).__name__ if not callable(callback) else "a coroutine function"
    if not callable(callback) or inspect.iscoroutinefunction(callback):
        raise InvalidInputError(f"expected a function, got {got}", path=name)
