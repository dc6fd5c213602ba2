"""Workers with hard memory limits. Covers: starting the warden, asking it for workers, and using them again.

A worker that ends costs its task only. Where the warden itself ends, its workers end with it, each with a death, and
the next request for a worker starts another warden. Does not cover: how much memory a worker is lent (workers.lender),
or what tasks mean.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from headrace.errors import HeadraceError, OptionError
from headrace.memory.measure.os_limits import ON_LINUX
from headrace.workers.functions import has_imported_script, script_starts_again
from headrace.workers.handle import Worker
from headrace.workers.limit_mechanisms import can_isolate, enforcement_layers
from headrace.workers.limited_process import LimitedProcess
from headrace.workers.local_warden import LocalWarden, WardenLost, WardenPlace
from headrace.workers.wire import (
    Death,
    DeathKind,
    ForkWorker,
    FromWarden,
    Halted,
    KillWorker,
    LimitSet,
    Readings,
    Ready,
    SetLimit,
    Setup,
    SpawnProgram,
    Stuck,
    WorkerStarted,
)

_log = logging.getLogger("headrace")
_NEARLY = 0.95


class PoolOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`preload`: modules that every worker needs, imported once. `hang_s`: how long a task may be at 95 %
    of its limit without a step. `stuck_after_s`: when an event loop that does not turn is reported, None for never.
    `largest_file_bytes`: no file that a worker writes may become larger, 0 for no cap. A worker is replaced after
    `tasks_per_worker`, or when it has kept `growth_bytes` after a task.
    """

    preload: tuple[str, ...] = ()
    poll_s: float = 0.010
    hot_poll_s: float = 0.001
    hang_s: float = 5.0
    stuck_after_s: float | None = None
    largest_file_bytes: int = 4 << 30
    tasks_per_worker: int = 100
    growth_bytes: int = 32 << 20
    most_idle: int = 2
    start_within_s: float = 60.0
    forks: bool = ON_LINUX


