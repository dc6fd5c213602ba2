"""Notices that the engine's event loop is stuck, and reports what blocks it while it does.

A thread looks five times a second whether the loop has beaten. Code that holds Python's lock, a regular expression for
instance, stops that thread too. So a kernel timer has the loop's thread dump its stack to a file beside the engine's
(threads.traceback_timer), where other processes see it and where it stays if the process never goes on; the thread
reports it as soon as it can run. Where there is no such timer, the thread takes the stack itself, late as it may be.
Does not cover: loops in workers, which the warden watches from outside (workers.warden.stuck).
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from headrace.plain_files.side_files import is_only_ours, open_side_file
from headrace.threads.stack_dump import places_in, read_dump
from headrace.threads.traceback_timer import TracebackTimer

_LOOK_EVERY_S = 0.2
_LONGEST_S = 86_400.0  # a longer time than a day means: never
_ARM_AGAIN_AFTER = 0.25  # of the time that makes it stuck


def stuck_file(engine_file: Path) -> Path:
    return engine_file.with_name(f".{engine_file.name}-stuck")


class StuckLoopWatch:
    """Made in the loop's thread, where the loop calls `beat`. `report` gets the stack once each time it is stuck,
    in the watch's own thread. `stack` is that of the code that blocks the loop now.
    """

    def __init__(self, stuck_after_s: float, report: Callable[[str], None], path: Path) -> None:
        self._stuck_after_s = stuck_after_s
        self._report = report
        self._ident = threading.get_ident()
        self._is_over = threading.Event()
        self.stack: str | None = None
        if left := _left_behind(path):
            report(f"until an earlier process ended, by:\n{left}")
        self._timer = TracebackTimer.take(path) if stuck_after_s < _LONGEST_S else None
        self._is_reported = False
        self._unreported: str | None = None  # a stack of a loop that went on before the watch's thread could run
        self._beat_s = self._armed_s = time.monotonic()
        self._arm()
        self._thread = threading.Thread(target=self._watch, name="headrace-watch", daemon=True)
        self._thread.start()

    def beat(self) -> None:
        """Note that the loop turns, and now and then set the timer anew."""
        now_s = self._beat_s = time.monotonic()
        if now_s - self._armed_s >= self._stuck_after_s * _ARM_AGAIN_AFTER and self.stack is None:
            self._armed_s = now_s
            self._arm()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        if self._timer is not None:
            self._timer.close()

    def _arm(self) -> None:
        if self._timer is None:
            return
        if not self._is_reported:
            self._unreported = self._timer.stack()
        self._is_reported = False
        self._timer.arm(self._stuck_after_s * (1 + _ARM_AGAIN_AFTER))

    def _watch(self) -> None:
        while not self._is_over.wait(_LOOK_EVERY_S):
            unreported, self._unreported = self._unreported, None
            if unreported is not None:
                self._report(f"for at least {self._stuck_after_s:g} s, by:\n{unreported}")
            since_s = time.monotonic() - self._beat_s
            if since_s < self._stuck_after_s:
                self.stack = None
            elif self.stack is None:
                self._is_reported = True
                self.stack = self._stack()
                self._report(f"for {since_s:.1f} s so far, by:\n{self.stack}")

    def _stack(self) -> str:
        return (self._timer.stack() if self._timer is not None else None) or _stack_of(self._ident)


def _left_behind(path: Path) -> str:
    """Return the stack that a process wrote which was stuck and never went on, and remove its file.

    The file may have come with an engine file from elsewhere: what it names is not read, for the engine journals it.
    """
    try:
        file = open_side_file(path)
    except OSError:
        return ""
    try:
        dump = read_dump(file) if is_only_ours(file) else ""
    finally:
        os.close(file)
    with suppress(OSError):  # a directory that cannot be written
        path.unlink()
    return places_in(dump)


def _stack_of(ident: int) -> str:
    # The only way to see another thread's stack.
    frame = sys._current_frames().get(ident)  # pyright: ignore[reportPrivateUsage]
    return "".join(traceback.format_stack(frame, limit=12)) if frame is not None else "(the loop has ended)"
