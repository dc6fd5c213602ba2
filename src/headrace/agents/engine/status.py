"""`EngineStatus`: what `engine.status()` shows, as bounded, frozen values. Does not cover: drawing them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.agents.scheduler.snapshot import Lacks, RunShown, Snapshot
from headrace.cluster.node_states import NodeState
from headrace.display import counted
from headrace.models.model_endpoints import ModelEndpoint
from headrace.store.engine_file.engine_schema import RunState
from headrace.store.engine_file.engine_surveys import SurveyRow, SurveyState
from headrace.units import format_bytes

if TYPE_CHECKING:  # whoever only reads a status from another process needs neither
    from headrace.agents.engine.heartbeat_calls import Heartbeat
    from headrace.agents.engine.live_runs import LiveRun


_MOST_NODES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatStatus:
    """How a heartbeat's calls went lately. Times are in seconds since 1970. `has_own_thread`: it is async, has blocked
    the engine's loop, and runs elsewhere since.
    """

    name: str
    every_s: float
    runs: int
    failures: int
    skips: int
    last_run_at: float | None
    last_error: str
    last_skip_at: float | None
    last_skip_reason: str
    is_blind: bool
    has_own_thread: bool

    def __str__(self) -> str:
        failed = f", {self.failures} of them failed" if self.failures else ""
        moved = ", in a thread of its own since it blocked the loop" if self.has_own_thread else ""
        return f"{self.name}: {counted(self.runs, 'beat')}{failed}, {self.skips} skipped{moved}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyStatus:
    """A survey that was run in the engine: its run file, and how many of its interviews are done. `state` is opening,
    running, stopped (it goes on with `engine.resume_surveys()`), complete or failed; `error` is why.
    """

    path: Path
    state: str
    priority: str
    done: int
    total: int
    error: str

    def __str__(self) -> str:
        why = f" ({self.error})" if self.error else ""
        done = f": {self.done:,} of {self.total:,}" if self.total else ""
        return f"survey {self.path.name} {self.state}{done}{why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInSlot:
    """A run that occupies a slot, or shares that of its parent. `is_waiting`: for a model, a program or a child, and
    its slot is free for others meanwhile. `memory_bytes` and `reserved_bytes` are those of the slot.
    """

    run: int
    name: str
    kind: str
    priority: str
    attempt: int
    host: str
    memory_bytes: int
    reserved_bytes: int
    is_alone: bool
    is_waiting: bool
    is_stopping: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """`counts` are of this engine since it was opened: runs ended, steps journaled, and each kind of recorded event.

    `running` are all runs that have a worker, or run in this process; `awaiting` are those of them that wait for a
    model, a program or a child and whose slot is free for others meanwhile. `waiting` are in the queue, by priority: at
    most `queue_depth` per priority.

    `waiting_for` is what the first of them waits for: a slot, memory (with what it needs and what is free beside
    reservations), memory that is in use outside of runs, memory pressure to fall, or others to end; empty where none
    waits.

    `unknown` are kinds with unfinished runs whose function this program has not registered, with how many.

    `open_circuits` are kinds of runs that are refused, with the seconds until the next probe; None while probes
    are in flight.

    `layers` are what holds workers to their memory, each with its state: active, or why not.

    `stuck` is the stack of what blocks the engine's loop, None where nothing does.

    `surveys` are the latest that this file remembers, at most a hundred.

    `endpoints` are the models that were called, each with its state, since when and why, and how many calls wait.

    `slots` is how many there are, and `in_slots` what runs in them: at most a hundred runs.

    `nodes` are those of the cluster that runs are on, at most a hundred; memory and pressure above are this process's.
    """

    waiting: dict[str, int]
    queue_depth: int
    running: int
    unfinished: dict[str, int]
    unknown: dict[str, int]
    memory_bytes: int
    peak_bytes: int
    budget_bytes: int
    pressure: str
    heartbeats: tuple[HeartbeatStatus, ...]
    open_circuits: dict[str, float | None]
    counts: dict[str, int]
    usage: dict[str, float]
    layers: dict[str, str]
    stuck: str | None
    awaiting: int = 0
    endpoints: tuple[ModelEndpoint, ...] = ()
    surveys: tuple[SurveyStatus, ...] = ()
    waiting_for: str = ""
    slots: int = 0
    in_slots: tuple[RunInSlot, ...] = ()
    nodes: tuple[NodeState, ...] = ()

    def __str__(self) -> str:
        waiting = ", ".join(f"{count} {level}" for level, count in self.waiting.items() if count)
        waiting = f"{waiting} (at most {self.queue_depth} per priority)" if waiting else "none"
        waiting += f", the first for {self.waiting_for}" if self.waiting_for else ""
        memory = f"{format_bytes(self.memory_bytes)} of {format_bytes(self.budget_bytes)} ({self.pressure.lower()})"
        unfinished = ", ".join(f"{count} {state}" for state, count in self.unfinished.items()) or "none"
        running = f"running {self.running}" + (f" ({self.awaiting} await an answer)" if self.awaiting else "")
        parts = [running, f"waiting {waiting}", f"unfinished {unfinished}", f"memory {memory}"]
        parts += [f"no function here for {count} of {kind}" for kind, count in self.unknown.items()]
        parts += [f"{kind} fails and is refused" for kind in self.open_circuits]
        parts += [str(endpoint) for endpoint in self.endpoints if endpoint.state != "open"]
        parts += [str(survey) for survey in self.surveys if survey.state != SurveyState.COMPLETE.value]
        parts += [node.in_words() for node in self.nodes]
        parts += [str(heartbeat) for heartbeat in self.heartbeats]
        parts += ["the loop is stuck"] if self.stuck else []
        return "; ".join(parts)


def status_of(
    *,
    snapshot: Snapshot,
    runs: Mapping[int, LiveRun],
    queue_depth: int,
    unfinished: dict[tuple[str, str], int],
    kinds: set[str],
    heartbeats: dict[str, Heartbeat],
    counts: dict[str, int],
    usage: dict[str, float],
    used_bytes: int,
    peak_bytes: int,
    layers: dict[str, str],
    stuck: str | None,
    endpoints: list[ModelEndpoint],
    surveys: list[SurveyRow],
    nodes: list[NodeState],
    now_s: float,
) -> EngineStatus:
    by_state: dict[str, int] = {}
    unknown: dict[str, int] = {}
    for (kind, state), count in unfinished.items():
        shown = RunState(state).name.lower()
        by_state[shown] = by_state.get(shown, 0) + count
        if kind not in kinds:
            unknown[kind] = unknown.get(kind, 0) + count
    reading = snapshot.hosts[0].reading if snapshot.hosts else None
    return EngineStatus(
        waiting={level.name: count for level, count in snapshot.waiting.items()},
        queue_depth=queue_depth,
        running=snapshot.running_count,
        awaiting=snapshot.awaiting_count,
        unfinished=by_state,
        unknown=unknown,
        memory_bytes=used_bytes,
        peak_bytes=peak_bytes,
        budget_bytes=reading.budget_bytes if reading else 0,
        pressure=reading.pressure.name if reading else "NORMAL",
        heartbeats=tuple(_heartbeat(each) for each in heartbeats.values()),
        open_circuits={
            kind: None if due_s is None else max(0.0, due_s - now_s) for kind, due_s in snapshot.open_circuits.items()
        },
        counts=counts,
        usage=usage,
        layers=layers,
        stuck=stuck,
        endpoints=tuple(endpoints),
        surveys=tuple(map(_survey, surveys)),
        waiting_for=_waiting_for(snapshot),
        slots=sum(host.slots for host in snapshot.hosts),
        in_slots=tuple(_in_slot(shown, runs) for shown in snapshot.running),
        nodes=tuple(nodes[:_MOST_NODES]),
    )


def _survey(row: SurveyRow) -> SurveyStatus:
    return SurveyStatus(
        path=Path(row.path),
        state=row.state.value,
        priority=row.priority.name,
        done=row.done,
        total=row.total,
        error=row.error,
    )


def _in_slot(shown: RunShown, runs: Mapping[int, LiveRun]) -> RunInSlot:
    live = runs.get(shown.id)
    return RunInSlot(
        run=shown.id,
        name=shown.kind if live is None else live.name,
        kind=shown.kind,
        priority=shown.priority.name,
        attempt=shown.epoch,
        host=shown.host,
        memory_bytes=shown.in_use_bytes,
        reserved_bytes=shown.reserved_bytes,
        is_alone=shown.is_alone,
        is_waiting=shown.is_waiting,
        is_stopping=shown.is_stopping,
    )


def _waiting_for(snapshot: Snapshot) -> str:
    if any(snapshot.waiting.values()) and not any(host.slots for host in snapshot.hosts):
        return "a node of the cluster: none takes part now"
    first = snapshot.first_in_line
    if first is None:
        return ""
    needs, free = format_bytes(first.needs_bytes), format_bytes(first.free_bytes)
    if first.lacks is Lacks.ROOM:
        return f"{first.lacks.value}: it needs {needs}, a run can have {free}"
    if first.lacks is not Lacks.MEMORY:
        return first.lacks.value
    return f"memory: it needs {needs}, {free} are not reserved"


def _heartbeat(heartbeat: Heartbeat) -> HeartbeatStatus:
    shown: dict[str, Any] = {
        name: getattr(heartbeat, name) for name in HeartbeatStatus.__dataclass_fields__ if name != "is_blind"
    }
    return HeartbeatStatus(**shown, is_blind=heartbeat.skips_in_a_row >= heartbeat.max_skips)
