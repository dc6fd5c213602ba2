import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from headrace import Model, QuestionFreeText, ScenarioList, Survey
from headrace.telemetry import export_thread
from headrace.telemetry.conventions import captures_content, model_attributes, request_attributes
from headrace.telemetry.export_thread import ExportThread
from headrace.telemetry.otel_export import OtelExport
from tests.telemetry.collector import Collector

OWN_PROVIDER = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
from headrace import Model, QuestionFreeText, Survey
job = Survey([QuestionFreeText(question_name="q", question_text="Well?")]).by(Model("test", canned_response="x"))
job.run(sys.argv[1], telemetry=True)
print(sorted(span.name for span in kept.get_finished_spans()))
print([name for name in sys.modules if name.endswith(("trace_exporter", "metric_exporter"))])
"""


def job(count: int = 50):
    survey = Survey([QuestionFreeText(question_name="q", question_text="About {{ scenario.n }}?")])
    return survey.by(ScenarioList.from_list("n", range(count))).by(Model("test", canned_response="x"))


def test_a_collector_that_refuses_connections_costs_a_run_nothing_but_its_spans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{unused.getsockname()[1]}")
        started_s = time.monotonic()
        results = job().run(tmp_path / "a.run", telemetry=True)
        assert time.monotonic() - started_s < 20
    assert (len(results), results.stats().failed) == (50, 0)
    assert "opentelemetry" not in capfd.readouterr().err


def test_a_collector_that_never_answers_delays_the_end_by_a_few_seconds_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
        program = (
            "import sys; from tests.telemetry.test_export_limits import job; job().run(sys.argv[1], telemetry=True)"
        )
        started_s = time.monotonic()
        subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.run")], check=True, timeout=50)
        assert time.monotonic() - started_s < 30
    assert job().run(tmp_path / "a.run").stats().reused == 50


def test_the_program_s_own_provider_is_used_where_it_has_set_one(tmp_path: Path):
    command = [sys.executable, "-c", OWN_PROVIDER, str(tmp_path / "a.run")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (ran.stdout.splitlines(), ran.stderr) == (["['chat test', 'interview']", "[]"], "")


def test_what_does_not_fit_into_the_queue_is_dropped_and_counted(collector: Collector):
    begun, go_on = threading.Event(), threading.Event()

    def blocks(_export: object) -> None:
        begun.set()
        go_on.wait(30)

    thread = ExportThread()
    thread.offer(blocks)
    assert begun.wait(30)
    for _ in range(10):
        thread.offer(lambda _: None, count=1_000)
    go_on.set()
    thread.close()
    assert thread.dropped == 6_000


def test_an_export_that_fails_does_not_end_the_others(collector: Collector, caplog: pytest.LogCaptureFixture):
    thread = ExportThread()
    thread.offer(lambda _: int("none"))
    thread.offer(lambda export: export.end(export.begin("after", 1.0, {}), 2.0))
    thread.close(within_s=30)
    assert [span.name for span in collector.spans] == ["after"]
    assert "could not be exported" in caplog.text


def loading_until(loaded: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a busy machine: OpenTelemetry takes until then to load."""

    def load() -> OtelExport:
        assert loaded.wait(30)
        return OtelExport()

    monkeypatch.setattr(export_thread, "OtelExport", load)


def test_nothing_is_dropped_where_opentelemetry_takes_longer_to_load_than_the_collector_gets(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
):
    loaded = threading.Event()
    loading_until(loaded, monkeypatch)
    monkeypatch.setattr(export_thread, "_SET_UP_WITHIN_S", 30.0)
    thread = ExportThread()
    thread.offer(lambda export: export.end(export.begin("late", 1.0, {}), 2.0))
    later = threading.Timer(1.5, loaded.set)
    later.start()
    thread.close(within_s=1.0)
    later.join()
    assert ([span.name for span in collector.spans], thread.dropped) == (["late"], 0)


def test_an_export_given_up_before_it_was_set_up_ends_without_waiting_for_the_collector(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    loaded, ended, done = threading.Event(), threading.Event(), list[str]()
    loading_until(loaded, monkeypatch)
    monkeypatch.setattr(export_thread, "_SET_UP_WITHIN_S", 0.1)
    monkeypatch.setattr(OtelExport, "abandon", lambda _: done.append("abandoned"))
    sent = OtelExport.close
    monkeypatch.setattr(OtelExport, "close", lambda export: (done.append("closed"), sent(export), ended.set()))
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    thread = ExportThread()
    thread.offer(lambda _: None)
    thread.close()
    loaded.set()
    assert ended.wait(30)
    assert (done, thread.dropped) == (["abandoned", "closed"], 1)
    assert "did not load within 0.1 s" in caplog.text


def test_a_variable_that_makes_no_sense_is_told_and_fails_no_run(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "0")
    assert len(job().run(tmp_path / "a.run", telemetry=True)) == 50
    assert "could not be set up" in caplog.text
    assert "50 interviews" in caplog.text


def test_attributes_hold_neither_keys_nor_what_an_address_hides():
    model = Model("gpt-4o", temperature=0.2)  # which would refuse these
    model.parameters |= {"api_key": "hidden", "base_url": "https://user:hidden@models.example.com:8443/v1?key=hidden"}
    attributes = model_attributes(model) | request_attributes(model)
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.request.temperature": 0.2,
        "server.address": "models.example.com",
        "server.port": 8443,
    }
    assert model_attributes(Model("gemini-2.5-pro"))["gen_ai.provider.name"] == "gcp.gemini"
    assert model_attributes(Model("claude-haiku-4-5"))["server.port"] == 443


@pytest.mark.parametrize(
    ("written", "captured"),
    [("", False), ("true", True), ("SPAN_ONLY", True), ("span_and_event", True), ("EVENT_ONLY", False), ("no", False)],
)
def test_content_is_captured_as_the_convention_s_variable_says(written: str, captured: bool):
    assert captures_content({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": written}) is captured
