"""OpenTelemetry spans of ``fit`` and ``select``. Needs ``cupel-context[otel]``.

Each call has a span ``cupel.pipeline`` with one span per stage below it: ``cupel.stage.classify``,
``score``, ``deduplicate``, ``slice`` and ``place``. Their attributes and events are those of the
Rust crate ``cupel-otel``. Texts of messages and items are never written.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Literal

from opentelemetry import trace

from cupel import _cupel
from cupel._errors import CupelError

__all__ = ["instrument", "uninstrument"]

Verbosity = Literal["StageOnly", "StageAndExclusions", "Full"]

_ROOT, _ERROR_TYPE = _cupel.span_names()


def instrument(
    verbosity: Verbosity = "StageOnly",
    *,
    tracer_provider: trace.TracerProvider | None = None,
) -> None:
    """Writes spans from now on, for all calls of this process, adapters included.

    Args:
        verbosity: ``StageOnly`` writes six spans per call, with the number of items in and out of
            each stage; for production. ``StageAndExclusions`` adds an event per excluded item, with
            the reason, and ``Full`` one per item of the window, with its score.
        tracer_provider: Where the spans go. Default: the global provider.

    >>> import cupel
    >>> from cupel.otel import instrument, uninstrument
    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    >>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    >>> exporter, provider = InMemorySpanExporter(), TracerProvider()
    >>> provider.add_span_processor(SimpleSpanProcessor(exporter))
    >>> instrument(tracer_provider=provider)
    >>> fitted = cupel.fit([{"role": "user", "content": "What is 2 + 2?"}], 100)
    >>> exporter.get_finished_spans()[-1].name
    'cupel.pipeline'
    >>> uninstrument()
    """
    tracer = trace.get_tracer("cupel", _cupel.__version__, tracer_provider)
    _cupel.set_span_writer(_Writer(tracer), verbosity)


def uninstrument() -> None:
    """Writes no more spans.

    >>> from cupel.otel import uninstrument
    >>> uninstrument()
    """
    _cupel.set_span_writer(None, "StageOnly")


class _Writer:
    """Writes the spans that the extension hands over. A span is current while its call lasts."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    def start(self) -> tuple[trace.Span, AbstractContextManager[Any]]:
        span = self._tracer.start_span(_ROOT)
        current = trace.use_span(span, record_exception=False, set_status_on_exception=False)
        current.__enter__()
        return span, current

    def finish(
        self,
        started: tuple[trace.Span, AbstractContextManager[Any]],
        spans: list[tuple[str, int, int, dict[str, Any], list[tuple[str, int, dict[str, Any]]]]],
        error: BaseException | None,
    ) -> None:
        root, current = started
        current.__exit__(None, None, None)
        context = trace.set_span_in_context(root)
        if root.is_recording():
            for name, start, end, attributes, events in spans:
                if name == _ROOT:
                    root.set_attributes(attributes)
                    continue
                span = self._tracer.start_span(
                    name, context, start_time=start, attributes=attributes
                )
                for event, time, fields in events:
                    span.add_event(event, fields, time)
                span.end(end)
            if error is not None:
                root.set_attribute(_ERROR_TYPE, _type_of(error))
                root.set_status(trace.Status(trace.StatusCode.ERROR, _description(error)))
        root.end()


def _type_of(error: BaseException) -> str:
    code = error.code if isinstance(error, CupelError) else None
    return code or type(error).__qualname__


def _description(error: BaseException) -> str | None:
    # The text of another exception, such as one of a summarizer, may quote a message.
    return error.message if isinstance(error, CupelError) else None
