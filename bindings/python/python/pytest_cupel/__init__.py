"""The pytest plugin of ``cupel``: a fixture, and readable diffs of windows.

pytest imports this module in every project that has the package. So it imports ``cupel``, whose
extension takes milliseconds, in the tests that use it only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def assert_window() -> Callable[[Any], Any]:
    """``cupel.testing.assert_window``: assertions on a window of ``cupel.fit`` or ``select``."""
    from cupel import testing

    return testing.assert_window


def pytest_assertrepr_compare(op: str, left: Any, right: Any) -> list[str] | None:
    """Explains why two windows are not equal."""
    cupel = sys.modules.get("cupel")
    if cupel is None or op != "==":
        return None
    if not (isinstance(left, cupel.Fitted) and isinstance(right, cupel.Fitted)):
        return None
    from cupel.testing import differences

    return ["windows of cupel.fit are equal", *differences(left, right)]
