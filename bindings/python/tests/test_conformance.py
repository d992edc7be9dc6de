"""The conformance suite over the package."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from command import run

CHANNELS = "scores,selection,shortfalls,order,window,report,events,overflow"


@pytest.mark.parametrize("mode", [[], ["--wrapped"]], ids=["built-in", "callables"])
def test_all_vectors_pass_on_all_channels(mode: list[str]) -> None:
    program = str(Path(__file__).with_name("answer.py"))
    arguments = ["--supports", CHANNELS, "--exec", sys.executable, program, *mode]
    ran = run("--json", "conform", *arguments)
    assert ran.stdout, ran.stderr
    answer = json.loads(ran.stdout)
    problems = [failure["problem"] for failure in answer["failures"]]
    assert not problems, "\n".join(problems[:20])
    for level, counts in answer["levels"].items():
        assert counts["failed"] == counts["unsupported"] == 0, (level, counts)
    # The package passes as many cases on each channel as the engine does.
    engine = json.loads(run("--json", "conform").stdout)
    assert answer["levels"] == engine["levels"]
    assert answer["channels"] == engine["channels"]
    assert answer["claim"].endswith("Cupel Fully Conformant")
    assert ran.returncode == 0
