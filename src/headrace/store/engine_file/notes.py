"""An engine's notes on itself: its warden, its clock, the memory that kinds of runs need, model usage, its events.

Does not cover: agent runs (runs, steps), or what events mean (agents.engine.event_log).
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from headrace.steady_clock import ClockNote
from headrace.store.contents import decoding
from headrace.store.engine_file.engine_schema import MOST_EVENTS_KEPT
from headrace.store.engine_file.engine_values import ValueReader, Write
from headrace.survey.record import Usage

EventRow: TypeAlias = tuple[float, int | None, str, str, str | None]

_Bytes: TypeAlias = Annotated[int, msgspec.Meta(ge=1, lt=1 << 60)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
KindSizes: TypeAlias = dict[str, tuple[_Bytes, _Count]]  # bytes that a run needs, and how many runs showed it
_Pid: TypeAlias = Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
_TRIM_EVENTS_EVERY = 1000


class StoredNotes:
    """Reads an engine's notes."""

    def __init__(self, reader: ValueReader) -> None:
        self._reader = reader

    def former_warden(self) -> int | None:
        """The pid of the last engine's warden: once it has ended, so have all workers of that engine."""
        return self._reader.one(_Pid, "SELECT value FROM meta WHERE key = 'warden'")

    def node_wardens(self) -> dict[str, int]:
        """The same on the nodes of the last engine's cluster, by the cluster's id of the node."""
        noted = self._reader.one(str, "SELECT value FROM meta WHERE key = 'node wardens'")
        with decoding(self._reader.path, "the processes on nodes that it notes"):
            return {} if noted is None else msgspec.json.decode(noted, type=dict[str, _Pid])

    def clock(self) -> ClockNote | None:
        """The time that the last engine noted; None where the file is new, or from a version without this clock."""
        noted = self._reader.one(str, "SELECT value FROM meta WHERE key = 'clock'")
        with decoding(self._reader.path, "the time that it notes"):
            return None if noted is None else msgspec.json.decode(noted, type=ClockNote)

    def kind_sizes(self) -> KindSizes:
        """What runs of each kind need, as the last engine noted it; empty in a file from before this was noted."""
        noted = self._reader.one(str, "SELECT value FROM meta WHERE key = 'kind sizes'")
        with decoding(self._reader.path, "the memory that it notes for kinds of runs"):
            return {} if noted is None else msgspec.json.decode(noted, type=KindSizes)

    def events(self, most: int) -> list[EventRow]:
        """The latest `most` events, oldest first."""
        sql = "SELECT at, run, what, reason, reading FROM events ORDER BY id DESC LIMIT ?"
        return list(self._reader.rows(EventRow, sql, (most,)))[::-1]

    def usage(self) -> dict[str, float]:
        return dict(self._reader.rows(tuple[str, float], "SELECT name, value FROM usage"))


class NoteWrites:
    """Makes the statements that write an engine's notes. It keeps the latest MOST_EVENTS_KEPT events."""

    def __init__(self) -> None:
        self._events = 0

    def warden(self, pid: int) -> list[Write]:
        return [("INSERT OR REPLACE INTO meta VALUES('warden', ?)", (pid,))]

    def node_wardens(self, pids: dict[str, int]) -> list[Write]:
        return [("INSERT OR REPLACE INTO meta VALUES('node wardens', ?)", (msgspec.json.encode(pids).decode(),))]

    def clock(self, note: ClockNote) -> list[Write]:
        return [("INSERT OR REPLACE INTO meta VALUES('clock', ?)", (msgspec.json.encode(note).decode(),))]

    def kind_sizes(self, sizes: KindSizes) -> list[Write]:
        return [("INSERT OR REPLACE INTO meta VALUES('kind sizes', ?)", (msgspec.json.encode(sizes).decode(),))]

    def used(self, usage: Usage) -> list[Write]:
        """Add to the totals of model usage."""
        sql = "INSERT INTO usage VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET value = value + excluded.value"
        return [(sql, (name, value)) for name in Usage.__struct_fields__ if (value := getattr(usage, name))]

    def event(self, at: float, run: int | None, what: str, reason: str, reading: str | None) -> list[Write]:
        self._events += 1
        writes: list[Write] = [("INSERT INTO events VALUES(NULL, ?, ?, ?, ?, ?)", (at, run, what, reason, reading))]
        if self._events % _TRIM_EVENTS_EVERY == 0:
            writes.append(("DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?", (MOST_EVENTS_KEPT,)))
        return writes
