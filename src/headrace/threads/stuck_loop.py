"""Notices an event loop that is stuck and says what blocks it, while it does. A thread of its own.

Code that holds Python's lock, a regular expression for instance, stops that thread too. So the kernel has the loop's
thread write its stack to a file beside the engine's (threads.traceback_timer), where other processes see it and where
it is left if the process never goes on; the watch reports it as soon as it can. Where that timer is not to be had, the
watch takes the stack itself, late as it may be.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from headrace.threads.traceback_timer import TracebackTimer, stack_in

_LOOK_EVERY_S = 0.2
_LONGEST_S = 86_400.0  # who waits longer than a day does not want to know
_ARM_AGAIN_AFTER = 0.25  # of the time that makes it stuck


def stuck_file(engine_file: Path) -> Path:
    return engine_file.with_name(f".{engine_file.name}-stuck")


class StuckLoopWatch:
    """`beat` is called by the loop; `report` with the stack, once each time it is stuck, in the watch's thread."""

    def __init__(self, stuck_after_s: float, report: Callable[[str], None], path: Path) -> None:
        self._stuck_after_s = stuck_after_s
        self._report = report
        self._ident = threading.get_ident()
        self._over = threading.Event()
        self.stack: str | None = None  # of what blocks the loop now
        if left := _left_behind(path):
            report(f"until an earlier process ended, by:\n{left}")
        self._timer = TracebackTimer.take(path) if stuck_after_s < _LONGEST_S else None
        self._is_reported = False
        self._missed: str | None = None  # a stack that nobody has reported yet, of a loop that goes on
        self._beat_s = self._armed_s = time.monotonic()
        self._arm()
        self._thread = threading.Thread(target=self._watch, name="headrace-watch", daemon=True)
        self._thread.start()

    def beat(self) -> None:
        now_s = self._beat_s = time.monotonic()
        if now_s - self._armed_s >= self._stuck_after_s * _ARM_AGAIN_AFTER and self.stack is None:
            self._armed_s = now_s
            self._arm()

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        if self._timer is not None:
            self._timer.close()

    def _arm(self) -> None:
        if self._timer is None:
            return
        if not self._is_reported:
            self._missed = self._timer.told()
        self._is_reported = False
        self._timer.arm(self._stuck_after_s * (1 + _ARM_AGAIN_AFTER))

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_EVERY_S):
            missed, self._missed = self._missed, None
            if missed is not None:
                self._report(f"for at least {self._stuck_after_s:g} s, by:\n{missed}")
            since_s = time.monotonic() - self._beat_s
            if since_s < self._stuck_after_s:
                self.stack = None
            elif self.stack is None:
                self._is_reported = True
                self.stack = self._stack()
                self._report(f"for {since_s:.1f} s so far, by:\n{self.stack}")

    def _stack(self) -> str:
        return (self._timer.told() if self._timer is not None else None) or _stack_of(self._ident)


def _left_behind(path: Path) -> str | None:
    """What a process wrote that was stuck and never went on."""
    try:
        written = path.read_text("utf-8", "replace")
    except OSError:
        return None
    path.unlink(missing_ok=True)
    return stack_in(written)


def _stack_of(ident: int) -> str:
    # The only way to see another thread's stack.
    frame = sys._current_frames().get(ident)  # pyright: ignore[reportPrivateUsage]
    return "".join(traceback.format_stack(frame, limit=12)) if frame is not None else "(the loop has ended)"
