"""Reading an engine file from outside, also while an engine writes it: one connection for one short look.

Covers: opening, one moment, the time limit, the memory history. Does not cover: an engine's own reads (engine_file), or
what is read (engine_overview, engine_pages).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from headrace.memory.bounded_history import HistoryPoint
from headrace.store.connections import open_reader
from headrace.store.contents import decoding
from headrace.store.disk_errors import translated_errors
from headrace.store.engine_file.engine_schema import check_is_engine_file
from headrace.store.engine_file.engine_values import ValueReader
from headrace.store.hardening import keep_time
from headrace.store.history.stored_history import highest_memory_bytes, read_history
from headrace.store.queries.query_clock import TIMEOUT_S, QueryClock
from headrace.store.transactions import transaction


class EngineReader(ValueReader):
    """What is read in one block of `reading_engine`, of one moment of the file."""

    def memory_history(self) -> list[HistoryPoint]:
        """The points in order, at most some hundred; none in a file that no newer engine has opened yet."""
        with translated_errors(self.path):
            return read_history(self._connection, self.path)

    def counts_preemptions(self) -> bool:
        """Whether its runs have the column: an older version made none, and an engine adds it."""
        made = self.one(str, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'runs'") or ""
        return " preempted " in made

    def peak_memory_bytes(self) -> int | None:
        with translated_errors(self.path), decoding(self.path, "its memory history"):
            return highest_memory_bytes(self._connection)


@contextmanager
def reading_engine(path: Path, timeout_s: float = TIMEOUT_S) -> Generator[EngineReader]:
    """Read an engine file inside one short transaction. What takes longer than the limit ends with QueryTimeout."""
    connection = open_reader(path, check_is_engine_file)
    try:
        keep_time(connection, QueryClock(timeout_s))
        with translated_errors(path, is_read_only=True), transaction(connection):
            yield EngineReader(path, connection)
    finally:
        connection.close()
