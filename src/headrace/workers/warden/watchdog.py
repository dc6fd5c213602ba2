"""The watchdog: reads the memory of all workers' trees when it is due, and kills those above their limit.

Covers: setting limits and taking them back, when each tree is read, the kill, orphans, stuck loops, and the readings
that go to the controller. Does not cover: what a reading means for one tree (warden.watch), making children
(warden.children), the warden's loop (warden.warden).

How often: every `poll_s` (10 ms); every `hot_poll_s` (1 ms) while a tree is above 70 % of its limit or about to be; a
worker that waits for a task every 100 ms. Once no worker has had a task for 100 ms, the warden sleeps that long as
well, and a worker that begins a task wakes it by a signal.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from headrace.memory.measure.cgroups import MemoryGroups
from headrace.memory.measure.os_limits import ON_LINUX, limit_data
from headrace.memory.measure.shared_files import SharedFiles
from headrace.memory.measure.socket_buffers import SocketBuffers
from headrace.memory.measure.tree import new_tree
from headrace.workers.progress_page import ProgressPage, WorkerCounters
from headrace.workers.warden.children import ExitStatus, kill_tree, send_signal
from headrace.workers.warden.control import Control
from headrace.workers.warden.stuck import LoopWatch
from headrace.workers.warden.watch import IDLE_LOOK_S, KillReason, Watch
from headrace.workers.wire import (
    Death,
    DeathKind,
    ForkWorker,
    KillWorker,
    LimitSet,
    Readings,
    SetLimit,
    Setup,
    SpawnProgram,
    WorkerReading,
)

_NO_WORKERS_S = 0.5  # how soon a parent is missed while the socket is open
# Of a program: its own libraries and the stacks of its threads. The watchdog counts what is really used.
_PROGRAM_RESERVES_BYTES = 256 << 20


class Watchdog:
    """Holds a `Watch` for each child, by pid; `page` has the workers' counters."""

    def __init__(self, control: Control, setup: Setup) -> None:
        self.page = ProgressPage()
        self._control = control
        self._setup = setup
        self._groups = MemoryGroups.found() if ON_LINUX else None
        if self._groups is not None:
            self._groups.sweep()
        self._files = SharedFiles() if ON_LINUX else None
        self._buffers = SocketBuffers() if ON_LINUX else None
        self._watches: dict[int, Watch] = {}  # by pid
        self._counters: dict[int, WorkerCounters] = {}  # by pid, of workers
        self._loops: dict[int, LoopWatch] = {}  # by pid, of workers
        self._reported_abandoned_bytes = 0
        self._next_look = self._looked_at = self._busy_at = 0.0
        self._children = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY) if ON_LINUX else -1

    # Children.

    def group_for(self, order: ForkWorker | SpawnProgram) -> Path | None:
        """Make the cgroup that the ordered child will join; None where this host has none."""
        return None if self._groups is None else self._groups.make(order.worker, order.limit_bytes)

    def give_up_group(self, worker: int) -> None:
        """Remove the cgroup of a child that could not be made."""
        if self._groups is not None:
            self._groups.remove(worker)

    def add(
        self, pid: int, order: ForkWorker | SpawnProgram, counters: WorkerCounters | None, *, has_base: bool
    ) -> Watch:
        """Hold a new child to its limit. An OSError says that it cannot be watched: no descriptors are left.

        `counters` are a worker's; a program has none. `has_base` where the child shares the warden's memory.
        """
        if counters is not None:
            self._counters[pid] = counters
            if self._setup.stuck_after_s is not None:
                self._loops[pid] = LoopWatch(order.worker, pid, counters)
        tree = new_tree(pid, has_base=has_base)
        watch = Watch(worker=order.worker, pid=pid, tree=tree, limit_bytes=order.limit_bytes, hang_s=self._setup.hang_s)
        self._watches[pid] = watch
        watch.quiet_since = time.monotonic()
        self.look_soon()
        self._apply(watch, order.limit_bytes, [pid])
        return watch

    def remove(self, ended: ExitStatus) -> Death | None:
        """Stop watching a child that has ended; return the report of its end, None where it was never watched.

        What it leaves behind is killed first: its process group's id is still taken, because it is not reaped yet.
        """
        self._loops.pop(ended.pid, None)
        counters = self._counters.pop(ended.pid, None)
        if counters is not None:
            self.page.give_back(counters)
        watch = self._watches.pop(ended.pid, None)
        if watch is None:
            return None
        kill_tree(watch, signal.SIGKILL)
        if self._files is not None:
            self._files.abandon(watch, self._watches.values())
        by_kernel = self._groups is not None and self._groups.met_its_limit(watch.worker)
        death = watch.death(ended.code, ended.signal, by_kernel=by_kernel)
        death.abandoned_bytes = self._reported_abandoned_bytes = self._abandoned_bytes
        watch.close()
        self.look_soon()  # its children may have become orphans
        return death

    def descriptors(self) -> list[int]:
        """What a child must close: with a sibling's kept open, that sibling's end would not be seen."""
        watched = [descriptor for watch in self._watches.values() for descriptor in watch.descriptors()]
        return [*watched, *([self._children] if self._children >= 0 else [])]

    def kill_all(self) -> None:
        for watch in self._watches.values():
            kill_tree(watch, signal.SIGKILL)
        self._kill_orphans()

    def all_ended(self) -> bool:
        """Whether no process is left, and no cgroup."""
        has_ended = not self._watches and (self._children < 0 or not os.pread(self._children, 64, 0))
        return has_ended and (self._groups is None or self._groups.all_removed())

    # Orders.

    def set_limit(self, order: SetLimit) -> None:
        for watch in self._watches.values():
            if watch.worker == order.worker:
                if order.limit_bytes < watch.limit_bytes:
                    self._take_back(watch, order.limit_bytes)
                else:
                    self._apply(watch, order.limit_bytes, watch.tree.living())
                self._control.send(LimitSet(order.worker, watch.limit_bytes))
        self.look_soon()

    def kill(self, order: KillWorker) -> None:
        for watch in self._watches.values():
            if watch.worker == order.worker:
                if order.reason and watch.kill_reason is None:
                    watch.kill_reason = KillReason(order.kind, order.reason, watch.used_bytes)
                kill_tree(watch, order.signal)

    def _apply(self, watch: Watch, limit_bytes: int, pids: Iterable[int]) -> None:
        """Set a limit. Children have inherited the earlier hard limit: `pids` has them too where the limit rises."""
        watch.limit_bytes = limit_bytes
        if self._groups is not None:
            self._groups.set_limit(watch.worker, limit_bytes + watch.tree.base_bytes)
        for pid in pids:
            limit_data(pid, (watch.tree.base_data_bytes or _PROGRAM_RESERVES_BYTES) + limit_bytes)

    def _take_back(self, watch: Watch, limit_bytes: int) -> None:
        """Lower a limit, never below what the tree needs.

        Set between two readings: after the second it cannot have grown beyond the answer, and before the first no
        memory that it holds is refused to it.
        """
        before_bytes = watch.limit_bytes
        for _ in range(2):
            limit_bytes = min(before_bytes, max(limit_bytes, watch.needed_bytes()))
            self._apply(watch, limit_bytes, [watch.pid])

    # Looking.

    def patience_s(self) -> float:
        """Return how long the warden may wait for its next event."""
        return max(0.0, self._next_look - time.monotonic()) if self._watches else _NO_WORKERS_S

    def look_soon(self) -> None:
        self._next_look = self._looked_at = 0.0

    def wake(self) -> None:
        """A child has ended, or a task has begun while the warden slept: from here on it is watched like any other.

        Not read at once, because the task would wait for that where there is no free core.
        """
        self.page.is_asleep = False
        self._next_look = min(self._next_look, time.monotonic() + self._setup.poll_s)

    def look_if_due(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        has_slept = self.page.is_asleep  # then all are read together, and the warden may sleep as long again
        due = [watch for watch in self._watches.values() if has_slept or not self._may_be_skipped(watch, now)]
        if due or now - self._looked_at >= IDLE_LOOK_S:
            self._looked_at = now
            self._look_at(due, now)
        self._look_at_loops(now)
        self._next_look = now + self._pause_s(now)

    def _pause_s(self, now: float) -> float:
        """Return the time to the next look: long, once no worker has had a task for a while."""
        if any(watch.is_hot for watch in self._watches.values()):
            self.page.is_asleep = False
            return self._setup.hot_poll_s
        # Written before the counters are read once more: a task that they do not show yet will wake the warden.
        self.page.is_asleep = now - self._busy_at >= IDLE_LOOK_S
        if not all(self._may_be_skipped(watch, now) for watch in self._watches.values()):
            self._busy_at = now
            self.page.is_asleep = False
        return IDLE_LOOK_S if self.page.is_asleep else self._setup.poll_s

    def _may_be_skipped(self, watch: Watch, now: float) -> bool:
        counters = self._counters.get(watch.pid)
        return counters is not None and watch.may_be_skipped(now, counters.steps, counters.is_busy)

    def _look_at(self, due: list[Watch], now: float) -> None:
        """Read the trees that may have changed, and kill those above their limit."""
        if self._files is not None:
            self._files.charge(self._watches.values())
        for watch in due:
            if self._buffers is not None:
                self._buffers.charge(watch, now, is_hot=watch.is_hot)
            counters = self._counters.get(watch.pid)
            steps, is_busy = (counters.steps, counters.is_busy) if counters is not None else (0, False)
            is_to_end = watch.look(now, steps, is_busy) is not None
            if is_to_end or (watch.kill_reason is not None and watch.kill_reason.kind is DeathKind.OUT_OF_MEMORY):
                kill_tree(watch, signal.SIGKILL)  # again each time: it may have been forking meanwhile
        self._kill_orphans()
        self._report_readings(now)

    def _look_at_loops(self, now: float) -> None:
        stuck_after_s = self._setup.stuck_after_s
        for loop in self._loops.values():
            if stuck_after_s is not None and (stuck := loop.look(now, stuck_after_s)) is not None:
                self._control.send(stuck)

    def _kill_orphans(self) -> None:
        """Orphans become children of the worker they descend from; those of a worker that has ended come here."""
        listed = os.pread(self._children, 1 << 16, 0) if self._children >= 0 else b""
        if listed.count(b" ") != len(self._watches):  # each pid has a space behind it
            for pid in {int(pid) for pid in listed.split()}.difference(self._watches):
                send_signal(pid, signal.SIGKILL)

    def _report_readings(self, now: float) -> None:
        if self._control.is_behind:
            return
        new = [watch for watch in self._watches.values() if watch.is_worth_reporting(now)]
        for watch in new:
            watch.has_reported(now)
        if new or self._reported_abandoned_bytes != self._abandoned_bytes:
            self._reported_abandoned_bytes = self._abandoned_bytes
            readings = [WorkerReading(watch.worker, watch.used_bytes, watch.counted_bytes) for watch in new]
            self._control.send(Readings(readings, self._abandoned_bytes))

    @property
    def _abandoned_bytes(self) -> int:
        return self._files.abandoned_bytes if self._files is not None else 0
