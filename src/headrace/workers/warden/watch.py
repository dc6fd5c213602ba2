"""One watched process tree: its limit, its progress, and when it is condemned.

Covers: decisions from readings that are handed in. Does not cover: reading (memory.measure.tree), killing and reaping
(workers.warden.warden).
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
_TELL_EVERY_S = 0.2
_TELL_NEARLY_FULL_EVERY_S = 0.02  # in time for more to be lent
_TOLD_STEP_BYTES = 1 << 20
REST_S = 0.1  # between two looks at a worker that waits for a task
# Left to a worker when its limit is lowered: enough to go on with, and in use is then not yet "at its limit".
_LEAST_ROOM_BYTES = 8 << 20
_ROOM_SHARE = 8
_ENDED_BADLY = {DeathKind.OUT_OF_MEMORY, DeathKind.HUNG, DeathKind.STOPPED, DeathKind.TOO_MUCH_OUTPUT}


@dataclass(slots=True)
class Verdict:
    kind: DeathKind
    reason: str
    used_bytes: int = 0


@dataclass(slots=True, kw_only=True)
class Watch(MeasuredTree):
    """`outputs` are descriptors of what a program writes, with a cap on all together. `becomes` is a pipe that ends
    when a fork has become its program, -1 from then on: what it has until then is the warden's.
    """

    worker: int
    limit_bytes: int
    hang_s: float
    outputs: tuple[int, ...] = ()
    largest_output_bytes: int = 0
    becomes: int = -1
    used_bytes: int = 0
    reserved_bytes: int = 0
    grown_bytes: int = 0
    peak_bytes: int = 0
    told_bytes: int = -1
    told_at: float = 0.0
    looked_at: float = 0.0
    steps: int = 0
    quiet_since: float = 0.0
    verdict: Verdict | None = None

    @property
    def is_hot(self) -> bool:
        """Above 70 %, or about to be."""
        return self.used_bytes + 2 * self.grown_bytes > self.limit_bytes * _HOT

    def may_rest(self, now: float, steps: int, is_busy: bool) -> bool:
        """Whether it waits for a task, and has since the last look: a single thread that waits takes no memory. Its
        counters, which are memory that is shared, tell at once when a task has begun, or begun and ended.
        """
        is_waiting = not is_busy and steps == self.steps and self.verdict is None
        return is_waiting and now - self.looked_at < REST_S and self.tree.is_alone and not self.is_hot

    def needed_bytes(self) -> int:
        """Read anew: the least limit under which it can go on. What it has reserved it may fill without asking."""
        in_use = max(self._read().reserved_bytes, self.used_bytes)
        return in_use + max(_LEAST_ROOM_BYTES, in_use // _ROOM_SHARE)

    def has_news(self, now: float) -> bool:
        """Whether the last reading is worth telling: sooner from 80 % on, and at once when that is passed."""
        nearly_full_bytes = int(self.limit_bytes * _NEARLY_FULL)
        is_nearly_full = self.used_bytes >= nearly_full_bytes
        if now - self.told_at < (_TELL_NEARLY_FULL_EVERY_S if is_nearly_full else _TELL_EVERY_S):
            return False
        has_moved = abs(self.used_bytes - self.told_bytes) >= _TOLD_STEP_BYTES
        return has_moved or (is_nearly_full and self.told_bytes < nearly_full_bytes)

    def look(self, now: float, steps: int, is_busy: bool) -> Verdict | None:
        """A new reading; the verdict if this one condemns it."""
        if self.verdict is not None and self.verdict.kind is DeathKind.OUT_OF_MEMORY:
            return None  # it is being killed, and half a tree is not read rightly
        if not self._has_become():
            return None
        before = self.used_bytes
        self.looked_at = now
        reading = self._read()
        self.grown_bytes = max(0, self.used_bytes - before)
        if self.verdict is None:
            self.verdict = self._judged(reading, now, steps, is_busy)
            return self.verdict
        return None

    def death(self, code: int | None, signal: int | None, *, by_kernel: bool) -> Death:
        verdict = self.verdict
        if by_kernel and (verdict is None or verdict.kind not in _ENDED_BADLY):
            verdict = Verdict(DeathKind.OUT_OF_MEMORY, "its cgroup met memory.max", self.peak_bytes)
        plain = DeathKind.SIGNALLED if signal is not None else DeathKind.EXITED
        return Death(
            worker=self.worker,
            kind=verdict.kind if verdict is not None else plain,
            code=code,
            signal=signal,
            used_bytes=(verdict.used_bytes if verdict is not None else 0) or self.used_bytes,
            peak_bytes=self.peak_bytes,
            limit_bytes=self.limit_bytes,
            reserved_bytes=self.reserved_bytes,
            reason=verdict.reason if verdict is not None else "",
        )

    def descriptors(self) -> list[int]:
        return [*self.tree.descriptors(), *self.outputs, *([self.becomes] if self.becomes >= 0 else [])]

    def close(self) -> None:
        self.tree.close()
        for descriptor in (*self.outputs, *([self.becomes] if self.becomes >= 0 else [])):
            os.close(descriptor)

    def _has_become(self) -> bool:
        if self.becomes >= 0:
            try:
                os.read(self.becomes, 1)
            except BlockingIOError:
                return False
            os.close(self.becomes)
            self.becomes = -1
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

    def _judged(self, reading: TreeReading, now: float, steps: int, is_busy: bool) -> Verdict | None:
        used = self.used_bytes
        if used > self.limit_bytes + reading.slack_bytes:
            return Verdict(DeathKind.OUT_OF_MEMORY, "its tree went above its limit", used)
        if sum(os.fstat(output).st_size for output in self.outputs) > self.largest_output_bytes:
            return Verdict(DeathKind.TOO_MUCH_OUTPUT, f"it wrote more than {self.largest_output_bytes:,} bytes", used)
        is_full = max(used, reading.reserved_bytes) >= self.limit_bytes * _STUCK
        if steps != self.steps or not ((is_full and is_busy) or reading.is_stopped):
            self.steps = steps
            self.quiet_since = now
        elif now - self.quiet_since >= self.hang_s:
            kind = DeathKind.STOPPED if reading.is_stopped else DeathKind.HUNG
            what = "it was stopped" if reading.is_stopped else "it was at its limit"
            return Verdict(kind, f"{what} and took no step for {self.hang_s:g} s", used)
        return None
