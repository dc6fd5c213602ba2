"""An engine in figures: its runs by state, and what the process says that has its file open."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from headrace.agents.engine.status import HeartbeatStatus, RunInSlot
from headrace.agents.steering.engine_client import engine_state
from headrace.agents.steering.engine_messages import EngineReply
from headrace.errors import InvalidInput, NotSteerable
from headrace.interviews.steering.run_file_status import NEEDS_KEY
from headrace.models.model_endpoints import needed_keys
from headrace.store.engine_file.engine_queries import counts_by_state
from headrace.store.engine_file.engine_reader import reading_engine
from headrace.store.engine_file.engine_schema import FAILED_STATES, RunState, standing
from headrace.store.run_file.removal import disk_bytes
from headrace.units import format_bytes
from headrace.web.api.node_figures import NodeFigures, node_figures
from headrace.web.operations import READ_TIMEOUT_S, PageOperation
from headrace.web.shown_files import ShownFile, ShownFiles, ShownKind
from headrace.web.shown_texts import ShownFigure, bytes_of, number, part_of

_MOST_LETTERS = 500


class OneEngine(msgspec.Struct, frozen=True):
    engine: str


class EndpointNow(msgspec.Struct, frozen=True):
    """A model's endpoint; `words` say its state, since when and why."""

    model: str
    state: str
    words: str


class SurveyNow(msgspec.Struct, frozen=True):
    name: str
    state: str
    priority: str
    done: int
    total: int
    error: str


class OpenCircuit(msgspec.Struct, frozen=True):
    """A kind of runs that is refused; the next probe is due in `probe_in_s`, null while one is under way."""

    kind: str
    probe_in_s: float | None


class EngineNow(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine's process says. `levels` are shares of the budget: shrink, preempt, kill. `queue` counts the runs
    that wait for a slot, by priority; the first of them waits for `waiting_for`. `nodes` are those of a cluster, where
    the runs are on one.
    """

    pid: int
    memory_bytes: int
    peak_bytes: int
    budget_bytes: int
    pressure: str
    levels: tuple[float, float, float]
    slots: int
    running: int
    awaiting: int
    in_slots: tuple[RunInSlot, ...]
    queue: dict[str, int]
    queue_depth: int
    waiting_for: str
    heartbeats: tuple[HeartbeatStatus, ...]
    circuits: list[OpenCircuit]
    endpoints: list[EndpointNow]
    surveys: list[SurveyNow]
    unknown: dict[str, int]
    counts: dict[str, int]
    usage: dict[str, float]
    layers: dict[str, str]
    stuck: str | None
    nodes: tuple[NodeFigures, ...] = ()


class EngineSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`state` is running, needs a key or not running; `goes_on` says whether a process has the file open, `needs` what
    to do about a model's key that is missing or refused. `live` is null where no process has the file open, or where it
    does not answer: `trouble` then says why. `figures` are the most important ones as texts.
    """

    id: str
    name: str
    kind: ShownKind
    state: str
    goes_on: bool
    runs: dict[str, int]
    failed: int
    peak_memory_bytes: int | None
    size_bytes: int
    live: EngineNow | None
    figures: tuple[ShownFigure, ...]
    needs: str = ""
    trouble: str = ""


def engine_file(files: ShownFiles, engine: str) -> ShownFile:
    """The engine file with this id."""
    file = files.one(engine)
    if file.kind is not ShownKind.ENGINE:
        raise InvalidInput(f"{file.path.name} is a run file, not an engine's.", fix=f"See /runs/{file.id}.")
    return file


def _engine_summary(files: ShownFiles, asked: OneEngine) -> EngineSummary:
    return engine_summary_of(engine_file(files, asked.engine))


def engine_summary_of(file: ShownFile) -> EngineSummary:
    live, trouble = None, ""
    try:
        live = engine_state(file.path)
    except NotSteerable as error:
        trouble = error.message
    with reading_engine(file.path, READ_TIMEOUT_S) as reader:
        counts, peak_bytes = counts_by_state(reader), reader.peak_memory_bytes()
    counts = standing(counts, is_open=bool(live or trouble))
    needs = "" if live is None else needed_keys(live.status.endpoints)
    size_bytes, now = disk_bytes(file.path), None if live is None else _now(live)
    return EngineSummary(
        id=file.id,
        name=file.path.name,
        kind=file.kind,
        state=NEEDS_KEY if needs else "running" if live or trouble else "not running",
        goes_on=bool(live or trouble),
        needs=needs,
        runs={state.word: count for state, count in counts.items()},
        failed=sum(count for state, count in counts.items() if state in FAILED_STATES),
        peak_memory_bytes=peak_bytes,
        size_bytes=size_bytes,
        live=now,
        figures=tuple(_figures(now, counts, peak_bytes, size_bytes)),
        trouble=trouble,
    )


def _figures(
    now: EngineNow | None, counts: Mapping[RunState, int], peak_bytes: int | None, size_bytes: int
) -> list[ShownFigure]:
    """The same ones for every engine, so that what is on a page can be replaced one by one."""
    is_pressed = now is not None and now.pressure != "normal"
    return [
        ShownFigure("memory", "" if now is None else bytes_of(now.memory_bytes, now.budget_bytes)),
        ShownFigure("pressure", "" if now is None else now.pressure, is_pressed),
        ShownFigure("slots in use", "" if now is None else part_of(now.running - now.awaiting, now.slots)),
        ShownFigure("process", "" if now is None else str(now.pid)),
        ShownFigure("highest memory", "" if peak_bytes is None else format_bytes(peak_bytes)),
        *(ShownFigure(f"runs {each.word}", number(counts[each]) if counts.get(each) else "") for each in RunState),
        ShownFigure("on disk", format_bytes(size_bytes)),
    ]


def _now(reply: EngineReply) -> EngineNow:
    status = reply.status
    return EngineNow(
        pid=reply.pid,
        memory_bytes=status.memory_bytes,
        peak_bytes=status.peak_bytes,
        budget_bytes=status.budget_bytes,
        pressure=status.pressure.lower(),
        levels=reply.levels,
        slots=status.slots,
        running=status.running,
        awaiting=status.awaiting,
        in_slots=status.in_slots,
        queue=status.waiting,
        queue_depth=status.queue_depth,
        waiting_for=status.waiting_for,
        heartbeats=status.heartbeats,
        circuits=[OpenCircuit(kind[:_MOST_LETTERS], due_s) for kind, due_s in status.open_circuits.items()],
        endpoints=[EndpointNow(each.model, each.state, str(each)[: 3 * _MOST_LETTERS]) for each in status.endpoints],
        surveys=[
            SurveyNow(each.path.name, each.state, each.priority, each.done, each.total, each.error)
            for each in status.surveys
        ],
        unknown=status.unknown,
        counts=status.counts,
        usage=status.usage,
        layers=status.layers,
        stuck=status.stuck,
        nodes=node_figures(status.nodes),
    )


ENGINE_SUMMARY = PageOperation(
    name="engine",
    summary="How an engine stands: its runs by state, memory, slots, queue, heartbeats, circuits and models.",
    path="/engines/{engine}",
    parameters=OneEngine,
    reply=EngineSummary,
    call=_engine_summary,
)
