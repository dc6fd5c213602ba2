"""Notices that a worker's event loop is stuck, and asks what blocks it while it is. The warden's side.

A loop that waits for something is not stuck, however long: its count of turns is even then. So a thread that keeps
Python's lock from a loop that waits is not seen. Does not cover: the worker's side (workers.watched_loop).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from headrace.workers.progress_page import Place
from headrace.workers.wire import Stuck

ASK_FOR_STACK = signal.SIGURG  # by default it is ignored: the worker may have become another program
STACK_FILE = "headrace-stack"
_STACK_WITHIN_S = 0.5  # a process that is stopped writes none
_LONGEST_STACK_BYTES = 1 << 16


@dataclass(slots=True)
class LoopWatch:
    """Told once each time it is stuck."""

    worker: int
    pid: int
    place: Place
    turns: int = 0
    since: float = 0.0
    is_asked: bool = False
    is_told: bool = False
    stack: bytes = b""

    def look(self, now: float, stuck_after_s: float) -> Stuck | None:
        turns = self.place.turns
        if turns != self.turns:
            self.turns, self.since = turns, now
            self.is_asked = self.is_told = False
            return None
        stuck_s = now - self.since
        if not turns % 2 or self.is_told or stuck_s < stuck_after_s:
            return None
        if not self.is_asked:
            self.is_asked, self.stack = True, b""
            self._ask()
            return None
        before, self.stack = self.stack, self._written()
        if self.stack != before or (not self.stack and stuck_s < stuck_after_s + _STACK_WITHIN_S):
            return None  # more may follow
        self.is_told = True
        return Stuck(self.worker, stuck_s, self.stack.decode("utf-8", "replace"))

    def _ask(self) -> None:
        with suppress(OSError), self._file() as file:
            os.ftruncate(file, 0)
            os.kill(self.pid, ASK_FOR_STACK)

    def _written(self) -> bytes:
        with suppress(OSError), self._file() as file:
            return os.pread(file, _LONGEST_STACK_BYTES, 0)
        return b""

    @contextmanager
    def _file(self) -> Generator[int]:
        """OSError where there is none: it has ended, or closed it, and may have another file of that number."""
        path = f"/proc/{self.pid}/fd/{self.place.stacks}"
        if STACK_FILE not in os.readlink(path):  # noqa: PTH115 - pathlib is more than this needs
            raise FileNotFoundError(path)
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            yield file
        finally:
            os.close(file)
