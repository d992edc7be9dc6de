"""A log of requests of agents in several formats, the same for the same seed.

`python tests/request_log.py FOLDER [REQUESTS]` writes it as Parquet files with whole conversations.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Json = dict[str, Any]

WORDS = """order parcel courier invoice refund bicycle station harbor bridge address delivery status
    weight pickup window ticket branch merge deploy server request timeout retry cache token budget
    morning evening customer account payment receipt warehouse carton label route driver depot"""
TOOLS = ["list_orders", "scan_log", "read_file", "search"]
SYSTEM = "You are the dispatcher of a bicycle courier service. Answer in one sentence."
FORMATS = ["openai", "anthropic", "gemini", "openai-responses"]
MODELS = {
    "openai": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "openai-responses": "gpt-5.1",
}
FILES = 8


@dataclass(frozen=True)
class Row:
    """One request of a log."""

    id: str
    conversation: str
    order: int
    model: str | None
    budget: int
    request: str | None


SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("conversation", pa.string()),
        ("order", pa.int64()),
        ("model", pa.string()),
        ("budget", pa.int64()),
        ("request", pa.string()),
    ]
)


class Texts:
    """Draws texts: parts of one long line of words, which is fast and rarely repeats."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        words = WORDS.split()
        numbers = [str(rng.randrange(100_000)) for _ in range(10_000)]
        self.line = " ".join(rng.choice(rng.choice([words, words, numbers])) for _ in range(40_000))

    def text(self, least: int, most: int) -> str:
        """Returns a text of so many characters."""
        length = self.rng.randint(least, most)
        start = self.rng.randrange(len(self.line) - length)
        return self.line[start : start + length]

    def result(self) -> str:
        """Returns the result of a tool: JSON, a log or a text."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            rows = range(rng.randint(1, 8))
            return json.dumps(
                [
                    {"id": f"ORD-{at}", "note": self.text(20, 120), "open": at % 3 == 0}
                    for at in rows
                ]
            )
        if kind < 0.7:
            lines = range(rng.randint(3, 20))
            level = rng.choice(["INFO", "INFO", "WARN", "ERROR"])
            return "\n".join(f"09:{at:02}:00 {level} {self.text(20, 90)}" for at in lines)
        return self.text(40, 1200)


def steps(texts: Texts) -> Iterator[list[tuple[str, Any]]]:
    """Yields what each step of a conversation adds: user turns, calls, results and answers."""
    rng = texts.rng
    yield [("user", texts.text(20, 400))]
    for step in range(rng.randint(4, 16)):
        if rng.random() < 0.7:
            calls = [(f"c{step}_{at}", rng.choice(TOOLS)) for at in range(rng.choice([1, 1, 2]))]
            arguments = {"query": texts.text(10, 60)}
            added: list[tuple[str, Any]] = [("call", (calls, arguments))]
            added.append(("results", [(*call, texts.result()) for call in calls]))
            yield added
        else:
            yield [("answer", texts.text(40, 900)), ("user", texts.text(20, 300))]


def openai(kind: str, value: Any) -> list[Json]:
    if kind == "call":
        calls, arguments = value
        function = json.dumps(arguments)
        made = [
            {"id": name, "type": "function", "function": {"name": tool, "arguments": function}}
            for name, tool in calls
        ]
        return [{"role": "assistant", "content": None, "tool_calls": made}]
    if kind == "results":
        return [{"role": "tool", "tool_call_id": name, "content": text} for name, _, text in value]
    return [{"role": "user" if kind == "user" else "assistant", "content": value}]


def anthropic(kind: str, value: Any) -> list[Json]:
    if kind == "call":
        calls, arguments = value
        uses = [
            {"type": "tool_use", "id": name, "name": tool, "input": arguments}
            for name, tool in calls
        ]
        return [{"role": "assistant", "content": uses}]
    if kind == "results":
        results = [
            {"type": "tool_result", "tool_use_id": name, "content": text} for name, _, text in value
        ]
        return [{"role": "user", "content": results}]
    return [{"role": "user" if kind == "user" else "assistant", "content": value}]


def gemini(kind: str, value: Any) -> list[Json]:
    if kind == "call":
        calls, arguments = value
        parts = [
            {"functionCall": {"id": name, "name": tool, "args": arguments}} for name, tool in calls
        ]
        return [{"role": "model", "parts": parts}]
    if kind == "results":
        parts = [
            {"functionResponse": {"id": name, "name": tool, "response": {"output": text}}}
            for name, tool, text in value
        ]
        return [{"role": "user", "parts": parts}]
    return [{"role": "user" if kind == "user" else "model", "parts": [{"text": value}]}]


def responses(kind: str, value: Any) -> list[Json]:
    if kind == "call":
        calls, arguments = value
        return [
            {
                "type": "function_call",
                "call_id": name,
                "name": tool,
                "arguments": json.dumps(arguments),
            }
            for name, tool in calls
        ]
    if kind == "results":
        return [
            {"type": "function_call_output", "call_id": name, "output": text}
            for name, _, text in value
        ]
    return [{"role": "user" if kind == "user" else "assistant", "content": value}]


def ends(shape: str) -> tuple[str, str]:
    """Returns what is before and after the messages of a request, as JSON."""
    model = MODELS[shape]
    head: Json
    tool = {"name": TOOLS[0], "description": "Lists the orders of a day."}
    if shape == "openai":
        head = {"model": model, "tools": [{"type": "function", "function": tool}]}
        system = json.dumps({"role": "system", "content": SYSTEM})
        return json.dumps(head)[:-1] + f', "messages": [{system}, ', "]}"
    if shape == "anthropic":
        schema = {**tool, "input_schema": {"type": "object"}}
        head = {"model": model, "max_tokens": 1024, "system": SYSTEM, "tools": [schema]}
        return json.dumps(head)[:-1] + ', "messages": [', "]}"
    if shape == "gemini":
        head = {"systemInstruction": {"parts": [{"text": SYSTEM}]}}
        return json.dumps(head)[:-1] + ', "contents": [', "]}"
    return json.dumps({"model": model, "instructions": SYSTEM})[:-1] + ', "input": [', "]}"


WRITERS = {
    "openai": openai,
    "anthropic": anthropic,
    "gemini": gemini,
    "openai-responses": responses,
}


def conversation(texts: Texts, number: int) -> Iterator[Row]:
    """Yields the requests of a conversation. A few cannot be fitted."""
    rng = texts.rng
    shape = FORMATS[number % len(FORMATS)]
    before, after = ends(shape)
    budget = rng.choice([600, 1000, 2000, 4000])
    model = MODELS[shape] if shape == "gemini" else None
    messages: list[str] = []
    for order, added in enumerate(steps(texts)):
        for kind, value in added:
            messages += [json.dumps(message) for message in WRITERS[shape](kind, value)]
        request: str | None = before + ", ".join(messages) + after
        fault = rng.random()
        if request is not None and fault < 0.002:
            request = None if fault < 0.0005 else request[: len(request) // 2]
        name = f"c{number:06}"
        yield Row(f"{name}-{order:02}", name, order, model, budget, request)


def rows(requests: int, seed: int = 1) -> Iterator[Row]:
    """Yields a log with at least so many requests; conversations are whole, one after the other."""
    texts = Texts(random.Random(seed))
    made = number = 0
    while made < requests:
        for row in conversation(texts, number):
            made += 1
            yield row
        number += 1


def table(all_rows: list[Row]) -> pa.Table:
    """Returns rows as a table."""
    return pa.Table.from_pylist([vars(row) for row in all_rows], schema=SCHEMA)


def write(folder: Path, requests: int, files: int = FILES) -> None:
    """Writes a log as Parquet files of about the same size. Conversations are whole."""
    for file in range(files):
        made = rows(requests // files, seed=file + 1)
        with pq.ParquetWriter(
            folder / f"part-{file}.parquet", SCHEMA, compression="zstd"
        ) as writer:
            chunk: list[Row] = []
            for row in made:
                name = f"{file}-{row.conversation}"
                chunk.append(replace(row, id=f"{file}-{row.id}", conversation=name))
                if len(chunk) == 2_000:
                    writer.write_table(table(chunk))
                    chunk = []
            writer.write_table(table(chunk))


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
