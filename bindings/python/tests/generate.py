"""Random requests and chats, the same for the same seed."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

Json = dict[str, Any]

WORDS = "order parcel keys fridge carrier invoice bicycle refund test branch merge error".split()
KINDS = ["Message", "SystemPrompt", "Document", "ToolOutput", "Memory", "Note"]
TAGS = ["order", "shipping", "returns", "Order"]


def text(rng: random.Random, words: int) -> str:
    """Returns a text of at least one and at most `words` words."""
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, words)))


def item(rng: random.Random) -> Json:
    """Returns an item as a document. Short texts repeat, so that there are duplicates."""
    made: Json = {"content": text(rng, rng.choice([1, 2, 12])), "tokens": rng.randint(-1, 120)}

    def sometimes(key: str, value: Any, chance: float = 0.4) -> None:
        if rng.random() < chance:
            made[key] = value

    sometimes("kind", rng.choice(KINDS))
    sometimes("source", rng.choice(["Chat", "Tool", "Rag", "Wiki"]))
    sometimes("priority", rng.randint(-3, 3))
    sometimes("tags", rng.sample(TAGS, rng.randint(0, 3)))
    sometimes("metadata", {"cupel:trust": str(rng.random()), "topic": rng.choice(WORDS)})
    sometimes("timestamp", time(rng))
    sometimes("future_relevance_hint", round(rng.random(), 3), 0.7)
    sometimes("pinned", True, 0.04)
    sometimes("original_tokens", rng.randint(0, 500), 0.1)
    return made


def time(rng: random.Random) -> str:
    """Returns one of a few times, so that there are ties."""
    start = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    return (start + timedelta(minutes=rng.randint(0, 20))).isoformat()


def budget(rng: random.Random) -> Json:
    """Returns a budget as a document."""
    made: Json = {"max_tokens": rng.choice([50, 200, 400, 1000, 5000])}
    if rng.random() < 0.4:
        made["target_tokens"] = rng.randint(0, made["max_tokens"])
    if rng.random() < 0.3:
        made["output_reserve"] = rng.randint(0, 40)
    if rng.random() < 0.2:
        made["reserved_slots"] = {rng.choice(KINDS): rng.randint(0, 30)}
    if rng.random() < 0.2:
        made["estimation_safety_margin_percent"] = rng.choice([0.0, 5.0, 12.5])
    return made


def invalid_budget(rng: random.Random) -> Json:
    """Returns a budget with one fault."""
    faults: list[Json] = [
        {"target_tokens": 101},
        {"output_reserve": 101},
        {"output_reserve": -1},
        {"estimation_safety_margin_percent": 101},
        {"reserved_slots": {"Message": -1}},
        {"max_token": 5},
        {"max_tokens": -1},
        {"max_tokens": "100"},
    ]
    return {"max_tokens": 100} | rng.choice(faults)


def scorer(rng: random.Random, depth: int = 2) -> Json:
    """Returns a scorer as a document."""
    simple: list[Json] = [
        {"type": "recency"},
        {"type": "priority"},
        {"type": "reflexive"},
        {"type": "frequency"},
        {"type": "kind"},
        {"type": "kind", "weights": {"Note": 0.9, "Message": rng.random()}},
        {
            "type": "tag",
            "tag_weights": {"order": 2, "returns": 1},
            "ignore_case": rng.random() < 0.5,
        },
        {"type": "metadata_trust"},
        {"type": "metadata_key", "key": "topic", "value": "order", "boost": 1.5},
        {
            "type": "decay",
            "curve": {"type": "exponential", "half_life": "10m"},
            "reference_time": "2026-03-02T09:20:00Z",
        },
        {"type": "relevance", "query": text(rng, 4)},
        {"type": "conversation", "query": text(rng, 4)},
    ]
    if depth == 0 or rng.random() < 0.5:
        return rng.choice(simple)
    inner = [scorer(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    entries = [{"scorer": one, "weight": rng.choice([0.5, 1, 3])} for one in inner]
    return rng.choice(
        [
            {"type": "composite", "entries": entries},
            {"type": "fusion", "entries": entries, "method": rng.choice(["sum", "shares"])},
            {"type": "product", "scorers": inner},
            {"type": "scaled", "inner": inner[0]},
            {"type": "neighbor", "inner": inner[0]},
        ]
    )


def slicer(rng: random.Random, depth: int = 1) -> Json:
    """Returns a slicer as a document. Some combinations are invalid."""
    simple: list[Json] = [
        {"type": "greedy"},
        {"type": "rank"},
        {"type": "density", "exponent": rng.random()},
        {"type": "knapsack", "bucket_size": rng.choice([1, 10, 100])},
        {"type": "diversity"},
    ]
    if depth == 0 or rng.random() < 0.5:
        return rng.choice(simple)
    inner = slicer(rng, depth - 1)
    kind = rng.choice(KINDS)
    counts = [{"kind": kind, "require_count": rng.randint(0, 2), "cap_count": rng.randint(1, 4)}]
    return rng.choice(
        [
            {
                "type": "quota",
                "quotas": [
                    {"kind": kind, "require": rng.randint(0, 60), "cap": rng.randint(40, 101)}
                ],
                "inner": inner,
            },
            {"type": "count_quota", "entries": counts, "inner": inner},
            {"type": "count_constrained_knapsack", "entries": counts, "scarcity": "throw"},
            {"type": "near_duplicates", "threshold": 0.5, "inner": inner},
            {"type": "group", "inner": inner},
        ]
    )


def policy(rng: random.Random) -> Json:
    """Returns a policy as a document."""
    return {
        "scorer": scorer(rng),
        "slicer": slicer(rng),
        "placer": {"type": rng.choice(["chronological", "u-shaped"])},
        "deduplication": rng.random() < 0.7,
        "overflow_strategy": rng.choice(["throw", "truncate", "proceed"]),
    }


def request(rng: random.Random) -> Json:
    """Returns a request document with items, budget and policy. It has at most one fault."""
    is_invalid = rng.random() < 0.05
    return {
        "items": [item(rng) for _ in range(rng.randint(0, 25))],
        "budget": invalid_budget(rng) if is_invalid else budget(rng),
        "policy": {"scorer": scorer(rng)} if is_invalid else policy(rng),
    }


def chat(rng: random.Random) -> Json:
    """Returns an OpenAI request: a system message, user turns, tool calls with results."""
    messages: list[Json] = [{"role": "system", "content": text(rng, 20)}]
    for turn in range(rng.randint(1, 8)):
        messages.append({"role": "user", "content": text(rng, 30)})
        for step in range(rng.randint(0, 3)):
            name = f"call_{turn}_{step}"
            arguments = json.dumps({"query": text(rng, 3)})
            call = {"name": rng.choice(["search", "read"]), "arguments": arguments}
            messages.append(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": name, "type": "function", "function": call}],
                }
            )
            result = json.dumps(
                [{"id": row, "note": text(rng, 15)} for row in range(rng.randint(1, 9))]
            )
            messages.append({"role": "tool", "tool_call_id": name, "content": result})
        messages.append({"role": "assistant", "content": text(rng, 60)})
    if rng.random() < 0.5:
        messages.append({"role": "user", "content": text(rng, 10)})
    return {"model": "gpt-4o", "messages": messages}
