"""`cupel.otel` with the real SDK: the spans of `fit` and `select`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import cupel
from command import ROOT
from cupel import otel
from cupel._adapter import Adapter
from strategies import Json

SESSION: Json = json.loads((ROOT / "examples/agent-session.json").read_text(encoding="utf-8"))
ITEMS = [
    {"content": "new", "tokens": 30, "timestamp": "2026-01-02T00:00:00Z", "kind": "Memory"},
    {"content": "old", "tokens": 60, "timestamp": "2026-01-01T00:00:00Z"},
    {"content": "old", "tokens": 60, "timestamp": "2026-01-01T00:00:00Z"},
]
POLICY = cupel.Policy("recency", "rank")
STAGES = ["classify", "score", "deduplicate", "slice", "place"]


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    yield exporter
    otel.uninstrument()


def provider_of(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def finished(exporter: InMemorySpanExporter) -> tuple[list[ReadableSpan], ReadableSpan]:
    """Returns the spans of the stages and the root span, and forgets them."""
    *stages, root = exporter.get_finished_spans()
    exporter.clear()
    return stages, root


def test_a_selection_has_a_span_per_stage(exporter: InMemorySpanExporter) -> None:
    otel.instrument(tracer_provider=provider_of(exporter))
    selection = cupel.select(ITEMS, 50, POLICY)
    assert selection.indices == [0]
    stages, root = finished(exporter)
    assert root.name == "cupel.pipeline"
    assert attributes(root) == {
        "cupel.budget.max_tokens": 50,
        "cupel.verbosity": "StageOnly",
        "gen_ai.conversation.compacted": True,
        "cupel.tokens.before": 150,
        "cupel.tokens.after": 30,
    }
    assert [span.name for span in stages] == [f"cupel.stage.{name}" for name in STAGES]
    counts = [(3, 3), (3, 3), (3, 2), (2, 1), (1, 1)]
    for span, name, (before, after) in zip(stages, STAGES, counts, strict=True):
        assert attributes(span) == {
            "cupel.stage.name": name,
            "cupel.stage.item_count_in": before,
            "cupel.stage.item_count_out": after,
        }
        assert span.parent == root.context and not span.events
        times = (root.start_time, span.start_time, span.end_time, root.end_time)
        assert None not in times and list(times) == sorted(times)  # type: ignore[type-var]
    scope = root.instrumentation_scope
    assert scope and (scope.name, scope.version) == ("cupel", cupel.__version__)


def test_events_say_why_items_are_out_and_in(exporter: InMemorySpanExporter) -> None:
    otel.instrument("Full", tracer_provider=provider_of(exporter))
    cupel.select(ITEMS, 50, POLICY)
    stages, _ = finished(exporter)
    events = {
        span.name: [(it.name, dict(it.attributes or {})) for it in span.events] for span in stages
    }
    out = {"cupel.exclusion.item_kind": "Message", "cupel.exclusion.item_tokens": 60}
    assert events == {
        "cupel.stage.classify": [],
        "cupel.stage.score": [],
        "cupel.stage.deduplicate": [
            ("cupel.exclusion", {"cupel.exclusion.reason": "Deduplicated", **out})
        ],
        "cupel.stage.slice": [
            ("cupel.exclusion", {"cupel.exclusion.reason": "BudgetExceeded", **out})
        ],
        "cupel.stage.place": [
            (
                "cupel.item.included",
                {"cupel.item.kind": "Memory", "cupel.item.tokens": 30, "cupel.item.score": 1.0},
            )
        ],
    }
    assert attributes(stages[2])["cupel.exclusion.count"] == 1


@pytest.mark.parametrize("remembers", [False, True])
def test_a_fit_has_the_tokens_of_its_window(
    exporter: InMemorySpanExporter, remembers: bool
) -> None:
    otel.instrument("StageAndExclusions", tracer_provider=provider_of(exporter))
    fitted = cupel.Fitter("2k").fit(SESSION) if remembers else cupel.fit(SESSION, "2k")
    stages, root = finished(exporter)
    assert attributes(root) == {
        "cupel.budget.max_tokens": 2_000,
        "cupel.verbosity": "StageAndExclusions",
        "gen_ai.conversation.compacted": True,
        "cupel.tokens.before": fitted.tokens_before,
        "cupel.tokens.after": fitted.tokens_after,
    }
    assert [span.name for span in stages] == [f"cupel.stage.{name}" for name in STAGES]
    reasons = [
        str((event.attributes or {})["cupel.exclusion.reason"])
        for span in stages
        for event in span.events
    ]
    assert sorted(reasons) == sorted(entry["reason"]["reason"] for entry in fitted.dropped)
    for span in stages:
        found = attributes(span)
        lost = found["cupel.stage.item_count_in"] - found["cupel.stage.item_count_out"]
        assert found.get("cupel.exclusion.count", 0) == lost
    # A chat that fits is not compacted.
    cupel.fit(SESSION, "1M")
    assert "gen_ai.conversation.compacted" not in attributes(finished(exporter)[1])


def test_adapters_write_spans(exporter: InMemorySpanExporter) -> None:
    otel.instrument(tracer_provider=provider_of(exporter))
    Adapter("Own", "2k", {}).fit(SESSION["messages"], shape="openai")
    assert finished(exporter)[1].name == "cupel.pipeline"


def test_the_span_of_a_failed_call_has_its_error(exporter: InMemorySpanExporter) -> None:
    otel.instrument(tracer_provider=provider_of(exporter))
    with pytest.raises(cupel.OverBudgetError) as caught:
        cupel.select([{"content": "a", "tokens": 73, "pinned": True}], 50)
    stages, root = finished(exporter)
    assert root.status.status_code is trace.StatusCode.ERROR
    assert root.status.description == caught.value.message
    assert attributes(root)["error.type"] == "PinnedExceedsBudget" == caught.value.code
    assert stages == []
    with pytest.raises(ZeroDivisionError):
        cupel.select(ITEMS, 50, cupel.Policy(lambda items: [1 / 0], "rank"))
    stages, root = finished(exporter)
    # The stages before the error.
    assert [span.name for span in stages] == ["cupel.stage.classify"]
    assert attributes(root)["error.type"] == "ZeroDivisionError"

    def fail(messages: list[Any]) -> str:
        raise LookupError("the text of a message")

    with pytest.raises(LookupError):
        cupel.fit(SESSION, "2k", summarize=fail)
    _, root = finished(exporter)
    assert attributes(root)["error.type"] == "LookupError"
    assert root.status.description is None and not root.events


def test_the_span_is_below_that_of_the_caller_and_above_those_of_its_functions(
    exporter: InMemorySpanExporter,
) -> None:
    provider = provider_of(exporter)
    otel.instrument(tracer_provider=provider)
    tracer = provider.get_tracer("test")

    def summarize(messages: list[Any]) -> str:
        with tracer.start_as_current_span("model"):
            return "Hm."

    with tracer.start_as_current_span("request"):
        cupel.fit(SESSION, "2k", summarize=summarize)
        assert trace.get_current_span().name == "request"  # type: ignore[attr-defined]
    spans = {span.name: span for span in exporter.get_finished_spans()}
    root = spans["cupel.pipeline"]
    assert root.parent == spans["request"].context
    assert spans["model"].parent == root.context


def test_texts_are_not_written(exporter: InMemorySpanExporter) -> None:
    otel.instrument("Full", tracer_provider=provider_of(exporter))
    secret = "the secret word"
    cupel.fit([{"role": "user", "content": f"{secret} {n} " * 9} for n in range(30)], 300)
    cupel.select([{"content": secret, "tokens": 5}], 10)
    written = [span.to_json() for span in exporter.get_finished_spans()]
    assert written and not any(secret in text for text in written)


def test_spans_end_with_uninstrument(exporter: InMemorySpanExporter) -> None:
    cupel.select(ITEMS, 50, POLICY)
    otel.instrument(tracer_provider=provider_of(exporter))
    otel.uninstrument()
    cupel.select(ITEMS, 50, POLICY)
    assert exporter.get_finished_spans() == ()


def test_a_sampler_may_drop_them() -> None:
    otel.instrument("Full", tracer_provider=TracerProvider(sampler=ALWAYS_OFF))
    try:
        assert cupel.select(ITEMS, 50, POLICY).indices == [0]
    finally:
        otel.uninstrument()


def test_a_report_is_the_same_with_spans(exporter: InMemorySpanExporter) -> None:
    plain = cupel.select(ITEMS, 50, POLICY), cupel.fit(SESSION, "2k")
    traced = cupel.select(ITEMS, 50, POLICY, trace=True).report.to_dict()["report"]["events"]
    otel.instrument("Full", tracer_provider=provider_of(exporter))
    assert cupel.select(ITEMS, 50, POLICY).report.to_dict() == plain[0].report.to_dict()
    assert cupel.fit(SESSION, "2k").to_dict() == plain[1].to_dict()
    events = cupel.select(ITEMS, 50, POLICY, trace=True).report.to_dict()["report"]["events"]
    assert [it["stage"] for it in events] == [it["stage"] for it in traced]


def test_an_unknown_verbosity_is_an_error() -> None:
    with pytest.raises(cupel.InvalidInputError, match="expected one of StageOnly, "):
        otel.instrument("All")  # type: ignore[arg-type]


def test_names_are_those_that_the_crate_documents(exporter: InMemorySpanExporter) -> None:
    """Every name of the table in the documentation of `cupel-otel` is written, and no other."""
    source = (ROOT / "crates/cupel-otel/src/lib.rs").read_text(encoding="utf-8")
    table = [line for line in source.splitlines() if line.startswith("//! | ")]
    name = r"((?:cupel|gen_ai|error)\.[a-z_.]+)"
    documented = {it for line in table for it in re.findall(rf"\| `{name}` \|", line)}
    documented |= {it for line in table for it in re.findall(rf"event `{name}`", line)}
    otel.instrument("Full", tracer_provider=provider_of(exporter))
    cupel.select(ITEMS, 50, POLICY)
    long = {"content": "a b c", "tokens": 30, "views": [{"content": "a", "tokens": 5}]}
    steps = [{"type": "shorten", "kind": "Message", "levels": [5]}, {"type": "drop"}]
    slicer = {"type": "ladder", "steps": steps}
    cupel.select([long], 10, {"scorer": {"type": "recency"}, "slicer": slicer})
    with pytest.raises(cupel.OverBudgetError):
        cupel.select([{"content": "a", "tokens": 73, "pinned": True}], 50)
    written: set[str] = set()
    for span in exporter.get_finished_spans():
        written |= attributes(span).keys()
        for event in span.events:
            written |= {event.name, *(event.attributes or {})}
    assert written == documented and len(documented) > 15
