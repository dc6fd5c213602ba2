"""`Snapshot`: the scheduler's state as an engine shows it, in bounded, frozen values.

Does not cover: how they are shown (agents.engine.status).
"""

from __future__ import annotations

from enum import Enum
from itertools import islice

import msgspec

from headrace.agents.scheduler.events import MemoryReading
from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.hosts.needs import need_of
from headrace.agents.scheduler.scheduled_runs import RUNNING, ScheduledRun
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.priority import Priority

_MOST_SHOWN = 100


class RunShown(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    epoch: int
    kind: str
    priority: Priority
    host: str
    reserved_bytes: int
    in_use_bytes: int
    is_alone: bool
    is_stopping: bool
    is_waiting: bool


class HostShown(msgspec.Struct, frozen=True, kw_only=True):
    reading: MemoryReading
    slots: int
    best_room_bytes: int  # the most that one run could have had by any reading


class Lacks(Enum):
    """What the first run in the queue waits for."""

    PRESSURE = "memory pressure to fall"
    SLOT = "a slot"
    MEMORY = "memory"
    OTHERS = "others to end: it runs alone, or one that does is there"
    ROOM = "memory that is in use outside of runs"


class FirstInLine(msgspec.Struct, frozen=True, kw_only=True):
    """The first run in the queue, on the largest host: what it `needs_bytes`, and what is free beside reservations, or
    where it lacks room what one run could have beside nothing else.
    """

    id: int
    kind: str
    priority: Priority
    lacks: Lacks
    needs_bytes: int
    free_bytes: int


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`running` shows at most a hundred runs; `held` wait for a circuit to close or for their parent. Of the running,
    `awaiting_count` are in slots that wait.
    """

    waiting: dict[Priority, int]
    held: int
    running_count: int
    awaiting_count: int
    running: tuple[RunShown, ...]
    hosts: tuple[HostShown, ...]
    open_circuits: dict[str, float | None]  # kind: when the next probe is due, None while probes are out
    first_in_line: FirstInLine | None


def snapshot_of(state: SchedulerState, now_s: float | None) -> Snapshot:
    """Where it is told the time, also why the first in line does not start."""
    running = [run for host in state.hosts.values() for slot in host.slots.values() for run in slot.running]
    waiting = {level: state.queue.count(level) for level in Priority}
    return Snapshot(
        waiting=waiting,
        held=len(state.runs) - sum(waiting.values()) - len(running),
        running_count=len(running),
        awaiting_count=sum(
            len(slot.running) for host in state.hosts.values() for slot in host.slots.values() if slot.is_waiting
        ),
        running=tuple(islice(_shown(state), _MOST_SHOWN)),
        hosts=tuple(_host_shown(host) for host in islice(state.hosts.values(), _MOST_SHOWN)),
        open_circuits=dict(islice(state.circuits.open_kinds().items(), _MOST_SHOWN)),
        first_in_line=_first_in_line(state, now_s) if now_s is not None else None,
    )


def _first_in_line(state: SchedulerState, now_s: float) -> FirstInLine | None:
    """Those that wait aside let others pass, and those of an open circuit are shown as that."""
    heads = [run for _, _, run in state.queue.heads() if not state.circuits.holds(run)]
    host = state.index.largest
    if host is None:
        return None
    if not heads:
        return _too_large(state, host)
    run = next((run for run in heads if not run.is_aside and host.admits(run)), heads[0])
    need = need_of(state.limits, state.reservations, run, host, now_s)
    free_bytes = host.memory.room_beside_others_bytes(is_estimate=need.is_estimate)
    return FirstInLine(
        id=run.id,
        kind=run.kind,
        priority=run.priority,
        lacks=_lacks(host, run, is_short=need.memory_bytes > free_bytes),
        needs_bytes=need.memory_bytes,
        free_bytes=max(0, free_bytes),
    )


def _too_large(state: SchedulerState, host: Host) -> FirstInLine | None:
    run = state.queue.smallest_too_large()
    if run is None:
        return None
    return FirstInLine(
        id=run.id,
        kind=run.kind,
        priority=run.priority,
        lacks=Lacks.ROOM,
        needs_bytes=run.too_large_bytes,
        free_bytes=max(0, host.memory.room_alone_bytes),
    )


def _lacks(host: Host, run: ScheduledRun, *, is_short: bool) -> Lacks:
    if not host.admits(run):
        return Lacks.PRESSURE
    if not host.has_free_slot():
        return Lacks.SLOT
    return Lacks.MEMORY if is_short else Lacks.OTHERS


def _shown(state: SchedulerState):
    for host in state.hosts.values():
        for slot in host.slots.values():
            for run in slot.running.values():
                assert run.phase is RUNNING
                yield RunShown(
                    id=run.id,
                    epoch=run.epoch,
                    kind=run.kind,
                    priority=run.priority,
                    host=host.name,
                    reserved_bytes=slot.reserved_bytes,
                    in_use_bytes=slot.in_use_bytes,
                    is_alone=slot.is_alone,
                    is_stopping=slot.is_stopping(),
                    is_waiting=slot.is_waiting,
                )


def _host_shown(host: Host) -> HostShown:
    best_bytes = host.memory.best_room_bytes
    best_bytes = host.limits.budget_bytes if best_bytes is None else best_bytes
    return HostShown(reading=host.reading, slots=host.slot_count, best_room_bytes=best_bytes)
