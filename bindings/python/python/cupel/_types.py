"""The types of arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

from cupel._chat_settings import ChatSettings
from cupel._cupel import Budget, Policy

PolicyLike: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Policy

BudgetLike: TypeAlias = int | str | Mapping[str, Any] | Budget


class ChatOptions(ChatSettings, total=False):
    """How an input is read and counted, and how a chat is trimmed. None is the default."""

    encoding: str | None
    model: str | None
    reserve: int | str | None
    shape: str | None


class FitOptions(ChatOptions, total=False):
    """The options of :func:`fit`, for functions that pass them on."""

    policy: PolicyLike | None
    query: str | None


class SearchOptions(ChatOptions, total=False):
    """The options of :func:`search`."""

    at: str | None
    factor: float | None
    margin: float | None
    slot: Mapping[str, int] | None
    target: int | str | None


class CommandOptions(SearchOptions, total=False):
    """The options of :func:`explain`, :func:`sweep`, :func:`min_budget` and :func:`compare`."""

    query: str | None
