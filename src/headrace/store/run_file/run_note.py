"""What a run file says of one run: when it began and ended, its highest memory, how its endpoints did.

The end is noted with the journal's commits while the run goes on, at most once a second: after a kill, the time until
the last of them is known.
Does not cover: reading it (store.run_file.details).
"""

from __future__ import annotations

from contextlib import suppress

import apsw

from headrace.steady_clock import SteadyClock
from headrace.store.transactions import transaction

_NOTED_EVERY_S = 1.0


class RunNote:
    """Made when the run begins, and on disk then."""

    def __init__(self, connection: apsw.Connection, reused: int) -> None:
        self._connection = connection
        self._clock = SteadyClock.from_wall()
        self._noted_at = self._clock.now()
        with transaction(connection):
            connection.execute("INSERT INTO runs(started_at, reused) VALUES(?, ?)", (self._noted_at, reused))
        self._number = connection.last_insert_rowid()

    def goes_on(self) -> None:
        """Inside a transaction of the journal."""
        now = self._clock.now()
        if now - self._noted_at >= _NOTED_EVERY_S:
            self._noted_at = now
            self._connection.execute("UPDATE runs SET ended_at = ? WHERE number = ?", (now, self._number))

    def ended(self, peak_bytes: int, outcome: str, endpoints: str) -> None:
        """On a full disk the note is lost, and nothing else: the run's own error must stand."""
        with suppress(apsw.FullError, apsw.IOError), transaction(self._connection):
            self._connection.execute(
                "UPDATE runs SET ended_at = ?, peak_memory_bytes = ?, outcome = ?, endpoints = ? WHERE number = ?",
                (self._clock.now(), peak_bytes, outcome, endpoints, self._number),
            )
