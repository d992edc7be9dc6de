"""Whole chats as Arrow data: ``fit_batches``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Unpack

from cupel import _cupel
from cupel._cupel import FittedBatches
from cupel._fit import _split
from cupel._types import BudgetLike, FitOptions


def fit_batches(
    data: object,
    budget: BudgetLike | None = None,
    *,
    columns: Mapping[str, str | None] | None = None,
    keep: Sequence[str] | None = None,
    request: bool = False,
    prices: str | tuple[float, float] = "anthropic",
    on_error: Literal["report", "raise"] = "report",
    threads: int | None = None,
    **options: Unpack[FitOptions],
) -> FittedBatches:
    """Fits every request of a table and returns the figures as an Arrow stream.

    The windows are those of :func:`fit`. Batches are pulled as the result is read, so that memory
    does not grow with the log, and fitted on all cores. The result has one row per request, in the
    order of the input. The page ``docs/replay.md`` has its columns.

    Args:
        data: A table, a record batch reader or any other object with the Arrow C stream (pyarrow,
            Polars, DuckDB, pandas), or an iterable of them. Its column ``request`` has requests or
            lists of messages: JSON as strings or bytes, or structs or lists of structs.
        budget: As of :func:`fit`, for rows without one of their own in the column ``budget``.
        columns: The columns that are read, if they have other names; None ignores one. By default
            ``request``, and if they are there ``budget``, ``model``, ``conversation`` and ``order``
            (the place of a request in its conversation).
        keep: The columns to copy to the result. Default: all but the requests.
        request: Whether the result has the fitted requests, as JSON in a column ``request``.
        prices: ``"anthropic"``, ``"openai"``, or the prices of a token that the prompt cache reads
            and of one that it does not, where a plain token costs 1.
        on_error: ``"report"`` puts errors into their rows and warns at the end. ``"raise"`` stops
            at the first one and names its row.
        threads: The most threads. Default: one per core.
        options: Those of :func:`fit` but ``summarize``, such as ``policy`` and ``model``.

    Raises:
        InvalidInputError: An argument is invalid, or the data lacks a column.

    >>> import cupel, pyarrow as pa
    >>> hello = '{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello!"}]}'
    >>> log = pa.table({"id": [1, 2], "request": [hello, "oops"]})
    >>> figures = pa.table(cupel.fit_batches(log, "8k"))
    >>> figures.select(["id", "tokens_after", "kept", "error_code"]).to_pylist()[0]
    {'id': 1, 'tokens_after': 9, 'kept': 1, 'error_code': None}
    >>> figures["error_place"].to_pylist()
    [None, 'line 1, column 1']
    """
    own = ("columns", "keep", "request", "prices", "on_error", "threads")
    parameters, others = _split("fit_batches", options, own)
    return _cupel.fit_batches(
        data,
        {"budget": budget, **parameters},
        others,
        None if columns is None else list(columns.items()),
        None if keep is None else list(keep),
        request,
        prices,
        on_error,
        threads,
    )


__all__ = ["FittedBatches", "fit_batches"]
