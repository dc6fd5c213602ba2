"""The stack of a thread, written to a file when a time is up: also while nothing of Python can run.

The kernel has the time, and tells the thread itself by a signal whose handler, faulthandler's, is C: the stack stands
still while it is written. `faulthandler.dump_traceback_later` writes from a thread of its own, and is a crash of the
whole process where the first thread was only slow and goes on meanwhile. Linux only.
Does not cover: when the time is up (threads.stuck_loop).
"""

from __future__ import annotations

import ctypes
import faulthandler
import linecache
import os
import re
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

_TIME_IS_UP: int = getattr(signal, "SIGURG", 0)  # ignored by default: one that comes late harms nobody
_TELLS_A_THREAD = 4  # SIGEV_THREAD_ID
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)$', re.MULTILINE)
_MOST_FRAMES = 12
_MOST_BYTES = 1_000_000
_taken = threading.Lock()


class TracebackTimer:
    """Made by `take` for the calling thread. `arm` puts the time off; `told` is the stack where it was not, in time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._timer = _KernelTimer(threading.get_native_id())
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        except OSError:
            self._timer.close()
            raise
        faulthandler.register(_TIME_IS_UP, file=self._file, all_threads=False)

    @classmethod
    def take(cls, path: Path) -> TracebackTimer | None:
        """None where another engine has it, the program uses that signal, or the system has no such timer."""
        if not sys.platform.startswith("linux") or not _taken.acquire(blocking=False):
            return None
        with suppress(OSError, AttributeError):  # what a C library lacks is an AttributeError
            if signal.getsignal(_TIME_IS_UP) in (signal.SIG_DFL, signal.SIG_IGN):
                return cls(path)
        _taken.release()
        return None

    def arm(self, seconds: float) -> None:
        os.ftruncate(self._file, 0)
        self._timer.set(seconds)

    def told(self) -> str | None:
        return stack_in(os.pread(self._file, _MOST_BYTES, 0).decode("utf-8", "replace"))

    def close(self) -> None:
        self._timer.close()
        faulthandler.unregister(_TIME_IS_UP)
        os.close(self._file)
        self._path.unlink(missing_ok=True)
        _taken.release()


class _KernelTimer:
    """Sends the signal to one thread of this process."""

    def __init__(self, thread: int) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._timer = ctypes.c_void_p()
        event = _SignalEvent(signal=_TIME_IS_UP, notify=_TELLS_A_THREAD, thread=thread)
        self._check(self._library.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer)))

    def set(self, seconds: float) -> None:
        whole, part = divmod(int(seconds * 1e9), 1_000_000_000)
        times = (ctypes.c_long * 4)(0, 0, whole, part)  # once
        self._check(self._library.timer_settime(self._timer, 0, times, None))

    def close(self) -> None:
        self._library.timer_delete(self._timer)

    def _check(self, result: int) -> None:
        if result:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class _SignalEvent(ctypes.Structure):
    """struct sigevent."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread", ctypes.c_int),
        ("rest", ctypes.c_char * 44),
    )


def stack_in(written: str) -> str | None:
    """The stack in such a file, the innermost call last; None where the time was never up."""
    return frames_in(written) or None


def frames_in(dumped: str) -> str:
    """What faulthandler has written of one thread, with the lines of code, the innermost call last."""
    frames = list(_FRAME.finditer(dumped))[:_MOST_FRAMES]
    return "".join(map(_told, reversed(frames)))


def _told(frame: re.Match[str]) -> str:
    source = linecache.getline(frame["file"], int(frame["line"])).strip()
    place = f'  File "{frame["file"]}", line {frame["line"]}, in {frame["name"]}\n'
    return f"{place}    {source}\n" if source else place
