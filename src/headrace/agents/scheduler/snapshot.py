"""`Snapshot`: the scheduler's state as an engine shows it, in bounded, frozen values.

Does not cover: how they are shown (agents.engine.status).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from headrace.agents.scheduler.events import MemoryReading
from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.scheduled_runs import RUNNING
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.priority import Priority

_MOST_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShown:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShown:
    reading: MemoryReading
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
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


def snapshot_of(state: SchedulerState) -> Snapshot:
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
    )


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
    return HostShown(reading=host.reading, slots=host.slot_count)
