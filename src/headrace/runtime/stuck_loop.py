"""Notices an event loop that is stuck and says what blocks it, while it does. A thread of its own.

Code that holds Python's lock delays the thread; the stack is then taken at the first moment the lock is given up.
`faulthandler` would not wait, but there is one of it for a whole process, and it may be someone else's.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable

_LOOK_EVERY_S = 0.2


class StuckLoopWatch:
    """`beat` is called by the loop; `report` with the stack, once each time it is stuck, in the watch's thread."""

    def __init__(self, stuck_after_s: float, report: Callable[[str], None]) -> None:
        self._stuck_after_s = stuck_after_s
        self._report = report
        self._beat_s = time.monotonic()
        self._ident = threading.get_ident()
        self._over = threading.Event()
        self.stack: str | None = None  # of what blocks the loop now
        self._thread = threading.Thread(target=self._watch, name="headrace-watch", daemon=True)
        self._thread.start()

    def beat(self) -> None:
        self._beat_s = time.monotonic()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_EVERY_S):
            since_s = time.monotonic() - self._beat_s
            if since_s < self._stuck_after_s:
                self.stack = None
            elif self.stack is None:
                self.stack = _stack_of(self._ident)
                self._report(f"for {since_s:.1f} s so far, by:\n{self.stack}")


def _stack_of(ident: int) -> str:
    # The only way to see another thread's stack.
    frame = sys._current_frames().get(ident)  # pyright: ignore[reportPrivateUsage]
    return "".join(traceback.format_stack(frame, limit=12)) if frame is not None else "(the loop has ended)"
