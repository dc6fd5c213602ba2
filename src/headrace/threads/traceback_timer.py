"""A kernel timer that has one thread of this process dump its stack when the time is up. Linux only.

The kernel keeps the time and sends the signal, so that it also works while a regular expression, say, keeps every
Python thread from running. Does not cover: the dump itself (threads.stack_dump), or what the time is
(threads.stuck_loop).
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from headrace.plain_files.side_files import NO_LINK
from headrace.threads.stack_dump import DUMP_SIGNAL, clear_dump, dump_on_signal, frames_in, read_dump

_NOTIFIES_A_THREAD = 4  # SIGEV_THREAD_ID
_taken = threading.Lock()


class TracebackTimer:
    """Made by `take` for the calling thread. `arm` sets the time anew; `stack` is what was written when it was up."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._timer = _KernelTimer(threading.get_native_id())
        try:
            self._file = _made_anew(path)
        except OSError:
            self._timer.close()
            raise
        dump_on_signal(self._file)

    @classmethod
    def take(cls, path: Path) -> TracebackTimer | None:
        """Return None where another engine has it, the program uses that signal, or the system has no such timer."""
        if not sys.platform.startswith("linux") or not _taken.acquire(blocking=False):
            return None
        with suppress(OSError, AttributeError):  # what a C library lacks is an AttributeError
            if signal.getsignal(DUMP_SIGNAL) in (signal.SIG_DFL, signal.SIG_IGN):
                return cls(path)
        _taken.release()
        return None

    def arm(self, seconds: float) -> None:
        clear_dump(self._file)
        self._timer.set(seconds)

    def stack(self) -> str | None:
        return frames_in(read_dump(self._file)) or None

    def close(self) -> None:
        self._timer.close()
        faulthandler.unregister(DUMP_SIGNAL)
        os.close(self._file)
        self._path.unlink(missing_ok=True)
        _taken.release()


def _made_anew(path: Path) -> int:
    """Make the file where there is nothing: one that lies there could be a link that leads elsewhere."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | NO_LINK, 0o600)


class _KernelTimer:
    """Sends the signal to one thread of this process."""

    def __init__(self, thread: int) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._timer = ctypes.c_void_p()
        event = _SignalEvent(signal=DUMP_SIGNAL, notify=_NOTIFIES_A_THREAD, thread=thread)
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
