"""Items, budgets and policies as Python values."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cupel
from strategies import Json, items


@given(items())
def test_an_item_round_trips_through_a_dict(document: Json) -> None:
    item = cupel.Item.from_dict(document)
    assert cupel.Item.from_dict(item.to_dict()) == item
    assert item == cupel.Item(**document)
    for key, value in document.items():
        assert getattr(item, key) == value, key


def test_any_mapping_is_accepted_where_a_dict_is() -> None:
    fields: Mapping[str, Any] = MappingProxyType({"content": "a", "tokens": 3})
    assert cupel.Item.from_dict(fields) == cupel.Item("a", 3)
    budget: Mapping[str, Any] = MappingProxyType({"max_tokens": 5, "target_tokens": 4})
    policy: Mapping[str, Any] = MappingProxyType({"scorer": {"type": "recency"}})
    assert cupel.Policy.from_dict(policy) == cupel.Policy("recency")
    for given_items in ([fields, fields], cupel.Items([fields, fields])):
        assert cupel.select_index(given_items, budget, policy) == [0]
    with pytest.raises(TypeError, match="Mapping"):
        cupel.Item.from_dict(["a"])  # type: ignore[arg-type]


@given(items())
def test_an_item_is_a_value(document: Json) -> None:
    item = cupel.Item(**document)
    twin = cupel.Item(**document)
    assert item == twin
    assert hash(item) == hash(twin)
    assert item != cupel.Item(**(document | {"content": document["content"] + "."}))
    assert pickle.loads(pickle.dumps(item)) == item
    assert copy.deepcopy(item) == item


def test_an_item_is_frozen() -> None:
    item = cupel.Item("text", 1)
    with pytest.raises(AttributeError):
        item.tokens = 2  # type: ignore[misc]


def test_an_item_without_tokens_is_counted() -> None:
    assert cupel.Item("hello world").tokens == cupel.count("hello world") == 2


def test_a_repr_names_the_content_and_the_tokens() -> None:
    assert repr(cupel.Item("text", 3)) == 'Item("text", 3, kind="Message")'


def test_items_are_a_sequence() -> None:
    documents: list[Json] = [{"content": text, "tokens": 1} for text in "abc"]
    prebuilt = cupel.Items(documents)
    assert len(prebuilt) == 3
    assert prebuilt[0] == cupel.Item("a", 1)
    assert prebuilt[-1] == cupel.Item("c", 1)
    assert [item.content for item in prebuilt] == ["a", "b", "c"]
    assert isinstance(prebuilt, Sequence)
    for index in (3, -4):
        with pytest.raises(IndexError):
            prebuilt[index]
    with pytest.raises(TypeError):
        prebuilt["a"]  # type: ignore[call-overload]


@given(st.lists(items(), max_size=6), st.slices(8), st.integers(-8, 8), st.integers(-8, 8))
def test_items_answer_as_a_list_does(
    documents: list[Json], part: slice, start: int, stop: int
) -> None:
    expected = [cupel.Item(**document) for document in documents]
    prebuilt = cupel.Items(documents)
    assert list(prebuilt) == expected
    assert list(prebuilt[part]) == expected[part]
    assert prebuilt[part] == cupel.Items(expected[part])
    assert list(reversed(prebuilt)) == expected[::-1]
    for item in [*expected, cupel.Item("another", 1), "text"]:
        assert (item in prebuilt) == (item in expected)
        assert prebuilt.count(item) == expected.count(item)  # type: ignore[arg-type]
        try:
            position = expected.index(item, start, stop)  # type: ignore[arg-type]
        except ValueError:
            with pytest.raises(ValueError):
                prebuilt.index(item, start, stop)
        else:
            assert prebuilt.index(item, start, stop) == position


def test_items_are_a_value() -> None:
    documents: list[Json] = [{"content": text, "tokens": 1} for text in "abc"]
    prebuilt = cupel.Items(documents)
    assert prebuilt == cupel.Items(documents) != cupel.Items(documents[:2])
    assert hash(prebuilt) == hash(cupel.Items(documents))
    assert pickle.loads(pickle.dumps(prebuilt)) == prebuilt
    assert prebuilt != list(prebuilt)


def test_an_item_has_views() -> None:
    views: list[Json] = [{"content": "short", "tokens": 10, "level": 50, "value": 0.5}]
    item = cupel.Item("a long text", 100, future_relevance_hint=1.0, views=views)
    assert item.views == views
    assert item == cupel.Item.from_dict(item.to_dict())
    assert pickle.loads(pickle.dumps(item)).views == views
    assert cupel.Item("text", 1).views == []
    policy = cupel.Policy("reflexive", "choice")
    [kept] = cupel.select([item], 20, policy)
    assert (kept.content, kept.tokens, kept.original_tokens) == ("short", 10, 100)
    with pytest.raises(cupel.InvalidInputError, match="views"):
        cupel.Item("a", 1, views=[{"content": "too long", "tokens": 2}])


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00Z"])
def test_a_time_that_datetime_does_not_have_is_in_the_dict(time: str) -> None:
    item = cupel.Item("text", 1, timestamp=time)
    with pytest.raises(OverflowError, match=r"years 1 to 9999 .* to_dict"):
        item.timestamp  # noqa: B018
    assert item.to_dict().get("timestamp", "").endswith("Z")


def test_every_item_of_a_list_keeps_its_own_kind_and_source() -> None:
    names = [f"name{at}" for at in range(20)] * 2
    documents: list[Json] = [
        {"content": "text", "tokens": 1, "kind": kind, "source": source}
        for kind, source in zip(names, reversed(names), strict=True)
    ]
    prebuilt = cupel.Items(documents)
    assert [item.kind for item in prebuilt] == names
    assert [item.source for item in prebuilt] == names[::-1]


def test_scalars_of_numpy_are_numbers() -> None:
    fields: Json = {
        "content": "a",
        "tokens": numpy.int64(7),
        "priority": numpy.int32(3),
        "future_relevance_hint": numpy.float32(0.5),
        "pinned": numpy.bool_(True),
    }
    item = cupel.Item.from_dict(fields)
    assert item == cupel.Item("a", 7, priority=3, future_relevance_hint=0.5, pinned=True)
    with pytest.raises(cupel.InvalidInputError, match="items.1..tokens"):
        cupel.select([fields, {"content": "b", "tokens": numpy.zeros(2)}], 9)


NAIVE = datetime(2026, 3, 2, 9, 0)


def test_an_error_names_the_item_whose_time_has_no_zone() -> None:
    items: list[Json] = [{"content": str(at), "tokens": 1, "timestamp": AWARE} for at in range(9)]
    items[7]["timestamp"] = NAIVE
    with pytest.raises(cupel.InvalidInputError, match="items.7..timestamp: .*has no timezone"):
        cupel.select(items, 5)


AWARE = NAIVE.replace(tzinfo=UTC)


@pytest.mark.parametrize("time", [NAIVE, "2026-03-02T09:00:00"], ids=["datetime", "text"])
def test_a_time_without_a_zone_is_refused(time: datetime | str) -> None:
    with pytest.raises(cupel.InvalidInputError, match="timestamp"):
        cupel.Item("text", 1, timestamp=time)
    with pytest.raises(cupel.InvalidInputError, match="timestamp"):
        cupel.select([{"content": "text", "tokens": 1, "timestamp": time}], 10)


def test_a_time_keeps_its_instant() -> None:
    time = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)
    assert cupel.Item("text", 1, timestamp=time).timestamp == time
    assert cupel.Item("text", 1, timestamp="2026-03-02T10:00:00.123456+01:00").timestamp == time


# Each key with a value of a wrong type.
WRONG: list[tuple[str, Any]] = [
    ("content", 1),
    ("content", ""),
    ("tokens", "many"),
    ("tokens", 1.5),
    ("tokens", True),
    ("tokens", 2**63),
    ("kind", 5),
    ("kind", " "),
    ("source", []),
    ("priority", "high"),
    ("tags", "order"),
    ("tags", [1]),
    ("metadata", ["a"]),
    ("timestamp", 5),
    ("timestamp", "yesterday"),
    ("future_relevance_hint", "0.5"),
    ("pinned", "yes"),
    ("original_tokens", -0.5),
]


@pytest.mark.parametrize(("key", "value"), WRONG, ids=lambda part: str(part)[:20])
def test_a_wrong_value_is_refused_with_its_path(key: str, value: Any) -> None:
    document = {"content": "text", "tokens": 1, key: value}
    with pytest.raises(cupel.InvalidInputError) as raised:
        cupel.select([{"content": "first", "tokens": 1}, document], 10)
    assert raised.value.path is not None
    assert raised.value.path.startswith(f"items[1].{key}")
    assert raised.value.exit_code == 2
    with pytest.raises(cupel.InvalidInputError) as raised:
        cupel.Items([{"content": "first", "tokens": 1}, document])
    assert raised.value.path is not None
    assert raised.value.path.startswith(f"items[1].{key}")


def test_an_unknown_key_is_refused_with_a_suggestion() -> None:
    with pytest.raises(cupel.InvalidInputError, match="pinned"):
        cupel.select([{"content": "text", "tokens": 1, "pined": True}], 10)


@pytest.mark.parametrize("value", [5, None, [1]], ids=str)
def test_something_that_is_no_item_is_refused(value: Any) -> None:
    with pytest.raises(cupel.InvalidInputError) as raised:
        cupel.select([value], 10)
    assert raised.value.path == "items[0]"


def test_a_budget_is_a_value() -> None:
    budget = cupel.Budget(100, target_tokens=80, output_reserve=10, reserved_slots={"Document": 5})
    assert budget == cupel.Budget(
        100, target_tokens=80, output_reserve=10, reserved_slots={"Document": 5}
    )
    assert budget.to_dict()["target_tokens"] == 80
    assert pickle.loads(pickle.dumps(budget)) == budget
    items: list[Json] = [{"content": "text", "tokens": 80}]
    assert cupel.select_index(items, budget) == []
    assert cupel.select_index(items, budget.to_dict()) == []


@pytest.mark.parametrize(
    "budget", [8_000, "8k", {"max_tokens": 8_000}, cupel.Budget(8_000)], ids=str
)
def test_a_budget_has_four_forms(budget: Any) -> None:
    items: list[Json] = [{"content": "a", "tokens": 8_000}, {"content": "b", "tokens": 1}]
    assert cupel.select(items, budget, "chat").tokens <= 8_000
    assert cupel.select_index(items[:1], budget) == [0]


@pytest.mark.parametrize("budget", [-1, "8,000", "lots", {"max": 1}, None, 1.5, True, []], ids=str)
def test_an_invalid_budget_is_refused(budget: Any) -> None:
    with pytest.raises(cupel.InvalidInputError, match="budget"):
        cupel.select([], budget)


@pytest.mark.parametrize("name", cupel.presets())
def test_a_preset_round_trips_through_a_dict(name: str) -> None:
    policy = cupel.Policy.preset(name)
    again = cupel.Policy.from_dict(policy.to_dict())
    assert again == policy
    assert again.to_dict() == policy.to_dict()
    assert pickle.loads(pickle.dumps(policy)) == policy
