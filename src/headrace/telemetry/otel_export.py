"""`OtelExport`: spans and metrics through OpenTelemetry, and the only module that loads it.

The program's own providers are used where it has set any; they are its own to flush and to end. Otherwise spans and
metrics go over OTLP/HTTP to where the standard OTEL_* variables say. Covers: providers, the two histograms, spans with
given times. Does not cover: what is exported (interview_spans, agent_run_spans), when (export_thread).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.errors import MissingExtra
from headrace.telemetry.conventions import (
    DURATION_BUCKETS_S,
    SCHEMA_URL,
    TOKEN_BUCKETS,
    Attributes,
    instructions,
    messages,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import Span, TracerProvider

_EXTRA = "opentelemetry-exporter-otlp-proto-http"  # which brings the rest
_NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model, with all the calls that it took. `model` are the attributes of metrics, `more` those that
    the span has beside them; `error` is a short word, empty where there was an answer. Texts are empty where content is
    not exported.
    """

    model: Attributes
    more: Attributes
    started_at: float
    took_s: float
    input_tokens: int
    output_tokens: int
    error: str = ""
    system: str = ""
    prompt: str = ""
    answer: str = ""


def check_installed() -> None:
    """Raise what to install where telemetry is asked for and cannot be had."""
    try:
        is_there = all(find_spec(name) is not None for name in _NEEDED)
    except ModuleNotFoundError:  # a package above it is missing
        is_there = False
    if not is_there:
        raise MissingExtra(_EXTRA)


class OtelExport:
    """Made and used on one thread, which loads OpenTelemetry here; only `abandon` is for others."""

    def __init__(self) -> None:
        from opentelemetry import metrics, trace
        from opentelemetry.context import Context

        self._trace = trace
        self._nowhere = Context()
        self._shutdowns: list[Callable[[], object]] = []
        self._interrupts: list[Callable[[], object]] = []
        tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
        if _is_unset(tracers) and _is_unset(meters):
            # Without handlers of its own, a library's warnings would go to standard error, a line a second.
            logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
            resource = _resource()
            tracers, meters = self._own_tracers(resource, tracers), self._own_meters(resource, meters)
        self._tracer = tracers.get_tracer("headrace", _version(), schema_url=SCHEMA_URL)
        meter = meters.get_meter("headrace", _version(), schema_url=SCHEMA_URL)
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS_S,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKEN_BUCKETS,
        )

    def begin(
        self,
        name: str,
        started_at: float,
        attributes: Attributes,
        parent: Span | None = None,
        *,
        is_client: bool = False,
    ) -> Span:
        kind = self._trace.SpanKind.CLIENT if is_client else self._trace.SpanKind.INTERNAL
        return self._tracer.start_span(
            name, self._inside(parent), kind=kind, attributes=attributes, start_time=_ns(started_at)
        )

    def end(self, span: Span, ended_at: float, error: str = "") -> None:
        if error:
            span.set_attribute("error.type", error)
            span.set_status(self._trace.StatusCode.ERROR)
        span.end(_ns(ended_at))

    def chat(self, call: ModelCall, parent: Span | None) -> None:
        """One model call: its span and its metrics."""
        model = call.model
        used = {"gen_ai.usage.input_tokens": call.input_tokens, "gen_ai.usage.output_tokens": call.output_tokens}
        attributes = {**model, **call.more, **used, **_content(call)}
        name = f"chat {model['gen_ai.request.model']}"
        span = self.begin(name, call.started_at, attributes, parent, is_client=True)
        self.end(span, call.started_at + call.took_s, call.error)
        inside = self._inside(span)  # exemplars name the span
        failed = {"error.type": call.error} if call.error else {}
        self._duration.record(call.took_s, {**model, **failed}, inside)
        if call.input_tokens:
            self._tokens.record(call.input_tokens, {**model, "gen_ai.token.type": "input"}, inside)
        if call.output_tokens:
            self._tokens.record(call.output_tokens, {**model, "gen_ai.token.type": "output"}, inside)

    def close(self) -> None:
        """Send what is left and end what was made here. It takes as long as the collector does: see `abandon`."""
        for shutdown in self._shutdowns:
            shutdown()

    def abandon(self) -> None:
        """Let a `close` that waits for the collector end now, from another thread: what is not sent is lost."""
        for interrupt in self._interrupts:
            interrupt()

    def _inside(self, parent: Span | None) -> Context:
        return self._nowhere if parent is None else self._trace.set_span_in_context(parent, self._nowhere)

    def _own_tracers(self, resource: Resource, unset: TracerProvider) -> TracerProvider:
        if os.environ.get("OTEL_TRACES_EXPORTER") == "none":
            return unset
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider as SdkTracers
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        exporter = OTLPSpanExporter()
        provider = SdkTracers(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        self._shutdowns.append(provider.shutdown)
        self._interrupts.append(exporter.shutdown)
        return provider

    def _own_meters(self, resource: Resource, unset: MeterProvider) -> MeterProvider:
        if os.environ.get("OTEL_METRICS_EXPORTER") == "none":
            return unset
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider as SdkMeters
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        exporter = OTLPMetricExporter()
        provider = SdkMeters([PeriodicExportingMetricReader(exporter)], resource, shutdown_on_exit=False)
        self._shutdowns.append(provider.shutdown)
        self._interrupts.append(partial(exporter.shutdown, 0))  # pyright: ignore[reportUnknownMemberType]
        return provider


def _content(call: ModelCall) -> Attributes:
    content: Attributes = {}
    if call.system:
        content["gen_ai.system_instructions"] = instructions(call.system)
    if call.prompt:
        content["gen_ai.input.messages"] = messages("user", call.prompt)
    if call.answer:
        content["gen_ai.output.messages"] = messages("assistant", call.answer, finish_reason="stop")
    return content


def _resource() -> Resource:
    """What the OTEL_* variables say of this program; `headrace` where they give it no name."""
    from opentelemetry.sdk.resources import Resource

    is_named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create(None if is_named else {"service.name": "headrace"})


def _is_unset(provider: Any) -> bool:
    """Whether this is the stand-in that OpenTelemetry has until a program sets a provider."""
    return type(provider).__name__.lstrip("_").startswith("Proxy")


def _version() -> str:
    try:
        return version("headrace")
    except PackageNotFoundError:  # run from its source
        return ""


def _ns(at: float) -> int:
    return int(at * 1e9)
