"""The functions that answer what the command answers with ``--json``."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cupel
from command import ROOT, run

FILE = "examples/request.json"
REQUEST = json.loads((ROOT / FILE).read_text(encoding="utf-8"))
CHAT_FILE = "examples/agent-session.json"
CHAT = json.loads((ROOT / CHAT_FILE).read_text(encoding="utf-8"))


def answer(*arguments: str) -> Any:
    ran = run("--json", *arguments)
    assert ran.stdout, ran.stderr
    return json.loads(ran.stdout)


def test_sweep_answers_as_the_command_does() -> None:
    assert cupel.sweep(REQUEST) == answer("sweep", FILE)
    assert cupel.sweep(CHAT) == answer("sweep", CHAT_FILE)


def test_min_budget_answers_as_the_command_does() -> None:
    assert cupel.min_budget(REQUEST) == answer("min-budget", FILE)


def test_compare_answers_as_the_command_does() -> None:
    expected = answer(
        "compare", CHAT_FILE, "--budget", "2k", "--policy", "agent", "--policy", "newest"
    )
    assert cupel.compare(CHAT, "2k", policies=["agent", "newest"]) == expected


def test_explain_answers_as_the_command_does() -> None:
    assert cupel.explain(REQUEST) == answer("explain", FILE)
    assert cupel.explain(CHAT, "2k") == answer("explain", CHAT_FILE, "--budget", "2k")
    assert cupel.explain(REQUEST, item=3) == answer("explain", FILE, "--item", "3")


def test_search_answers_as_the_command_does() -> None:
    query = "Which month was wrong?"
    assert cupel.search(CHAT, query) == answer("search", CHAT_FILE, query)


def test_evaluate_answers_as_the_command_does() -> None:
    expected = answer(
        "eval", "examples/questions.jsonl", "--budget", "200", "--policy", "memory,chat"
    )
    questions = (ROOT / "examples/questions.jsonl").read_text(encoding="utf-8").splitlines()
    found = cupel.evaluate(
        [json.loads(line) for line in questions], policies=["memory", "chat"], budgets=[200]
    )
    assert found["results"] == expected["results"]


def test_count_answers_as_the_command_does() -> None:
    total = answer("count", CHAT_FILE)["total"]
    assert cupel.count(CHAT) == total["o200k_base"]
    assert cupel.count("hello world") == 2
    assert cupel.count("hello world", encoding="cl100k_base") == 2


def test_every_text_is_counted_whole() -> None:
    assert cupel.count("") == 0
    # Three spaces are one token of cl100k_base, the encoding of gpt-4.
    assert cupel.count("   ", model="gpt-4") == 1
    assert cupel.count("\ufeffx") > cupel.count("x") == 1
    for data in ("a", CHAT):
        with pytest.raises(cupel.InvalidInputError, match="model and encoding"):
            cupel.count(data, model="gpt-4", encoding="o200k")
        with pytest.raises(cupel.InvalidInputError, match="heuristic; did you mean o200k_base"):
            cupel.count(data, encoding="o200")  # type: ignore[arg-type]


def test_presets_and_models_are_those_of_the_command() -> None:
    assert cupel.presets() == [policy["name"] for policy in answer("policy", "list")]
    # The command counts exactly what is an estimate here without the package of vocabularies.
    same = [{**model, "estimated": None} for model in answer("models")]
    assert [{**model, "estimated": None} for model in cupel.models()] == same


@pytest.mark.parametrize(
    "arguments", [["-V"], ["fit", CHAT_FILE, "--budget", "2k"], ["fit", "missing"]], ids=str
)
def test_the_module_is_the_command(arguments: list[str]) -> None:
    import subprocess
    import sys

    ran = subprocess.run(
        [sys.executable, "-m", "cupel", *arguments], capture_output=True, text=True, cwd=ROOT
    )
    expected = run(*arguments)
    assert ran.returncode == expected.returncode
    assert ran.stdout == expected.stdout
    assert ran.stderr == expected.stderr


def test_evaluate_takes_policies_of_any_form() -> None:
    questions = (ROOT / "examples/questions.jsonl").read_text(encoding="utf-8").splitlines()
    transcripts = [json.loads(line) for line in questions]
    preset = cupel.Policy.preset("memory")
    forms: list[Any] = ["memory", preset, preset.to_dict()]
    found = cupel.evaluate(transcripts, policies=forms[:1], budgets=[200])["results"][0]
    for form in forms[1:]:
        other = cupel.evaluate(transcripts, policies=[form], budgets=[200])["results"][0]
        assert {**other, "policy": "memory"} == found
    with pytest.raises(cupel.InvalidInputError, match="no transcripts"):
        cupel.evaluate([], policies=["memory"], budgets=[200])


def test_evaluate_runs_strategies_in_python() -> None:
    questions = (ROOT / "examples/questions.jsonl").read_text(encoding="utf-8").splitlines()
    transcripts = [json.loads(line) for line in questions]
    built_in = {"scorer": {"type": "recency"}, "slicer": {"type": "greedy"}}

    def recency(items: list[cupel.Item]) -> list[float]:
        return cupel.Scorer.from_dict("recency")(items)

    found = cupel.evaluate(
        transcripts, policies=[built_in, cupel.Policy(recency, "greedy")], budgets=[100, 200]
    )
    rows: dict[str, list[Any]] = {}
    for row in found["results"]:
        if row["minus"] is None:
            rows.setdefault(row["policy"], []).append({**row, "policy": ""})
    assert rows["policy 1"] == rows["policy 2"]
    assert {row["value"] for row in rows["policy 1"]} - {0.0}


def test_what_a_strategy_raises_ends_evaluate() -> None:
    questions = (ROOT / "examples/questions.jsonl").read_text(encoding="utf-8").splitlines()

    def fail(items: list[cupel.Item]) -> list[float]:
        raise LookupError(f"{len(items) > 0}")

    with pytest.raises(LookupError, match="True"):
        cupel.evaluate(
            [json.loads(line) for line in questions],
            policies=["memory", cupel.Policy(fail)],
            budgets=[200],
        )


def test_an_error_in_a_transcript_names_its_place() -> None:
    item: dict[str, Any] = {"content": "a", "tokens": 1}
    question = {"query": "a", "evidence": [0]}
    faults: list[tuple[dict[str, Any], str, str]] = [
        ({"items": [item]}, "transcripts[1]", "missing `questions`"),
        (
            {"items": [item], "questions": [{"query": "a", "evidence": [1]}]},
            "transcripts[1].questions[0].evidence[0]",
            "1 is out of range: positions start at 0, the last is 0",
        ),
        (
            {"items": [item, {"content": "a", "tokens": "1"}], "questions": [question]},
            "transcripts[1].items[1].tokens",
            "expected",
        ),
    ]
    for fault, path, message in faults:
        with pytest.raises(cupel.InvalidInputError) as raised:
            cupel.evaluate(
                [{"items": [item], "questions": [question]}, fault],
                policies=["memory"],
                budgets=[200],
            )
        assert raised.value.path == path
        assert raised.value.message.startswith(message)
    with pytest.raises(cupel.OverBudgetError, match=r"^transcripts\[0\]: rag: pinned") as over:
        cupel.evaluate(
            [{"items": [{**item, "tokens": 300, "pinned": True}], "questions": [question]}],
            policies=["rag"],
            budgets=[200],
        )
    assert over.value.code == "PinnedExceedsBudget"


def test_lists_of_policies_and_budgets_are_not_split(tmp_path: Path) -> None:
    questions = (ROOT / "examples/questions.jsonl").read_text(encoding="utf-8").splitlines()
    transcripts = [json.loads(line) for line in questions]
    path = tmp_path / "a,b.json"
    path.write_text(json.dumps(cupel.Policy.preset("memory").to_dict()))
    forms: list[Any] = ["memory", path, str(path), cupel.Policy.from_file(path)]
    found: dict[str, list[Any]] = {}
    for row in cupel.evaluate(transcripts, policies=forms, budgets=["200"])["results"]:
        if row["minus"] is None:
            found.setdefault(row["policy"], []).append({**row, "policy": ""})
    for name in (str(path), f"{path} (3)", f"{path} (4)"):
        assert found[name] == found["memory"]
    with pytest.raises(cupel.InvalidInputError, match="budgets: invalid budget `1,500`: remove"):
        cupel.evaluate(transcripts, policies=["memory"], budgets=["1,500"])
    one: Any = "memory"
    with pytest.raises(cupel.InvalidInputError, match="policies: expected a list, got str"):
        cupel.compare(REQUEST, 100, policies=one)
    with pytest.raises(cupel.InvalidInputError, match="budgets: expected a list, got int"):
        cupel.evaluate(transcripts, policies=["memory"], budgets=200)  # type: ignore[arg-type]


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'html'"):
        cupel.explain(REQUEST, html="page.html")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="unexpected keyword argument 'budget'"):
        cupel.sweep(REQUEST, budget=5)  # type: ignore[call-arg]


def test_a_query_without_effect_is_a_warning() -> None:
    calls: list[Callable[[], object]] = [
        lambda: cupel.explain(REQUEST, policy="rag", query="keys"),
        lambda: cupel.explain(REQUEST, policy="rag", query="keys", item=0),
        lambda: cupel.sweep(REQUEST, policy="rag", query="keys"),
        lambda: cupel.min_budget(REQUEST, policy="rag", query="keys"),
        lambda: cupel.compare(REQUEST, policies=["rag", "chat"], query="keys"),
    ]
    for call in calls:
        with pytest.warns(cupel.CupelWarning, match="^query= has no effect: no scorer") as warned:
            call()
        assert [warning.filename for warning in warned] == [__file__]
    with pytest.warns(cupel.CupelWarning, match="recency does not read the question"):
        cupel.search(REQUEST, "keys", scorer="recency")


def test_one_policy_is_compared_with_that_of_the_request() -> None:
    expected = answer("compare", FILE, "--policy", "rag")
    assert cupel.compare(REQUEST, policies=["rag"]) == expected


def slow_request() -> dict[str, Any]:
    """Returns a request whose slicer is run at each of some 180,000 budgets."""
    slicer: dict[str, Any] = {"type": "greedy"}
    for depth in range(50):
        quotas = [{"kind": "Document", "require": depth % 7, "cap": 90}]
        slicer = {"type": "quota", "quotas": quotas, "inner": slicer}
    items = [
        {
            "content": f"passage {at}",
            "tokens": 40 + at * 37 % 101,
            "kind": "Document" if at % 3 else "Message",
            "future_relevance_hint": at * 7_919 % 1_000 / 1_000,
        }
        for at in range(2_000)
    ]
    return {"items": items, "policy": {"scorer": {"type": "reflexive"}, "slicer": slicer}}


def slow_transcripts() -> list[dict[str, Any]]:
    items = [{"content": f"passage {at} of some", "tokens": 5} for at in range(1_000)]
    questions = [{"query": f"passage {at}", "evidence": [at]} for at in range(400)]
    return [{"items": items, "questions": questions}] * 200


LONG_CALLS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "sweep": (slow_request, cupel.sweep),
    "min_budget": (slow_request, cupel.min_budget),
    "evaluate": (
        slow_transcripts,
        lambda data: cupel.evaluate(data, policies=["memory"], budgets=[1_000]),
    ),
}


@pytest.mark.parametrize("name", LONG_CALLS)
def test_ctrl_c_ends_a_long_call(name: str) -> None:
    data, call = LONG_CALLS[name]
    slow = data()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1)
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            call(slow)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # To the end each takes more than a minute.
    assert time.monotonic() - start < 30
