"""`EventLog` records what the engine did and why, in its file, and counts it. The file keeps the latest ones.

Does not cover: events that agents emit, which are passed on and not recorded (run_events).
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.agents.engine.engine_writer import EngineWriter
from headrace.agents.scheduler.events import MemoryReading
from headrace.store.engine_file.engine_file import Writes


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineEvent:
    """One thing the engine did. `reading` is the memory reading that caused it, where one did."""

    at: float
    run: int | None
    what: str
    reason: str
    reading: dict[str, Any] | None

    @classmethod
    def from_row(cls, row: tuple[float, int | None, str, str, str | None]) -> EngineEvent:
        at, run, what, reason, reading = row
        return cls(at=at, run=run, what=what, reason=reason, reading=msgspec.json.decode(reading) if reading else None)


class EventLog:
    """`counts` are by kind of event: as many as there are kinds."""

    def __init__(self, writer: EngineWriter, writes: Writes) -> None:
        self._writer = writer
        self._writes = writes
        self.counts: Counter[str] = Counter()

    def record(self, what: str, reason: str, *, run: int | None = None, reading: MemoryReading | None = None) -> None:
        self.counts[what] += 1
        self._writer.write(self._writes.notes.event(time.time(), run, what, reason, _encode_reading(reading)))

    def record_now(self, what: str, reason: str) -> None:
        """From another thread, while the loop is stuck."""
        self.counts[what] += 1
        self._writer.write_now(self._writes.notes.event(time.time(), None, what, reason, None))


def _encode_reading(reading: MemoryReading | None) -> str | None:
    if reading is None:
        return None
    shown = {
        "used_bytes": reading.used_bytes,
        "budget_bytes": reading.budget_bytes,
        "zero_bytes": reading.zero_bytes,
        "pressure": reading.pressure.name,
    }
    return msgspec.json.encode(shown).decode()
