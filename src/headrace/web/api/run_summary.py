"""A run in figures: how far it is, how fast, what it has cost, and what its process says now."""

from __future__ import annotations

import msgspec

from headrace.interviews.steering.run_file_status import RunFileStatus
from headrace.web.operations import PageOperation
from headrace.web.shown_files import ShownFile, ShownFiles, ShownKind

_MOST_LETTERS = 300


class EndpointFigures(msgspec.Struct, frozen=True):
    """A model's endpoint in the latest run; `why_closed` is empty where it is called."""

    model: str
    calls: int
    busy: int
    failures: int
    circuit: str
    why_closed: str


class LiveFigures(msgspec.Struct, frozen=True):
    """What the process says that runs the file now. `notice` is what else one must know, such as a service that asks
    for a pause.
    """

    pid: int
    concurrency: int
    in_flight: int
    memory_bytes: int
    budget_bytes: int
    notice: str


class RunSummary(msgspec.Struct, frozen=True):
    """`state` is running, paused, stopping, complete or not running. `cost` is in US dollars, null where a price is not
    known; `live` is null where no process answers.
    """

    id: str
    name: str
    kind: ShownKind
    state: str
    done: int
    total: int
    reused: int
    failed: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    cache_hits: int
    seconds: float
    peak_memory_bytes: int | None
    size_bytes: int
    endpoints: tuple[EndpointFigures, ...]
    live: LiveFigures | None


class OneRun(msgspec.Struct, frozen=True):
    run: str


def _run_summary(files: ShownFiles, asked: OneRun) -> RunSummary:
    return summary_of(files.one(asked.run))


def summary_of(file: ShownFile) -> RunSummary:
    status = RunFileStatus.at(file.path)
    stats, live = status.stats, status.live
    return RunSummary(
        id=file.id,
        name=file.path.name,
        kind=file.kind,
        state=status.state,
        done=stats.interviews,
        total=status.total,
        reused=stats.reused,
        failed=stats.failed,
        calls=stats.calls,
        input_tokens=stats.input_tokens,
        output_tokens=stats.output_tokens,
        cost=stats.cost,
        cache_hits=stats.cache_hits,
        seconds=stats.seconds,
        peak_memory_bytes=stats.peak_memory,
        size_bytes=status.size_bytes,
        endpoints=tuple(
            EndpointFigures(
                model=each.model[:_MOST_LETTERS],
                calls=each.calls,
                busy=each.busy,
                failures=each.failures,
                circuit=each.circuit,
                why_closed=(each.closed_reason or "")[:_MOST_LETTERS],
            )
            for each in stats.endpoints
        ),
        live=None
        if live is None
        else LiveFigures(
            pid=live.pid,
            concurrency=live.concurrency,
            in_flight=live.progress.in_flight or 0,
            memory_bytes=live.progress.memory_bytes,
            budget_bytes=live.progress.budget_bytes,
            notice=live.progress.notice[:_MOST_LETTERS],
        ),
    )


RUN_SUMMARY = PageOperation(
    name="run",
    summary="How a run stands.",
    path="/runs/{run}",
    parameters=OneRun,
    reply=RunSummary,
    call=_run_summary,
)
