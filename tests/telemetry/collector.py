"""A collector of OTLP over HTTP on loopback: it decodes what arrives and keeps it."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class GotSpan(NamedTuple):
    name: str
    kind: int
    trace: bytes
    id: bytes
    parent: bytes
    seconds: float
    started_at: float
    attributes: dict[str, Any]
    is_error: bool


class Collector:
    """What has arrived: spans, the latest histogram points by metric, schema addresses, and whole bodies."""

    def __init__(self) -> None:
        self.spans: list[GotSpan] = []
        self.points: dict[str, list[tuple[dict[str, Any], int, float]]] = {}
        self.bounds: dict[str, list[float]] = {}
        self.schemas: set[str] = set()
        self.resources: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.endpoint = ""

    def named(self, start: str) -> list[GotSpan]:
        return [span for span in self.spans if span.name.startswith(start)]

    def total(self, metric: str, name: str = "gen_ai.operation.name", value: str = "chat") -> tuple[int, float]:
        """The count and the sum of a metric's points that have this attribute."""
        points = self.points.get(metric, [])
        fitting = [(count, total) for attributes, count, total in points if attributes.get(name) == value]
        return sum(count for count, _ in fitting), sum(total for _, total in fitting)

    def take(self, path: str, body: bytes) -> None:
        self.bodies.append(body)
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(_values(resource.resource.attributes))
                for scope in resource.scope_spans:
                    self.schemas.add(scope.schema_url)
                    self.spans += map(_span, scope.spans)
        elif path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    self.schemas.add(scope.schema_url)
                    for metric in scope.metrics:
                        points = metric.histogram.data_points
                        self.points[metric.name] = [(_values(p.attributes), p.count, p.sum) for p in points]
                        self.bounds[metric.name] = list(points[0].explicit_bounds)


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def _span(span: Any) -> GotSpan:
    seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
    return GotSpan(
        span.name, span.kind, span.trace_id, span.span_id, span.parent_span_id, seconds,
        span.start_time_unix_nano / 1e9, _values(span.attributes), span.status.code == 2,
    )  # fmt: skip


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(self.path, gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    collector.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
