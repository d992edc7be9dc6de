"""Hypothesis strategies for items and budgets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

Json = dict[str, Any]

# The same examples in every run, and no failure because a machine is busy.
settings.register_profile("cupel", derandomize=True, deadline=None, database=None)
settings.load_profile("cupel")

NAMES = st.text(min_size=1, max_size=8).filter(lambda name: name.strip() != "")
# The engine stores nanoseconds; Python has microseconds. Zones are whole minutes, as in RFC 3339.
ZONES = st.integers(-720, 840).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(
    min_value=datetime(1700, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC) | ZONES
)
HINTS = st.floats(allow_nan=False, allow_infinity=False)


TOKENS = st.integers(-10, 1_000)


def items(tokens: st.SearchStrategy[int] = TOKENS) -> st.SearchStrategy[Json]:
    """Returns items as dicts with any subset of the optional keys."""
    return st.fixed_dictionaries(
        {"content": st.text(min_size=1, max_size=20), "tokens": tokens},
        optional={
            "kind": NAMES,
            "source": NAMES,
            "priority": st.integers(-(2**31), 2**31),
            "tags": st.lists(NAMES, max_size=3),
            "metadata": st.dictionaries(NAMES, st.text(max_size=5), max_size=3),
            "timestamp": TIMES,
            "future_relevance_hint": HINTS,
            "pinned": st.booleans(),
            "original_tokens": st.integers(0, 10_000),
        },
    )
