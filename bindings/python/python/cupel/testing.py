"""Assertions on windows, for tests of what an application keeps.

>>> import cupel
>>> from cupel.testing import assert_window
>>> chat = [
...     {"role": "user", "content": "Hello!"},
...     {"role": "assistant", "content": "Hello! What can I do for you today?"},
...     {"role": "user", "content": "What is 2 + 2?"},
... ]
>>> fitted = cupel.fit(chat, budget=30, policy="newest")
>>> assert_window(fitted).keeps(1, 2).drops(0).within_budget()
<window: kept 1 2, dropped 0>

A failed assertion is an ``AssertionError`` that shows the positions in question with their
neighbors, and the reason of each that is out. With pytest, ``assert_window`` is a fixture too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from cupel._cupel import Report, Selection
from cupel._errors import InvalidInputError
from cupel._fit import Fitted
from cupel._rebuild import positions

__all__ = ["Window", "assert_window", "differences"]

# pytest ends a trace in the test, not here.
__tracebackhide__ = True

_AROUND = 2
"""The neighbors that are shown on either side of a position in question."""


@dataclass(frozen=True)
class _Row:
    status: Literal["kept", "shortened", "dropped"]
    role: str = ""
    details: str = ""
    reason: str = ""


def assert_window(result: Fitted[Any] | Selection[Any]) -> Window:
    """Returns the assertions on a window.

    Args:
        result: What ``cupel.fit`` or ``cupel.select`` returned.

    >>> import cupel
    >>> from cupel.testing import assert_window
    >>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
    >>> assert_window(cupel.select(items, 50)).keeps(1).drops(0, reason="BudgetExceeded")
    <window: kept 1, dropped 0>
    """
    if isinstance(result, Fitted):
        return Window(_of_fitted(result), result.report, result, "message")
    if isinstance(result, Selection):
        return Window(_of_selection(result), result.report, None, "item")
    got = type(result).__name__
    raise InvalidInputError(f"expected a Fitted or a Selection, got {got}", path="result")


class Window:
    """Assertions on a window, made by ``assert_window``. Each returns the window, for chains.

    Positions are those in the input; negative ones count from its end, as in a list.

    >>> import cupel
    >>> from cupel.testing import assert_window
    >>> assert_window(cupel.select([{"content": "a", "tokens": 5}], 10)).keeps(0).within(5)
    <window: kept 0>
    """

    def __init__(
        self, rows: list[_Row], report: Report, fitted: Fitted[Any] | None, unit: str
    ) -> None:
        self._rows = rows
        self._report = report
        self._fitted = fitted
        self._unit = unit

    def __repr__(self) -> str:
        def listed(*statuses: str) -> str:
            return " ".join(str(i) for i, row in enumerate(self._rows) if row.status in statuses)

        parts = [("kept", listed("kept", "shortened")), ("dropped", listed("dropped"))]
        return f"<window: {', '.join(f'{name} {those}' for name, those in parts if those)}>"

    def keeps(self, *expected: int) -> Self:
        """Asserts that the messages or items at these positions stay, in full or shortened.

        >>> import cupel
        >>> from cupel.testing import assert_window
        >>> items = [{"content": "a", "tokens": 5}, {"content": "b", "tokens": 5}]
        >>> assert_window(cupel.select(items, 10)).keeps(0, -1)
        <window: kept 0 1>
        """
        return self._are("stay", expected, lambda row: row.status != "dropped")

    def keeps_whole(self, *expected: int) -> Self:
        """Asserts that these stay and are not shortened.

        >>> import cupel
        >>> from cupel.testing import assert_window
        >>> chat = [{"role": "user", "content": "What is 2 + 2?"}]
        >>> assert_window(cupel.fit(chat, 100)).keeps_whole(0)
        <window: kept 0>
        """
        return self._are("stay as they are", expected, lambda row: row.status == "kept")

    def keeps_only(self, *expected: int) -> Self:
        """Asserts that exactly these stay.

        >>> import cupel
        >>> from cupel.testing import assert_window
        >>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
        >>> assert_window(cupel.select(items, 50)).keeps_only(1)
        <window: kept 1, dropped 0>
        """
        wanted = set(self._positions(expected))
        self._are("stay", sorted(wanted), lambda row: row.status != "dropped")
        others = [index for index in range(len(self._rows)) if index not in wanted]
        return self._are("be dropped", others, lambda row: row.status == "dropped")

    def drops(self, *expected: int, reason: str | None = None) -> Self:
        """Asserts that these are dropped, and why if `reason` is given: its name.

        >>> import cupel
        >>> from cupel.testing import assert_window
        >>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
        >>> assert_window(cupel.select(items, 50)).drops(0, reason="BudgetExceeded")
        <window: kept 1, dropped 0>
        """
        self._are("be dropped", expected, lambda row: row.status == "dropped")
        if reason is None:
            return self
        verb = f"be dropped because of {reason}"
        return self._are(verb, expected, lambda row: row.reason == reason)

    def shortens(self, *expected: int) -> Self:
        """Asserts that these are shortened.

        >>> import cupel
        >>> from cupel.testing import assert_window
        >>> chat = [{"role": "user", "content": "Count. " + "word " * 500}]
        >>> assert_window(cupel.fit(chat, 200)).shortens(0)
        <window: kept 0>
        """
        return self._are("be shortened", expected, lambda row: row.status == "shortened")

    def within(self, tokens: int) -> Self:
        """Asserts that the window has at most this many tokens.

        >>> import cupel
        >>> from cupel.testing import assert_window
        >>> assert_window(cupel.select([{"content": "a", "tokens": 5}], 10)).within(5)
        <window: kept 0>
        """
        used = self._tokens()
        if used > tokens:
            self._fail(f"expected at most {tokens:,} tokens, got {used:,}", [])
        return self

    def within_budget(self) -> Self:
        """Asserts that the window of a chat has at most the tokens of its budget.

        >>> import cupel
        >>> from cupel.testing import assert_window
        >>> chat = [{"role": "user", "content": "What is 2 + 2?"}]
        >>> assert_window(cupel.fit(chat, 100)).within_budget()
        <window: kept 0>
        """
        return self.within(self._chat("within_budget").budget)

    def is_unchanged(self) -> Self:
        """Asserts that all messages or items stay as they are.

        >>> import cupel
        >>> from cupel.testing import assert_window
        >>> chat = [{"role": "user", "content": "What is 2 + 2?"}]
        >>> assert_window(cupel.fit(chat, 100)).is_unchanged()
        <window: kept 0>
        """
        return self.keeps_whole(*range(len(self._rows)))

    def is_valid(self) -> Self:
        """Asserts that the provider has nothing to reject: that the chat has no warnings.

        >>> import cupel
        >>> from cupel.testing import assert_window
        >>> chat = [{"role": "user", "content": "What is 2 + 2?"}]
        >>> assert_window(cupel.fit(chat, 100)).is_valid()
        <window: kept 0>
        """
        warnings = self._chat("is_valid").warnings
        if warnings:
            found = "; ".join(f"{it['kind']} at {it['messages']}" for it in warnings)
            self._fail(
                f"expected no warnings, got {found}",
                [index for it in warnings for index in it["messages"]],
            )
        return self

    def reuses(self, share: float) -> Self:
        """Asserts that at least this share of the last window's tokens is an unchanged prefix.

        Of a window of a ``Fitter``; the first one reuses nothing.

        >>> import cupel
        >>> from cupel.testing import assert_window
        >>> fitter = cupel.Fitter(budget=100)
        >>> chat = [{"role": "user", "content": "What is 2 + 2?"}]
        >>> first = fitter.fit(chat)
        >>> assert_window(fitter.fit(chat)).reuses(0.9)
        <window: kept 0>
        """
        reuse = self._chat("reuses").reuse
        if reuse is None:
            self._fail("expected a window after another one of a Fitter", [])
        elif reuse["share"] < share:
            message = f"expected {share:.0%} of the last window to be reused, got "
            changed = [it for it in [reuse["first_changed"]] if it is not None]
            self._fail(
                f"{message}{reuse['share']:.0%} ({reuse['tokens']:,} of {reuse['of']:,} tokens)",
                changed,
            )
        return self

    def _chat(self, name: str) -> Fitted[Any]:
        if self._fitted is None:
            raise TypeError(f"{name}() needs a window of fit, not of select")
        return self._fitted

    def _tokens(self) -> int:
        return self._report.tokens_used if self._fitted is None else self._fitted.tokens_after

    def _positions(self, given: Iterable[int]) -> list[int]:
        count = len(self._rows)
        found = []
        for position in given:
            if not -count <= position < count:
                raise IndexError(f"position {position} of {count} {self._unit}s")
            found.append(position % count)
        return found

    def _are(self, verb: str, given: Iterable[int], holds: Callable[[_Row], bool]) -> Self:
        wrong = [index for index in self._positions(given) if not holds(self._rows[index])]
        if wrong:
            plural = "s" if len(wrong) > 1 else ""
            named = ", ".join(map(str, wrong))
            self._fail(f"expected {self._unit}{plural} {named} to {verb}", wrong)
        return self

    def _fail(self, message: str, wrong: list[int]) -> None:
        raise AssertionError("\n".join([message, "", *self._shown(set(wrong))]))

    def _shown(self, wrong: set[int]) -> Iterable[str]:
        """Yields the window as lines: the positions in question, marked, and their neighbors."""
        kept = sum(row.status != "dropped" for row in self._rows)
        yield f"{kept} of {len(self._rows)} {self._unit}s, {self._tokens():,} tokens"
        near = {at + step for at in wrong for step in range(-_AROUND, _AROUND + 1)}
        skipped = False
        for index, row in enumerate(self._rows):
            if wrong and index not in near:
                skipped = True
                continue
            if skipped:
                yield "  ..."
            skipped = False
            mark = ">" if index in wrong else " "
            line = f"{mark} {index:4}  {row.status:9}  {row.role:9}  {row.reason} {row.details}"
            yield line.rstrip()
        if skipped:
            yield "  ..."


def differences(left: Fitted[Any], right: Fitted[Any]) -> list[str]:
    """Returns what differs between two windows, one line each.

    Args:
        left: A window.
        right: Another one.

    >>> import cupel
    >>> from cupel.testing import differences
    >>> chat = [{"role": "user", "content": "Hello!"}, {"role": "user", "content": "Hello?"}]
    >>> one, both = (cupel.fit(chat, budget, policy="newest") for budget in (13, 100))
    >>> differences(one, both)[-1]
    'message 0 (user): dropped, kept'
    """
    names = ("budget", "counter", "shape", "tokens_before", "tokens_after")
    pairs = [(name, getattr(left, name), getattr(right, name)) for name in names]
    lines = [f"{name}: {ours!r}, {theirs!r}" for name, ours, theirs in pairs if ours != theirs]
    rows, others = _of_fitted(left), _of_fitted(right)
    if len(rows) != len(others):
        return [*lines, f"chat: {len(rows)} messages, {len(others)} messages"]
    for index, (row, other) in enumerate(zip(rows, others, strict=True)):
        if row.status != other.status:
            lines.append(f"message {index} ({row.role}): {row.status}, {other.status}")
        elif row != other:
            ours, theirs = (f"{it.reason} {it.details}".strip() for it in (row, other))
            lines.append(f"message {index} ({row.role}): {row.status}, {ours}; {theirs}")
    if left.markers != right.markers:
        texts = [[it["text"] for it in side.markers] for side in (left, right)]
        lines.append(f"markers: {texts[0]!r}, {texts[1]!r}")
    return lines or ["the messages or the report differ"]


def _of_fitted(fitted: Fitted[Any]) -> list[_Row]:
    rows: dict[int, _Row] = {}
    for index, message in positions(fitted):
        if index is not None:
            rows[index] = _Row("kept", _role(message))
    for entry in fitted.shortened:
        details = f"{entry['tokens']:,} of {entry['original_tokens']:,} tokens"
        rows[entry["index"]] = _Row("shortened", entry["role"], details)
    for lost in fitted.dropped:
        reason, details = _reason(lost["reason"])
        rows[lost["index"]] = _Row("dropped", lost["role"], details, reason)
    return [rows[index] for index in sorted(rows)]


def _of_selection(selection: Selection[Any]) -> list[_Row]:
    rows: dict[int, _Row] = {}
    for entry in selection.report.included:
        reason, details = _reason(entry["reason"])
        is_short = reason == "Shortened"
        rows[entry["index"]] = _Row("shortened" if is_short else "kept", details=details)
    for lost in selection.report.excluded:
        reason, details = _reason(lost["reason"])
        rows[lost["index"]] = _Row("dropped", details=details, reason=reason)
    return [rows[index] for index in sorted(rows)]


def _role(message: Any) -> str:
    names = message if isinstance(message, Mapping) else getattr(message, "__dict__", {})
    return str(names.get("role") or names.get("type") or "")


def _reason(reason: Any) -> tuple[str, str]:
    """Returns the name of a reason, and its numbers. Texts of other items are left out."""
    if not isinstance(reason, Mapping):
        return str(reason), ""
    fields = {
        name: it
        for name, it in reason.items()
        if name != "reason" and isinstance(it, (int, float, str)) and len(str(it)) <= 40
    }
    listed = ", ".join(f"{name} {it}" for name, it in fields.items())
    return str(reason["reason"]), f"({listed})" if listed else ""
