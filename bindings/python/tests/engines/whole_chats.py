"""`fit_batches` in an engine: the sections of docs/replay.md, on 100,000 requests too."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import cupel
from pages import run_page
from request_log import write

REQUESTS = int(os.environ.get("CUPEL_REQUESTS", "100000"))
COLUMNS = ["conversation", "order", "request"]
KEYS = [("conversation", "ascending"), ("order", "ascending")]


def one_process(folder: str) -> pa.Table:
    """Returns the figures of one process that reads the files itself."""
    batches = ds.dataset(folder).to_batches(columns=COLUMNS, batch_size=1_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cupel.CupelWarning)
        return pa.table(cupel.fit_batches(batches, "2k"))


def compare(result: pa.Table, expected: pa.Table) -> None:
    """Compares all rows. Engines have string types and an order of their own.

    A conversation that an engine split over two streams starts anew in the second. There are few
    such rows; they have no reuse, and every token is new.
    """
    result = result.select(expected.schema.names).cast(expected.schema)
    assert result.num_rows == expected.num_rows
    result, expected = result.sort_by(KEYS), expected.sort_by(KEYS)
    reuse = ["reused_tokens", "reused_share", "cost"]
    for name in expected.schema.names:
        if name not in reuse:
            assert result[name].equals(expected[name]), name
    anew = pc.and_(pc.is_null(result["reused_tokens"]), pc.is_valid(expected["reused_tokens"]))
    assert pc.sum(anew).as_py() < expected.num_rows / 1_000
    kept = pc.invert(anew)
    assert result.filter(kept).select(reuse).equals(expected.filter(kept).select(reuse))
    first = result.filter(anew)
    assert first["cost"].to_pylist() == [1.25 * it for it in first["tokens_after"].to_pylist()]


def check_page(engine: str, result: str, names: dict[str, Any]) -> None:
    """Runs the section of an engine on the log of the page."""
    names = run_page(names, "Whole chats", f"Whole chats with {engine}")
    expected = one_process(names["chats"])
    assert expected["dropped"].to_pylist() != [0] * expected.num_rows
    compare(names[result], expected)


def check_large(
    engine: str, result: str | None, names: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """Runs the section of an engine on a large log, and compares the named result, if it has one.

    The returned names have `check`, which compares another one.
    """
    write(folder, REQUESTS)
    expected = one_process(str(folder))
    assert expected.num_rows >= REQUESTS
    assert 0 < expected["error"].drop_null().length() < expected.num_rows / 100
    sample(folder, expected)
    names |= {"cupel": cupel, "pa": pa, "chats": str(folder)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cupel.CupelWarning)
        names = run_page(names, f"Whole chats with {engine}")
    if result is not None:
        compare(names[result], expected)
    return names | {"check": lambda other: compare(other, expected)}


def sample(folder: Path, expected: pa.Table) -> None:
    """Compares one row of 97 with `fit`."""
    batches = ds.dataset(str(folder)).to_batches(columns=COLUMNS, batch_size=1_000)
    start = compared = 0
    for batch in batches:
        for at in range(-start % 97, batch.num_rows, 97):
            own = expected.slice(start + at, 1).to_pylist()[0]
            assert own["order"] == batch["order"][at].as_py()
            if own["error"] is None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", cupel.CupelWarning)
                    fitted = cupel.fit(json.loads(batch["request"][at].as_py()), "2k")
                assert own["kept_indices"] == fitted.kept
                assert own["tokens_after"] == fitted.tokens_after
                assert own["shortened_indices"] == [it["index"] for it in fitted.shortened]
                compared += 1
        start += batch.num_rows
    assert compared > expected.num_rows / 200
