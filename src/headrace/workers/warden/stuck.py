"""Notices that a worker's event loop is stuck, and asks for its stack while it is. The warden's side.

A loop that waits is not stuck, however long: its count of turns is even then. So a thread that keeps Python's lock from
a loop that waits is not seen. Does not cover: the worker's side (workers.watched_loop), the dump (threads.stack_dump).
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from headrace.threads.stack_dump import DUMP_SIGNAL, clear_dump, read_dump
from headrace.workers.progress_page import WorkerCounters
from headrace.workers.wire import Stuck

DUMP_FILE = "headrace-stack"  # the name of the worker's memfd
_DUMP_WITHIN_S = 0.5  # a process that is stopped writes none


@dataclass(slots=True)
class LoopWatch:
    """One worker's loop, reported once each time it is stuck."""

    worker: int
    pid: int
    counters: WorkerCounters
    turns: int = 0
    since: float = 0.0
    is_asked: bool = False
    is_reported: bool = False
    dump: str = ""

    def look(self, now: float, stuck_after_s: float) -> Stuck | None:
        """Return the report, when the loop has not turned for so long and its stack has been written."""
        turns = self.counters.turns
        if turns != self.turns:
            self.turns, self.since = turns, now
            self.is_asked = self.is_reported = False
            return None
        stuck_s = now - self.since
        if not turns % 2 or self.is_reported or stuck_s < stuck_after_s:
            return None
        if not self.is_asked:
            self.is_asked, self.dump = True, ""
            self._ask()
            return None
        before, self.dump = self.dump, self._read()
        if self.dump != before or (not self.dump and stuck_s < stuck_after_s + _DUMP_WITHIN_S):
            return None  # more may follow
        self.is_reported = True
        return Stuck(self.worker, stuck_s, self.dump)

    def _ask(self) -> None:
        with suppress(OSError), self._file() as file:
            clear_dump(file)
            os.kill(self.pid, DUMP_SIGNAL)

    def _read(self) -> str:
        with suppress(OSError), self._file() as file:
            return read_dump(file)
        return ""

    @contextmanager
    def _file(self) -> Generator[int]:
        """Open the worker's memfd; an OSError where it has ended, or uses that descriptor for another file."""
        path = f"/proc/{self.pid}/fd/{self.counters.dump_file}"
        if DUMP_FILE not in os.readlink(path):  # noqa: PTH115 - pathlib is more than this needs
            raise FileNotFoundError(path)
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            yield file
        finally:
            os.close(file)
