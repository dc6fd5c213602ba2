"""One watched process tree: its limit, its progress, and the reason to kill it, if there is one.

Covers: decisions about one tree from its readings. Does not cover: reading memory (memory.measure.tree), when to read,
and killing (warden.watchdog).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from headrace.memory.measure.measured_tree import MeasuredTree
from headrace.memory.measure.tree import TreeReading
from headrace.workers.wire import Death, DeathKind

_HOT = 0.70
_NEARLY_FULL = 0.80
_STUCK = 0.95
_REPORT_EVERY_S = 0.2
_REPORT_NEARLY_FULL_EVERY_S = 0.02  # in time for more to be lent
REPORTED_STEP_BYTES = 1 << 20
IDLE_LOOK_S = 0.1  # between two looks at a worker that waits for a task
# Left to a worker when its limit is lowered: enough to go on with, and in use is then not yet "at its limit".
_LEAST_ROOM_BYTES = 8 << 20
_ROOM_SHARE = 8
_ENDED_BADLY = {DeathKind.OUT_OF_MEMORY, DeathKind.HUNG, DeathKind.STOPPED, DeathKind.TOO_MUCH_OUTPUT}


@dataclass(slots=True)
class KillReason:
    """Why the warden kills a tree; `used_bytes` is the reading that shows it."""

    kind: DeathKind
    reason: str
    used_bytes: int = 0


@dataclass(slots=True, kw_only=True)
class Watch(MeasuredTree):
    """The tree of a worker or a program, with its limit and its last reading.

    `outputs` are descriptors of the files that a program writes, with a cap on all together. `exec_pipe` is a pipe that
    closes when a fork has become its program, -1 from then on: until then its memory is the warden's.
    """

    worker: int
    limit_bytes: int
    hang_s: float
    outputs: tuple[int, ...] = ()
    largest_output_bytes: int = 0
    exec_pipe: int = -1
    used_bytes: int = 0
    reserved_bytes: int = 0
    grown_bytes: int = 0
    peak_bytes: int = 0
    reported_bytes: int = -1
    reported_counted_bytes: int = -1
    reported_at: float = 0.0
    looked_at: float = 0.0
    steps: int = 0
    quiet_since: float = 0.0
    kill_reason: KillReason | None = None

    @property
    def is_hot(self) -> bool:
        """Whether it is above 70 % of its limit, or about to be."""
        return self.used_bytes + 2 * self.grown_bytes > self.limit_bytes * _HOT

    @property
    def counted_bytes(self) -> int:
        """What counts against its limit. What a program reserves does not: its hard limit leaves room for that."""
        return max(self.used_bytes, self.reserved_bytes) if self.tree.base_data_bytes else self.used_bytes

    def may_be_skipped(self, now: float, steps: int, is_busy: bool) -> bool:
        """Return whether this look at the tree may be left out: the worker has waited for a task since the last one.

        A single thread that waits takes no memory. The worker's counters, which are shared memory, show at once that a
        task has begun, or has begun and ended. Never for longer than IDLE_LOOK_S, nor while the tree is hot, has
        children or threads, or is being killed.
        """
        is_waiting = not is_busy and steps == self.steps and self.kill_reason is None
        return is_waiting and now - self.looked_at < IDLE_LOOK_S and self.tree.is_alone and not self.is_hot

    def needed_bytes(self) -> int:
        """Read the tree, and return the lowest limit under which it can go on: all it has reserved may fill up. Before
        a fork has become its program that is not known: return its limit.
        """
        if not self._has_execed():
            return self.limit_bytes
        in_use = max(self._read().reserved_bytes, self.used_bytes)
        return in_use + max(_LEAST_ROOM_BYTES, in_use // _ROOM_SHARE)

    def is_worth_reporting(self, now: float) -> bool:
        """Return whether to report the last reading: more often from 80 % on, and at once when that is passed."""
        nearly_full_bytes = int(self.limit_bytes * _NEARLY_FULL)
        is_nearly_full = self.counted_bytes >= nearly_full_bytes
        if now - self.reported_at < (_REPORT_NEARLY_FULL_EVERY_S if is_nearly_full else _REPORT_EVERY_S):
            return False
        moved = max(abs(self.used_bytes - self.reported_bytes), abs(self.counted_bytes - self.reported_counted_bytes))
        is_new = is_nearly_full and self.reported_counted_bytes < nearly_full_bytes
        return moved >= REPORTED_STEP_BYTES or is_new

    def has_reported(self, now: float) -> None:
        self.reported_bytes, self.reported_counted_bytes, self.reported_at = self.used_bytes, self.counted_bytes, now

    def look(self, now: float, steps: int, is_busy: bool) -> KillReason | None:
        """Read the tree; return the reason to kill it, if this reading shows one."""
        if self.kill_reason is not None and self.kill_reason.kind is DeathKind.OUT_OF_MEMORY:
            return None  # it is being killed: a reading of half a tree would be wrong
        if not self._has_execed():
            return None
        before = self.used_bytes
        self.looked_at = now
        reading = self._read()
        self.grown_bytes = max(0, self.used_bytes - before)
        if self.kill_reason is None:
            self.kill_reason = self._reason_to_kill(reading, now, steps, is_busy)
            return self.kill_reason
        return None

    def death(self, code: int | None, signal: int | None, *, by_kernel: bool) -> Death:
        """Return the report of its end; `by_kernel` where its cgroup met its limit."""
        kill_reason = self.kill_reason
        if by_kernel and (kill_reason is None or kill_reason.kind not in _ENDED_BADLY):
            kill_reason = KillReason(DeathKind.OUT_OF_MEMORY, "its cgroup met memory.max", self.peak_bytes)
        plain = DeathKind.SIGNALLED if signal is not None else DeathKind.EXITED
        return Death(
            worker=self.worker,
            kind=kill_reason.kind if kill_reason is not None else plain,
            code=code,
            signal=signal,
            used_bytes=(kill_reason.used_bytes if kill_reason is not None else 0) or self.used_bytes,
            peak_bytes=self.peak_bytes,
            limit_bytes=self.limit_bytes,
            reserved_bytes=self.reserved_bytes,
            reason=kill_reason.reason if kill_reason is not None else "",
        )

    def descriptors(self) -> list[int]:
        return [*self.tree.descriptors(), *self.outputs, *([self.exec_pipe] if self.exec_pipe >= 0 else [])]

    def close(self) -> None:
        self.tree.close()
        for descriptor in (*self.outputs, *([self.exec_pipe] if self.exec_pipe >= 0 else [])):
            os.close(descriptor)

    def _has_execed(self) -> bool:
        if self.exec_pipe >= 0:
            try:
                os.read(self.exec_pipe, 1)
            except BlockingIOError:
                return False
            os.close(self.exec_pipe)
            self.exec_pipe = -1
        return True

    def _read(self) -> TreeReading:
        reading = self.tree.read(self.limit_bytes)
        self.mapped_bytes = reading.shared_bytes
        # A file that is mapped shows twice, as shared memory and as a file.
        files_bytes = self.held_bytes + self.left_bytes + self.hidden_bytes + self.segment_bytes
        in_files = max(0, files_bytes - reading.shared_bytes)
        self.used_bytes = reading.used_bytes + in_files + self.buffered_bytes
        self.reserved_bytes = reading.reserved_bytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return reading

    def _reason_to_kill(self, reading: TreeReading, now: float, steps: int, is_busy: bool) -> KillReason | None:
        used = self.used_bytes
        if used > self.limit_bytes + reading.slack_bytes:
            return KillReason(DeathKind.OUT_OF_MEMORY, "its tree went above its limit", used)
        if sum(os.fstat(output).st_size for output in self.outputs) > self.largest_output_bytes:
            return KillReason(
                DeathKind.TOO_MUCH_OUTPUT, f"it wrote more than {self.largest_output_bytes:,} bytes", used
            )
        is_full = max(used, reading.reserved_bytes) >= self.limit_bytes * _STUCK
        if steps != self.steps or not ((is_full and is_busy) or reading.is_stopped):
            self.steps = steps
            self.quiet_since = now
        elif now - self.quiet_since >= self.hang_s:
            kind = DeathKind.STOPPED if reading.is_stopped else DeathKind.HUNG
            what = "it was stopped" if reading.is_stopped else "it was at its limit"
            return KillReason(kind, f"{what} and took no step for {self.hang_s:g} s", used)
        return None
