"""The processes of an engine and the memory lent to them. Covers: starting and ending them, and what they leave free.

Does not cover: what runs in them (agents.workers.agent_executor), or who may start (schedule).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from headrace.agents.task import TaskKind
from headrace.agents.workers.agent_executor import IsolatedAgents
from headrace.agents.workers.agent_host import AgentHost
from headrace.limits import MemoryLimits
from headrace.memory.gauge import TreeGauge
from headrace.units import format_bytes
from headrace.workers.lender import Lender
from headrace.workers.limit_mechanisms import can_isolate, enforcement_layers
from headrace.workers.pool import PoolOptions, WorkerPool
from headrace.workers.wire import Stuck

# The executor of agent runs, and the module that every agent's own module imports: 0.2 s a worker, if not preloaded.
_NEEDED_BY_ALL = ("headrace.agents.workers.agent_worker", "headrace.agents.engine.engine")

_MUCH_LEFT_BYTES = 16 << 20
HANG_S = 5.0  # at its memory limit without a step: it spins there

Isolation: TypeAlias = Literal["process", "inline"]


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`ceiling_bytes` is the most that one worker may be lent, 0 for the budget of its host. `slots` are those of this
    host, none where runs are on a cluster.
    """

    isolation: Isolation
    slots: int
    ceiling_bytes: int
    preload: tuple[str, ...] = ()
    largest_file_bytes: int = 4_000_000_000
    stuck_after_s: float = 1.0


def agent_pool_options(options: WorkerOptions, slots: int) -> PoolOptions:
    """Of the workers on a host with so many slots."""
    return PoolOptions(
        preload=(*_NEEDED_BY_ALL, *options.preload),
        most_idle=slots,
        largest_file_bytes=options.largest_file_bytes,
        hang_s=HANG_S,
        stuck_after_s=options.stuck_after_s,
    )


class EngineWorkers:
    """Made on the engine's loop. Inline it has no process until an agent runs a program."""

    def __init__(self, options: WorkerOptions, limits: MemoryLimits) -> None:
        self.is_isolated = options.isolation == "process" and options.slots > 0
        self._limits = limits
        self._host: AgentHost | None = None
        self._reported_left_bytes = 0
        self._reported_halts = 0
        pool_options = agent_pool_options(options, options.slots)
        self.pool = WorkerPool(pool_options, on_reading=self._read, on_stuck=self._stuck) if can_isolate() else None
        # On a cluster, runs have processes of their own too, and each tells what it uses.
        has_workers = self.is_isolated or not options.slots
        self.gauge = TreeGauge(self._shared_bytes, self._abandoned_bytes, has_workers=has_workers)
        self.lender = Lender(0, options.ceiling_bytes or limits.budget_bytes, self._abandoned_bytes)
        self.lend_within(limits.budget_bytes)

    async def start(self) -> None:
        """Before any database is opened."""
        if self.is_isolated and self.pool is not None:
            await self.pool.start()

    async def close(self) -> None:
        if self.pool is not None:
            await self.pool.close()

    def agents(
        self, host: str, kinds: Mapping[str, TaskKind], spools: Path, register: Callable[[TaskKind], None]
    ) -> IsolatedAgents:
        """The executor of runs in workers here; `host` is what the scheduler calls this host."""
        assert self.pool is not None
        self._host = AgentHost(host, self.pool, self.lender, spools)
        agents = IsolatedAgents(kinds, register)
        agents.join(self._host)
        return agents

    def files_left(self) -> str | None:
        """Describe the files that ended workers have left in memory, where they have grown much since last time."""
        left_bytes = self._abandoned_bytes()
        if abs(left_bytes - self._reported_left_bytes) < _MUCH_LEFT_BYTES:
            return None
        self._reported_left_bytes = left_bytes
        return f"{format_bytes(left_bytes)} of memory in files on tmpfs, /dev/shm for one, that ended workers have left"

    def halted(self) -> str | None:
        """Describe how often the warden was stopped, where it was since the last report."""
        halts = self.pool.halts if self.pool is not None else 0
        if halts == self._reported_halts:
            return None
        self._reported_halts = halts
        return f"by a signal, {halts} times so far; each time it was continued, or ended with its workers"

    def lend_within(self, budget_bytes: int, zero_bytes: int = 0) -> int:
        """Lend workers what the budget leaves to them; `zero_bytes` is the zero of levels. Return what agent runs can
        be lent together.
        """
        pids = self.pool.pids if self.pool is not None else set[int]()
        idle_bytes = self.pool.idle_bytes if self.pool is not None else 0
        held = self.gauge.read_without(pids) + idle_bytes
        self.lender.room_bytes = room_for_workers(self._limits, budget_bytes, zero_bytes, held)
        return self.lender.lendable_bytes()

    @property
    def warden_pid(self) -> int | None:
        return self.pool.warden_pid if self.pool is not None else None

    @property
    def not_preloaded(self) -> Mapping[str, str]:
        """Modules of `preload` that could not be imported, and why: those who need them meet that themselves."""
        return self.pool.not_preloaded if self.pool is not None else {}

    def layers(self) -> dict[str, str]:
        """The mechanisms that hold workers to their limits, by name, each with its state."""
        if not self.is_isolated:
            return {"isolation": "inline: nothing but the governor holds an agent to its memory"}
        return dict(self.pool.layers if self.pool is not None else enforcement_layers())

    def _shared_bytes(self) -> int:
        return self.pool.shared_bytes if self.pool is not None else 0

    def _abandoned_bytes(self) -> int:
        return self.pool.abandoned_bytes if self.pool is not None else 0

    def _read(self, worker: int, _used_bytes: int) -> None:
        if self._host is not None:
            self._host.read(worker)

    def _stuck(self, report: Stuck) -> None:
        if self._host is not None:
            self._host.stuck(report)


def room_for_workers(limits: MemoryLimits, budget_bytes: int, zero_bytes: int, held_bytes: int) -> int:
    """What workers may be lent together, beside what is held outside of them. A worker should meet its own limit before
    all of them together meet the line where one is killed: what is left below that.
    """
    line_bytes = zero_bytes + int((budget_bytes - zero_bytes) * limits.emergency_at)
    return max(0, line_bytes - held_bytes)
