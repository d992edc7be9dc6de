"""Counts with the package ``cupel-vocabularies``, which is not in this environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cupel

CHAT = [{"role": "user", "content": "one two three"}]


def test_without_the_package_an_encoding_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match=r"cupel-context\[vocabularies\]"):
        cupel.count("hello", encoding="llama3")
    with pytest.raises(ValueError, match=r"cupel-context\[vocabularies\]"):
        cupel.fit(CHAT, "1k", encoding="deepseek_v3")


def test_without_the_package_the_tokens_of_a_model_are_an_estimate_with_a_warning() -> None:
    with pytest.warns(cupel.CupelWarning, match=r"llama-3.1 are estimated: .*cupel-vocabularies"):
        fitted = cupel.fit(CHAT, "1k", model="llama-3.1-8b-instruct")
    assert fitted.kept == [0]


PACKAGE = """
calls = []

def encodings():
    return ["llama3"]

def count(encoding, text):
    calls.append((encoding, text))
    return 7 * len(text.split())
"""

PROGRAM = """
import warnings
warnings.simplefilter("error")
import cupel
import sys
assert "cupel_vocabularies" not in sys.modules, "imported before it is needed"
assert cupel.count("one two three", encoding="llama3") == 21
assert cupel.count("one two", model="llama-3.3-70b") == 14
fitted = cupel.fit([{"role": "user", "content": "a b c d"}], "1k", model="llama3.1")
assert fitted.tokens_after >= 28, fitted.tokens_after
import cupel_vocabularies
assert ("llama3", "one two three") in cupel_vocabularies.calls
try:
    cupel.count("hello", encoding="qwen2")
except ValueError as error:
    assert "qwen2 is missing" in str(error), error
else:
    raise AssertionError("the package has no qwen2")
"""


def test_the_package_counts_when_one_of_its_encodings_is_needed(tmp_path: Path) -> None:
    folder = tmp_path / "cupel_vocabularies"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    program = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
