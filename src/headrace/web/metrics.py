"""The figures of the latest files for Prometheus, in its text format.

Labels are bounded: the latest files, each by its name and id, their models, and words of our own. Does not cover: HTTP
(web.page_server), or reading a run (web.api.run_summary).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headrace.errors import HeadraceError, QueryTimeout
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.model_counts import ModelCount, count_by_model
from headrace.store.run_file.reader import Reader
from headrace.web.api.run_list import UNREADABLE, ListedFile, listed_file
from headrace.web.api.run_summary import EndpointFigures, RunSummary, summary_of
from headrace.web.operations import READ_TIMEOUT_S
from headrace.web.shown_files import ShownFile, ShownFiles, ShownKind

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_FILES = 50
_MOST_MODELS = 50
_MOST_LETTERS = 200
_OTHERS = "others"
# From the best to the worst: of two endpoints with one name, the worse is told.
_STATES = ("open", "busy", "failing", "away", "closed")


class _MetricFamily(NamedTuple):
    name: str
    kind: str
    help: str


_RUNNING = _MetricFamily("headrace_running", "gauge", "1 while a process runs the file.")
_INTERVIEWS = _MetricFamily("headrace_interviews_total", "counter", "Interviews that have ended, by status and model.")
_PLANNED = _MetricFamily("headrace_interviews_planned", "gauge", "Interviews in the plan.")
_IN_FLIGHT = _MetricFamily("headrace_interviews_in_flight", "gauge", "Interviews that are being conducted.")
_SECONDS = _MetricFamily("headrace_run_seconds_total", "counter", "How long the runs of the file have taken.")
_BYTES = _MetricFamily("headrace_file_bytes", "gauge", "The size of the file on disk.")
_MEMORY = _MetricFamily("headrace_memory_bytes", "gauge", "Memory in use by the processes of a run.")
_BUDGET = _MetricFamily("headrace_memory_budget_bytes", "gauge", "The memory budget of a run.")
_TOKENS = _MetricFamily("headrace_tokens_total", "counter", "Tokens into the models and out of them.")
_COST = _MetricFamily("headrace_cost_dollars_total", "counter", "What was paid; absent where a price is not known.")
_CACHE_HITS = _MetricFamily("headrace_cache_hits_total", "counter", "Answers from the response cache.")
_CALLS = _MetricFamily("headrace_model_calls", "gauge", "Calls to a model in the latest run; some were told to wait.")
_STATE = _MetricFamily("headrace_endpoint_state", "gauge", "1 for the state that the endpoint of a model is in.")

_FAMILIES = (
    _RUNNING, _INTERVIEWS, _PLANNED, _IN_FLIGHT, _SECONDS, _BYTES, _MEMORY, _BUDGET, _TOKENS, _COST, _CACHE_HITS,
    _CALLS, _STATE,
)  # fmt: skip


class _MetricSample(NamedTuple):
    family: _MetricFamily
    labels: dict[str, str]
    value: float


class Metrics:
    """Keeps the counts by model of the latest files: rows are counted again only when there are more."""

    def __init__(self, files: ShownFiles) -> None:
        self._files = files
        self._kept: dict[str, tuple[int, int, list[ModelCount]]] = {}

    def text(self) -> str:
        """All figures of the latest files."""
        clock = QueryClock(READ_TIMEOUT_S)
        by_family: dict[_MetricFamily, list[str]] = {family: [] for family in _FAMILIES}
        for file in self._files.latest()[0][:MOST_FILES]:
            for sample in self._samples(file, clock):
                by_family[sample.family].append(_line(sample))
        return "".join(
            f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.kind}\n{''.join(lines)}"
            for family, lines in by_family.items()
            if lines
        )

    def _samples(self, file: ShownFile, clock: QueryClock) -> Iterator[_MetricSample]:
        labels = {"file": file.path.name, "id": file.id}
        line = listed_file(self._files, file)
        yield from _file_samples(line, labels)
        if file.kind is ShownKind.ENGINE or line.state in UNREADABLE:
            return
        try:
            run = summary_of(self._files, file)
            counts = self._counts(file, run, clock)
        except HeadraceError:
            return  # it has just gone or changed: the next time it is told again
        yield from _run_samples(run, labels)
        yield from _interview_samples(run, counts, labels)
        yield from _endpoint_samples(run.endpoints, labels)

    def _counts(self, file: ShownFile, run: RunSummary, clock: QueryClock) -> list[ModelCount]:
        """By model; those of an earlier time where counting takes too long, and none where the file keeps no rows."""
        done, failed, kept = self._kept.get(file.id, (-1, -1, list[ModelCount]()))
        if (done, failed) == (run.done, run.failed):
            return kept
        reader = Reader(file.path)
        try:
            kept = count_by_model(reader, clock)
        except QueryTimeout:
            return kept
        finally:
            reader.close()
        if len(self._kept) >= 2 * MOST_FILES:
            self._kept.clear()
        self._kept[file.id] = run.done, run.failed, kept
        return kept


def _file_samples(line: ListedFile, labels: dict[str, str]) -> Iterator[_MetricSample]:
    yield _MetricSample(_RUNNING, labels | {"kind": line.kind.value}, line.goes_on)
    yield _MetricSample(_BYTES, labels, line.size_bytes)
    if line.memory_bytes is not None and line.budget_bytes is not None:
        yield _MetricSample(_MEMORY, labels, line.memory_bytes)
        yield _MetricSample(_BUDGET, labels, line.budget_bytes)


def _run_samples(run: RunSummary, labels: dict[str, str]) -> Iterator[_MetricSample]:
    yield _MetricSample(_PLANNED, labels, run.total)
    yield _MetricSample(_SECONDS, labels, run.seconds)
    yield _MetricSample(_TOKENS, labels | {"direction": "in"}, run.input_tokens)
    yield _MetricSample(_TOKENS, labels | {"direction": "out"}, run.output_tokens)
    yield _MetricSample(_CACHE_HITS, labels, run.cache_hits)
    if run.cost is not None:
        yield _MetricSample(_COST, labels, run.cost)
    if run.live is not None:
        yield _MetricSample(_IN_FLIGHT, labels, run.live.in_flight)


def _interview_samples(run: RunSummary, counts: list[ModelCount], labels: dict[str, str]) -> Iterator[_MetricSample]:
    """What no count by model has, the counters of the file have: it belongs to some model."""
    by_model: dict[str, tuple[int, int]] = {}
    counted = sum(count.done for count in counts), sum(count.failed for count in counts)
    rest = ModelCount("unknown", max(0, run.done - counted[0]), max(0, run.failed - counted[1]))
    for count in (*counts, rest) if rest.done else counts:
        model = _model_label(count.model, by_model)
        done, failed = by_model.get(model, (0, 0))
        by_model[model] = done + count.done, failed + count.failed
    for model, (done, failed) in by_model.items():
        yield _MetricSample(_INTERVIEWS, labels | {"model": model, "status": "done"}, done - failed)
        yield _MetricSample(_INTERVIEWS, labels | {"model": model, "status": "failed"}, failed)


def _endpoint_samples(endpoints: tuple[EndpointFigures, ...], labels: dict[str, str]) -> Iterator[_MetricSample]:
    by_model: dict[str, list[EndpointFigures]] = {}
    for endpoint in endpoints:
        by_model.setdefault(_model_label(endpoint.model, by_model), []).append(endpoint)
    for model, found in by_model.items():
        named = labels | {"model": model}
        yield _MetricSample(_CALLS, named | {"result": "all"}, sum(each.calls for each in found))
        yield _MetricSample(_CALLS, named | {"result": "busy"}, sum(each.busy for each in found))
        yield _MetricSample(_CALLS, named | {"result": "failed"}, sum(each.failures for each in found))
        worst = max((each.state for each in found if each.state in _STATES), key=_STATES.index, default="open")
        yield from (_MetricSample(_STATE, named | {"state": state}, state == worst) for state in _STATES)


def _model_label(model: str, known: dict[str, tuple[int, int]] | dict[str, list[EndpointFigures]]) -> str:
    """The model's name as a label; beyond some dozen models they share one."""
    model = model[:_MOST_LETTERS]
    return model if model in known or len(known) < _MOST_MODELS else _OTHERS


def _line(sample: _MetricSample) -> str:
    labels = ",".join(f'{name}="{_escaped(text)}"' for name, text in sample.labels.items())
    value = int(sample.value) if sample.value == int(sample.value) else repr(float(sample.value))
    return f"{sample.family.name}{{{labels}}} {value}\n"


def _escaped(text: str) -> str:
    text = text[:_MOST_LETTERS].encode("utf-8", "replace").decode()
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
