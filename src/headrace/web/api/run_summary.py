"""A run in figures: how far it is, how fast, what it has cost, and what its process says now; as numbers, and as the
texts that are shown.
"""

from __future__ import annotations

from functools import partial

import msgspec

from headrace.interviews.steering.messages import StateReply
from headrace.interviews.steering.run_file_status import RunFileStatus
from headrace.memory.bounded_history import HistoryPoint
from headrace.results.stats import EndpointStats, Stats, history_of
from headrace.store.run_file.reader import Reader
from headrace.units import format_bytes, format_count, format_duration
from headrace.web.api.node_figures import NodeFigures, node_figures
from headrace.web.operations import PageOperation
from headrace.web.run_paces import RunPace
from headrace.web.shown_files import ShownFile, ShownFiles, ShownKind
from headrace.web.shown_texts import ShownFigure, bytes_of, money, number, part_of, rate, share, time_left

_MOST_LETTERS = 300
_MOST_ENDPOINTS = 100
_UNKNOWN_PACE = RunPace(None, None)


class EndpointFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A model's endpoint in the latest run. `state` is open, busy (the service asks for fewer calls), failing, away or
    closed, and `now` says in words what is done with calls to it. Of a run that has ended, they are those of its end.
    """

    model: str
    calls: int
    busy: int
    failures: int
    state: str
    now: str
    in_flight: int = 0
    waiting: int = 0
    retry_in_s: float | None = None


class LiveFigures(msgspec.Struct, frozen=True):
    """What the process says that runs the file now. `notice` is what else one must know, such as a service that asks
    for a pause. `to_ask_again` failed interviews are asked again and have not ended yet. `nodes` are those of a
    cluster, where the run is on one.
    """

    pid: int
    concurrency: int
    in_flight: int
    memory_bytes: int
    budget_bytes: int
    notice: str
    to_ask_again: int = 0
    nodes: tuple[NodeFigures, ...] = ()


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`state` is running, paused, stopping, needs a key, complete or not running; `goes_on` says whether a process has
    the file open, `needs` what to do about a key that is missing or refused. `cost` is in US dollars, null where a
    price is not known; `live` is null where no process answers. `per_s` are interviews a second lately, `left_s` what
    the rest will take, both null where nothing can be said. `figures` are the same as texts, `percent` is what is done
    of the total. `ended` says why a run that is not complete does not go on, `trouble` why its process cannot be asked,
    so that the figures are its file's; empty otherwise.
    """

    id: str
    name: str
    kind: ShownKind
    state: str
    goes_on: bool
    done: int
    total: int
    percent: int
    reused: int
    failed: int
    per_s: float | None
    left_s: float | None
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
    figures: tuple[ShownFigure, ...]
    needs: str = ""
    ended: str = ""
    trouble: str = ""


class OneRun(msgspec.Struct, frozen=True):
    run: str


def _run_summary(files: ShownFiles, asked: OneRun) -> RunSummary:
    return summary_of(files, files.one(asked.run))


def summary_of(files: ShownFiles, file: ShownFile) -> RunSummary:
    status = RunFileStatus.at(file.path, is_brief=True)
    stats, live = status.stats, status.live
    pace = _UNKNOWN_PACE
    if live is not None:
        pace = files.paces.of(file.path, live.pid, live.progress, partial(history_at, file))
    return RunSummary(
        id=file.id,
        name=file.path.name,
        kind=file.kind,
        state=status.state,
        goes_on=status.goes_on,
        done=status.done,
        total=status.total,
        percent=share(status.done, status.total),
        reused=stats.reused,
        failed=stats.failed,
        per_s=pace.per_s,
        left_s=pace.left_s,
        calls=stats.calls,
        input_tokens=stats.input_tokens,
        output_tokens=stats.output_tokens,
        cost=stats.cost,
        cache_hits=stats.cache_hits,
        seconds=stats.seconds,
        peak_memory_bytes=stats.peak_memory,
        size_bytes=status.size_bytes,
        endpoints=_live_endpoints(live) if live is not None else tuple(map(_ended, stats.endpoints[:_MOST_ENDPOINTS])),
        live=None if live is None else _live_figures(live),
        figures=tuple(_figures(status, stats, live, pace)),
        needs=status.needed_keys,
        ended=status.ended,
        trouble=status.trouble,
    )


def history_at(file: ShownFile) -> list[HistoryPoint]:
    """The memory history of a run file; there are at most some hundred points."""
    reader = Reader(file.path)
    try:
        return history_of(reader)
    finally:
        reader.close()


def _live_figures(live: StateReply) -> LiveFigures:
    return LiveFigures(
        pid=live.pid,
        concurrency=live.concurrency,
        in_flight=live.progress.in_flight or 0,
        memory_bytes=live.progress.memory_bytes,
        budget_bytes=live.progress.budget_bytes,
        notice=live.progress.notice[:_MOST_LETTERS],
        to_ask_again=live.to_ask_again,
        nodes=node_figures(live.nodes),
    )


def _live_endpoints(live: StateReply) -> tuple[EndpointFigures, ...]:
    return tuple(
        EndpointFigures(
            model=each.model,
            calls=each.calls,
            busy=each.busy,
            failures=each.failures,
            state=each.state,
            now=each.in_words(),
            in_flight=each.in_flight,
            waiting=each.waiting,
            retry_in_s=each.retry_in_s,
        )
        for each in live.endpoints[:_MOST_ENDPOINTS]
    )


def _ended(endpoint: EndpointStats) -> EndpointFigures:
    refused = (endpoint.closed_reason or "")[:_MOST_LETTERS]
    is_failing = endpoint.circuit != "closed"
    return EndpointFigures(
        model=endpoint.model[:_MOST_LETTERS],
        calls=endpoint.calls,
        busy=endpoint.busy,
        failures=endpoint.failures,
        state="closed" if refused else "failing" if is_failing else "open",
        now=f"refused at the end: {refused}" if refused else "failing at the end" if is_failing else "",
    )


def _figures(status: RunFileStatus, stats: Stats, live: StateReply | None, pace: RunPace) -> list[ShownFigure]:
    """The same ones for every run, so that what is on a page can be replaced one by one."""
    texts = {
        "interviews": part_of(status.done, status.total),
        "failed": number(stats.failed),
        "to be asked again": number(live.to_ask_again) if live is not None and live.to_ask_again else "",
        "rate": "" if pace.per_s is None else rate(pace.per_s),
        "time left": "" if pace.left_s is None else time_left(pace.left_s),
        "reused": number(stats.reused) if stats.reused else "",
        "in flight": "" if live is None else number(live.progress.in_flight or 0),
        "concurrency": "" if live is None else number(live.concurrency),
        "memory": "" if live is None else bytes_of(live.progress.memory_bytes, live.progress.budget_bytes),
        "calls": number(stats.calls),
        "from the cache": number(stats.cache_hits),
        "tokens": f"{format_count(stats.input_tokens)} in, {format_count(stats.output_tokens)} out",
        "cost": money(stats.cost),
        "time": format_duration(stats.seconds),
        "on disk": format_bytes(status.size_bytes),
    }
    return [ShownFigure(name, text, name == "failed" and stats.failed > 0) for name, text in texts.items()]


RUN_SUMMARY = PageOperation(
    name="run",
    summary="How a run stands.",
    path="/runs/{run}",
    parameters=OneRun,
    reply=RunSummary,
    call=_run_summary,
)