class WorkerPool:
    """`on_reading` gets (worker, bytes) as the warden reads them, where they changed: about five times a second, and
    up to fifty from 80 % of a worker's limit on. `on_stuck` gets the warden's report of a loop that is stuck. `place`
    is where the warden and its workers are, by default on this host.
    """

    def __init__(
        self,
        options: PoolOptions | None = None,
        *,
        on_reading: Callable[[int, int], None] | None = None,
        on_stuck: Callable[[Stuck], None] | None = None,
        place: WardenPlace | None = None,
    ) -> None:
        if place is None and not can_isolate():
            raise OptionError(f"Workers cannot have processes of their own on {sys.platform}.", fix="Run inline.")
        self._place = place or LocalWarden()
        self._options = options or PoolOptions()
        self._on_reading = on_reading
        self._on_stuck = on_stuck
        self._workers: dict[int, Worker] = {}
        self._programs: dict[int, LimitedProcess] = {}
        self._pids: dict[int, int] = {}
        self.abandoned_bytes = 0  # in files on tmpfs, by workers that have ended
        self._bases: dict[int, int] = {}  # what each was forked with
        self._starting: dict[int, asyncio.Future[None]] = {}
        self._idle: list[Worker] = []
        self.halts = 0  # of the warden or its standby, by signals from elsewhere
        self._halts_of_this = 0
        self._number = 0
        self._ready: asyncio.Future[Ready] | None = None
        self._lock = asyncio.Lock()
        self.layers: list[tuple[str, str]] = enforcement_layers()
        self.not_preloaded: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def shared_bytes(self) -> int:
        """Memory that workers report as theirs and share with the warden."""
        return sum(self._bases.values()) if self._options.forks else 0

    @property
    def pids(self) -> set[int]:
        """Of workers and programs."""
        return set(self._pids.values())

    @property
    def idle_bytes(self) -> int:
        return sum(worker.used_bytes for worker in self._idle)

    @property
    def warden_pid(self) -> int | None:
        return self._place.pid

    @property
    def lost(self) -> str | None:
        """Why the warden's host is gone for good, None while it is there."""
        return self._place.lost

    async def start(self) -> None:
        """Do this before any database is opened: what the warden inherits, every worker does."""
        async with self._lock:
            if self._place.is_open:
                return
            await self._end_warden()
            if has_imported_script():
                raise script_starts_again()
            await self._launch()

    async def worker(self, limit_bytes: int, least_bytes: int = 0) -> Worker:
        """An idle one, or a new one; with this limit, or little less, on what it uses above what it was forked with,
        but no less than `least_bytes`.
        """
        while self._idle:
            worker = self._idle.pop()
            lowest_bytes = max(limit_bytes * _NEARLY, least_bytes)
            if lowest_bytes <= worker.limit_bytes <= limit_bytes and not worker.ended.done():
                return worker  # asking the warden takes longer than many a task
            try:
                is_small_enough = await worker.set_limit(limit_bytes) <= limit_bytes
            except asyncio.CancelledError:
                worker.kill()
                raise
            if is_small_enough and not worker.ended.done() and not worker.is_spoiled:
                return worker
            self._retire(worker)
        return await self._new_worker(limit_bytes)

    def give_back(self, worker: Worker) -> None:
        """After its task. Used again, unless it is spoiled, grown, old, or enough are idle."""
        is_good = not worker.is_spoiled and not worker.ended.done() and worker.channel.is_open
        has_room = worker.tasks < self._options.tasks_per_worker and worker.used_bytes < self._options.growth_bytes
        if is_good and has_room and len(self._idle) < self._options.most_idle:
            self._idle.append(worker)
        else:
            self._retire(worker)

    def spawn(self, order: SpawnProgram, streams: Sequence[int]) -> LimitedProcess:
        """A program that is not Python; `order.worker` comes from `next_number`."""
        program = LimitedProcess(order.worker, order.limit_bytes, self.order)
        if not self._place.is_open:
            program.has_ended(Death(order.worker, DeathKind.WARDEN_ENDED, reason="the warden has ended"))
            return program
        self._place.spawn(order, streams)
        self._programs[order.worker] = program
        return program

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def order(self, order: SetLimit | KillWorker) -> None:
        self._place.order(order)

    async def close(self) -> None:
        """End the warden, and with it all workers and their children."""
        async with self._lock:
            await self._end_warden()

    async def _launch(self) -> None:
        self._ready = asyncio.get_running_loop().create_future()
        self._halts_of_this = 0
        await self._place.start(self._setup(), self._take_report, self._warden_ended)
        try:
            ready = await asyncio.wait_for(asyncio.shield(self._ready), self._options.start_within_s)
        except TimeoutError:
            await self._end_warden()
            raise HeadraceError(
                f"The process that starts workers was not ready after {self._options.start_within_s:g} s.",
                fix="Preload less, or give it longer with start_within_s.",
            ) from None
        except BaseException:
            await self._end_warden()
            raise
        self.layers, self.not_preloaded = ready.layers, ready.not_preloaded
        self._place.started(ready.pid)

    def _setup(self) -> Setup:
        options = self._options
        return Setup(
            sys_path=[entry or str(Path.cwd()) for entry in sys.path],
            argv=sys.argv,
            preload=list(options.preload),
            poll_s=options.poll_s,
            hot_poll_s=options.hot_poll_s,
            hang_s=options.hang_s,
            largest_file_bytes=options.largest_file_bytes,
            forks=options.forks,
            stuck_after_s=options.stuck_after_s,
        )

    async def _new_worker(self, limit_bytes: int) -> Worker:
        await self.start()
        number = self.next_number()
        worker = Worker(number, limit_bytes, self._place.fork(ForkWorker(number, limit_bytes)), self.order)
        started = self._starting[worker.id] = asyncio.get_running_loop().create_future()
        self._workers[worker.id] = worker
        try:
            await started
        except asyncio.CancelledError:
            worker.kill()
            raise
        return worker

    def _retire(self, worker: Worker) -> None:
        """An idle worker ends when its channel closes; one that does not is killed."""
        worker.is_spoiled = True
        if not worker.ended.done():
            worker.kill()

    def _take_report(self, report: FromWarden) -> None:
        match report:
            case Ready():
                if self._ready is not None and not self._ready.done():
                    self._ready.set_result(report)
            case WorkerStarted():
                self._has_started(report)
            case LimitSet():
                if process := self._process_of(report.worker):
                    process.limit_holds(report.limit_bytes)
            case Readings():
                self._has_read(report)
            case Stuck():
                if self._on_stuck is not None:
                    self._on_stuck(report)
            case Halted():
                self._has_halted(report)
            case Death():
                self._has_ended(report)

    def _has_started(self, report: WorkerStarted) -> None:
        self._pids[report.worker] = report.pid
        if report.worker in self._workers:
            self._bases[report.worker] = report.base_bytes
            self._workers[report.worker].pid = report.pid
            _resolve(self._starting.pop(report.worker, None))

    def _has_read(self, report: Readings) -> None:
        self.abandoned_bytes = report.abandoned_bytes
        for reading in report.readings:
            if process := self._process_of(reading.worker):
                process.used_bytes, process.counted_bytes = reading.used_bytes, reading.counted_bytes
                self._retire_grown(process)
            if self._on_reading is not None:
                self._on_reading(reading.worker, reading.used_bytes)

    def _retire_grown(self, process: LimitedProcess) -> None:
        """An idle one whose last task was too short to be read."""
        for worker in self._idle:
            if worker is process and worker.used_bytes >= self._options.growth_bytes:
                self._idle.remove(worker)
                self._retire(worker)
                return

    def _process_of(self, number: int) -> LimitedProcess | None:
        return self._workers.get(number) or self._programs.get(number)

    def _has_halted(self, report: Halted) -> None:
        self.halts += report.times - self._halts_of_this
        self._halts_of_this = report.times
        _log.warning("The process that holds workers to their limits was stopped by a signal, and was continued.")

    def _has_ended(self, death: Death) -> None:
        self.abandoned_bytes = death.abandoned_bytes
        self._pids.pop(death.worker, None)
        self._bases.pop(death.worker, None)
        _resolve(self._starting.pop(death.worker, None))
        program = self._programs.pop(death.worker, None)
        if program is not None:
            program.has_ended(death)
        worker = self._workers.pop(death.worker, None)
        if worker is not None:
            worker.has_ended(death)
            if worker in self._idle:
                self._idle.remove(worker)

    def _warden_ended(self, reason: str) -> None:
        """Workers end with the warden; what they started does not, and is ended here."""
        if self._halts_of_this:
            reason = f"{reason}, after it was stopped by signals {self._halts_of_this} times"
        self._place.end_orphans(self._pids.values())
        for number in [*self._workers, *self._programs]:
            self._has_ended(Death(number, DeathKind.WARDEN_ENDED, reason=f"the warden has ended: {reason}"))
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(
                HeadraceError(
                    f"The process that starts workers has ended at its start: {reason}.",
                    fix="No worker had begun. If it was killed, run it again; else it has said why on stderr.",
                )
                if self.lost is None
                else WardenLost(self.lost)
            )

    async def _end_warden(self) -> None:
        await self._place.end()
        for number in [*self._workers, *self._programs]:
            self._has_ended(Death(number, DeathKind.WARDEN_ENDED, reason="the pool was closed"))
        self._idle.clear()


def _resolve(waited: asyncio.Future[None] | None) -> None:
    if waited is not None and not waited.done():  # the caller may have been cancelled
        waited.set_result(None)
