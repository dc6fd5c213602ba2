"""An engine's memory: `EngineMemory` takes its readings, `EngineSurveyMemory` hands them to a survey inside it.

    BudgetReadings (memory.gauge) ──► EngineMemory.read ──► workers: what may be lent   scheduler: MemoryMeasured
                  │                                    └──► the history in the file, with the engine's commits
                  └──────────────────► EngineSurveyMemory: one for each survey

Does not cover: how memory is measured (memory.gauge), or what follows from a reading (agents.scheduler.relief).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from headrace.agents.engine.engine_parts import EngineParts
from headrace.agents.scheduler.events import MemoryMeasured
from headrace.agents.scheduler.hosts.reservations import KindSize
from headrace.agents.workers.engine_workers import EngineWorkers
from headrace.limits import MemoryLimits
from headrace.memory.gauge import BudgetReadings
from headrace.memory.governor import Pressure
from headrace.memory.reclaiming import LevelReclaim, reclaim_memory
from headrace.store.engine_file.engine_values import Write
from headrace.store.engine_file.notes import KindSizes
from headrace.store.history.stored_history import IDLE_NOTED_EVERY_S, NOTED_EVERY_S, HistoryWriter
from headrace.units import format_bytes

_MOST_SIZES_KEPT = 1000


class EngineMemory:
    """`shrink_caches` drops cached data that can be had again."""

    def __init__(
        self, parts: EngineParts, workers: EngineWorkers, host: str, shrink_caches: Callable[[], None]
    ) -> None:
        self.readings = BudgetReadings(workers.gauge, parts.options.memory)
        self._parts = parts
        self._workers = workers
        self._host = host
        self._shrink_caches = shrink_caches
        self._reclaim = LevelReclaim(parts.options.memory.calm_s)
        self._noted_warden: int | None = None
        self._sizes: KindSizes = {}
        self._history: HistoryWriter | None = None
        self._history_written_s = 0.0

    def read(self) -> None:
        """Take a reading, lend workers what it leaves, and send it to the scheduler."""
        now_s, readings = time.monotonic(), self.readings
        used = readings.read(now_s)
        if readings.looks_at_host(now_s):
            self._check_host()
        lendable_bytes = None
        if self._workers.is_isolated:
            self.note_warden()
            zero_bytes = self._parts.driver.scheduler.zero_bytes(self._host)
            lendable_bytes = self._workers.lend_within(readings.budget_bytes, zero_bytes)
        self._parts.runs.note_memory(used)
        measured = MemoryMeasured(
            now_s=now_s,
            host=self._host,
            used_bytes=used,
            budget_bytes=readings.budget_bytes,
            by_run=self._parts.runs.memory_on(self._host),
            lendable_bytes=lendable_bytes,
        )
        self._parts.driver.send(measured)
        if self._history is not None:
            self._history.note(used, readings.budget_bytes, self._parts.driver.scheduler.pressure(self._host))
        if self._reclaim.is_due_again(now_s):
            self._shrink_caches()
            reclaim_memory()

    def reclaim(self) -> None:
        """Drop caches, collect garbage, return free heap to the system; then read again."""
        before = self.readings.used_bytes
        self._shrink_caches()
        self._reclaim.entered(time.monotonic())
        freed = before - self._workers.gauge.read()
        reading = self._parts.driver.scheduler.reading(self._host)
        self._parts.log.record("reclaimed", f"{format_bytes(max(0, freed))} given back", reading=reading)
        asyncio.get_running_loop().call_soon(self.read)

    def begin_history(self) -> None:
        """Keep readings for the file's history from now on: the scheduler knows the host."""
        self._history = self._parts.file.history()

    def history_writes(self, done: int, *, is_last: bool = False) -> list[Write]:
        """What is to be written of the history beside other things, once a second; `done` runs have ended since the
        engine was opened.
        """
        now_s = time.monotonic()
        if self._history is None or (now_s - self._history_written_s < NOTED_EVERY_S and not is_last):
            return []
        self._history_written_s = now_s
        return self._history.writes(time.time(), self._history.done_before + done, self._parts.file.size_bytes)

    @property
    def is_history_due(self) -> bool:
        """Whether the engine has committed nothing for a while."""
        return self._history is not None and time.monotonic() - self._history_written_s >= IDLE_NOTED_EVERY_S

    def recall_sizes(self) -> None:
        """Tell the scheduler what the last engine of this file has learned of kinds of runs."""
        self._sizes = self._parts.file.notes.kind_sizes()
        sizes = {kind: KindSize(needed_bytes, seen) for kind, (needed_bytes, seen) in self._sizes.items()}
        self._parts.driver.scheduler.recall_sizes(sizes)

    def note_sizes(self) -> None:
        """Write what has been learned of kinds of runs, where it has changed."""
        changed = self._parts.driver.scheduler.changed_sizes()
        if not changed:
            return
        for kind, size in changed.items():
            self._sizes.pop(kind, None)
            self._sizes[kind] = size.needed_bytes, size.seen  # last: those that changed long ago go first
        for kind in list(self._sizes)[:-_MOST_SIZES_KEPT]:
            del self._sizes[kind]
        self._parts.writer.write(self._parts.writes.notes.kind_sizes(self._sizes))

    def note_warden(self) -> None:
        """Write the warden's pid to the file: an engine that opens it after a kill waits for that process to end. While
        a warden is being replaced there is none, and the file keeps the one before.
        """
        warden = self._workers.warden_pid
        if warden is not None and warden != self._noted_warden:
            self._noted_warden = warden
            self._parts.writer.write(self._parts.writes.notes.warden(warden))

    def _check_host(self) -> None:
        """Once a second: what was learned, a clock that was set, files that ended workers have left."""
        parts = self._parts
        self.note_sizes()
        if set_s := parts.clock.set_by_s():
            parts.log.record("clock set", f"by {set_s:+.0f} s; what waits goes on waiting as long as it was to")
            parts.writer.write(parts.writes.notes.clock(parts.clock.note()))
        if not self._workers.is_isolated:
            return
        if words := self._workers.files_left():
            parts.log.record("files left", words)
        if words := self._workers.halted():
            parts.log.record("warden stopped", words)
        parts.spawn(asyncio.to_thread(self._workers.gauge.correct))


class EngineSurveyMemory:
    """One survey's view. A reading that it asks for is the engine's, `take_reading`, for all that runs in the engine: a
    window opens a step with each calm one. It reclaims nothing, which the engine does for all.
    """

    def __init__(
        self, readings: BudgetReadings, pressure: Callable[[], Pressure], take_reading: Callable[[], None]
    ) -> None:
        self._readings = readings
        self._pressure = pressure
        self._take_reading = take_reading
        self.peak_bytes = 0

    @property
    def limits(self) -> MemoryLimits:
        return self._readings.limits

    @property
    def used_bytes(self) -> int:
        return self._readings.used_bytes

    @property
    def budget_bytes(self) -> int:
        return self._readings.budget_bytes

    @property
    def pressure(self) -> Pressure:
        return self._pressure()

    def read(self, now_s: float) -> None:
        self._take_reading()
        self.peak_bytes = max(self.peak_bytes, self._readings.used_bytes)

    async def correct(self) -> None:
        """The engine corrects its gauge by itself."""
