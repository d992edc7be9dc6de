"""Random requests as Arrow data, and a naive implementation of the preset `newest`."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

START = datetime(2026, 1, 1, tzinfo=UTC)
TIMESTAMP = pa.timestamp("us", "UTC")

Row = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """One request: its id, its items and its budget."""

    id: str
    items: list[Row]
    budget: int


def random_requests(seed: int, count: int, most: int = 12) -> list[Request]:
    """Returns requests with duplicates, equal times, and items without time or tokens."""
    rng = random.Random(seed)
    requests = []
    for number in range(count):
        items = []
        for _ in range(rng.randint(1, most)):
            minute = rng.choice([None, *range(20)])
            items.append(
                {
                    "content": f"text {rng.randrange(20)}",
                    "tokens": rng.choice([0, *range(1, 40)]),
                    "timestamp": None if minute is None else START + timedelta(minutes=minute),
                    "pinned": rng.random() < 0.1,
                }
            )
        pinned = sum(item["tokens"] for item in items if item["pinned"])
        requests.append(Request(f"r{number}", items, pinned + rng.randint(1, 120)))
    return requests


def newest(request: Request) -> list[Row]:
    """Selects as the preset `newest` does, written from its description; one row per item."""
    items = request.items
    free = [at for at, item in enumerate(items) if not item["pinned"]]
    times = [items[at]["timestamp"] for at in free if items[at]["timestamp"] is not None]

    def score(at: int) -> float:
        item = items[at]
        if item["pinned"]:
            return 1.0
        if item["timestamp"] is None:
            return 0.0
        if len(times) == 1:
            return 1.0
        older = sum(time < item["timestamp"] for time in times)
        return float(older / (len(times) - 1))

    ranking = []
    duplicates = set()
    for at in free:
        same = [other for other in free if items[other]["content"] == items[at]["content"]]
        if at == min(same, key=lambda other: (-score(other), other)):
            ranking.append(at)
        else:
            duplicates.add(at)
    ranking.sort(key=lambda at: (-score(at), at))
    target = request.budget - sum(item["tokens"] for item in items if item["pinned"])
    left = target
    kept = []
    for at in ranking:
        if items[at]["tokens"] <= left:
            left -= items[at]["tokens"]
            kept.append(at)
    merged = [at for at, item in enumerate(items) if item["pinned"]] + kept
    late = datetime.max.replace(tzinfo=UTC)
    window = sorted(merged, key=lambda at: items[at]["timestamp"] or late)

    def reason(at: int) -> str:
        if items[at]["pinned"]:
            return "Pinned"
        if at in duplicates:
            return "Deduplicated"
        if at in kept:
            return "Scored" if items[at]["tokens"] else "ZeroToken"
        # Ruling R040: the pinned items alone are in the way.
        is_displaced = target < items[at]["tokens"] <= request.budget
        return "PinnedOverride" if is_displaced else "BudgetExceeded"

    return [
        {
            "request_id": request.id,
            "index": at,
            "rank": ranking.index(at) if at in ranking else None,
            "score": score(at),
            "status": "included" if at in window else "excluded",
            "reason": reason(at),
            "position": window.index(at) if at in window else None,
            "tokens": item["tokens"],
        }
        for at, item in enumerate(items)
    ]


ITEM_TYPES = {
    "content": pa.string(),
    "tokens": pa.int64(),
    "timestamp": TIMESTAMP,
    "pinned": pa.bool_(),
}


def as_rows(requests: list[Request]) -> pa.Table:
    """One row per item."""
    rows = [
        {"request_id": request.id, "budget": request.budget, **item}
        for request in requests
        for item in request.items
    ]
    types = {"request_id": pa.string(), "budget": pa.int64(), **ITEM_TYPES}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(types.items())))


def as_lists(requests: list[Request]) -> pa.Table:
    """One row per request with one list column per field."""
    columns: dict[str, pa.Array] = {
        "request_id": pa.array([request.id for request in requests], pa.string()),
        "budget": pa.array([request.budget for request in requests], pa.int64()),
    }
    for name, data_type in ITEM_TYPES.items():
        lists = [[item[name] for item in request.items] for request in requests]
        columns[name] = pa.array(lists, pa.list_(data_type))
    return pa.table(columns)


def as_structs(requests: list[Request]) -> pa.Table:
    """One row per request with one list of structs."""
    item_type = pa.struct(list(ITEM_TYPES.items()))
    return pa.table(
        {
            "request_id": pa.array([request.id for request in requests], pa.string()),
            "budget": pa.array([request.budget for request in requests], pa.int64()),
            "items": pa.array([request.items for request in requests], pa.list_(item_type)),
        }
    )


RESULT = pa.schema(
    [
        ("request_id", pa.string()),
        ("index", pa.int64()),
        ("rank", pa.int64()),
        ("score", pa.float64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("position", pa.int64()),
        ("tokens", pa.int64()),
    ]
)


def serialized(result: pa.Table | list[Row]) -> bytes:
    """Returns a result as the bytes of an Arrow file, sorted by request and item."""
    is_list = isinstance(result, list)
    table: Any = pa.Table.from_pylist(result, schema=RESULT) if is_list else result
    # Engines have string types of their own.
    table = table.select(RESULT.names).cast(RESULT).replace_schema_metadata()
    table = table.sort_by([("request_id", "ascending"), ("index", "ascending")])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, RESULT) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())
