"""What an engine can show of its scheduler. Covers: bounded, frozen values. Does not cover: how they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from headrace.agents.scheduler.board import Board
from headrace.agents.scheduler.events import Reading
from headrace.agents.scheduler.host import Host
from headrace.agents.scheduler.task_states import RUNNING
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShown:
    reading: Reading
    slots: int
    slots_now: int
    slots_taken: int
    floor_bytes: int
    room_bytes: int
    credits: dict[str, tuple[int, int]]  # of each survey: granted, in use


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """`running` shows at most a hundred runs; `held` wait for a circuit to close or for their parent."""

    waiting: dict[Priority, int]
    held: int
    running_count: int
    running: tuple[RunShown, ...]
    hosts: tuple[HostShown, ...]
    heartbeats: int
    blind_heartbeats: tuple[str, ...]
    open_circuits: dict[str, float | None]  # kind: when the next probe is due, None while it is out


def snapshot_of(board: Board) -> Snapshot:
    running = [task for host in board.hosts.values() for family in host.families.values() for task in family.running]
    waiting = {level: board.waiting.count(level) for level in Priority}
    return Snapshot(
        waiting=waiting,
        held=len(board.tasks) - sum(waiting.values()) - len(running),
        running_count=len(running),
        running=tuple(islice(_shown(board), _MOST_SHOWN)),
        hosts=tuple(_host_shown(host) for host in islice(board.hosts.values(), _MOST_SHOWN)),
        heartbeats=len(board.heartbeats),
        blind_heartbeats=tuple(board.heartbeats.blind()),
        open_circuits=dict(islice(board.circuits.open_kinds().items(), _MOST_SHOWN)),
    )


def _shown(board: Board):
    for host in board.hosts.values():
        for family in host.families.values():
            for task in family.running.values():
                assert task.state is RUNNING
                yield RunShown(
                    id=task.id,
                    epoch=task.epoch,
                    kind=task.kind,
                    priority=task.priority,
                    host=host.name,
                    reserved_bytes=family.reserved_bytes,
                    in_use_bytes=family.in_use_bytes,
                    is_alone=family.is_alone,
                    is_stopping=family.is_stopping(),
                )


def _host_shown(host: Host) -> HostShown:
    return HostShown(
        reading=host.reading,
        slots=host.slots,
        slots_now=host.slots_now(),
        slots_taken=len(host.families),
        floor_bytes=host.floor_bytes,
        room_bytes=host.room_bytes(),
        credits={
            tenant.id: (tenant.granted, tenant.in_use) for tenant in islice(host.tenants.by_id.values(), _MOST_SHOWN)
        },
    )
