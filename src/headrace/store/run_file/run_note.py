"""The entry of one run in the table `runs`: when it began and ended, its highest memory, its endpoints' statistics.

The end is written with the journal's commits while the run goes on, at most once a second: after a kill the file says
until when the run went on. Does not cover: reading it (details).
"""

from __future__ import annotations

from contextlib import suppress

import apsw

from headrace.errors import RunFileBusy
from headrace.steady_clock import SteadyClock
from headrace.store.live_file import LiveFile

_NOTED_EVERY_S = 1.0


class RunNote:
    """The row of one run in the table `runs`. It is on disk when it is made."""

    def __init__(self, live: LiveFile, reused: int) -> None:
        self._live = live
        self._connection = live.connection
        self._clock = SteadyClock.from_wall()
        self._noted_at = self._clock.now()
        with live.transaction():
            self._connection.execute("INSERT INTO runs(started_at, reused) VALUES(?, ?)", (self._noted_at, reused))
            self._number = self._connection.last_insert_rowid()

    def still_running(self) -> None:
        """Move the end to now, inside a transaction of the journal."""
        now = self._clock.now()
        if now - self._noted_at >= _NOTED_EVERY_S:
            self._noted_at = now
            self._connection.execute("UPDATE runs SET ended_at = ? WHERE number = ?", (now, self._number))

    def ended(self, peak_bytes: int, outcome: str, endpoints: str) -> None:
        """Note the end. On a full disk, or in a file that another process has taken over, the note is lost and nothing
        else: the run's own error must stand.
        """
        with suppress(apsw.FullError, apsw.IOError, RunFileBusy), self._live.transaction():
            self._connection.execute(
                "UPDATE runs SET ended_at = ?, peak_memory_bytes = ?, outcome = ?, endpoints = ? WHERE number = ?",
                (self._clock.now(), peak_bytes, outcome, endpoints, self._number),
            )
