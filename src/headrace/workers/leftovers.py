"""Finds what a task has left in its worker that would run beside the next task, or change its surroundings.

A worker with leftovers is ended instead of used again. Covers: threads, child processes, closed standard streams,
timers, and the state of the process: working directory, signal handlers, limits, user and umask. Does not cover: memory
that was not given back (workers.pool), and changed modules and environment variables, which ordinary imports change as
well.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Collection
from typing import NamedTuple

from headrace.memory.measure.os_limits import own_limits
from headrace.memory.measure.process import contents

_FIELDS = (b"\nUmask:", b"\nUid:", b"\nGid:", b"\nSigBlk:", b"\nSigIgn:")
_CAUGHT = b"\nSigCgt:"
# Without those that faulthandler catches, which many a module enables when it is imported, and which is harmless; and
# without those beyond 31, of which the C library catches some when it starts the first thread.
_CRASHES = (signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, getattr(signal, "SIGBUS", 0), signal.SIGILL)
_COUNTED = (1 << 31) - 1 & ~sum(1 << number - 1 for number in _CRASHES if number)


class ProcessState(NamedTuple):
    """The state of this process, compared before and after a task; reading it takes 16 us. `fields` are lines of
    /proc/self/status, `caught` the signals with a handler, as bits.
    """

    directory: str
    limits: tuple[tuple[int, int], ...]
    fields: tuple[bytes, ...]
    caught: int

    @classmethod
    def now(cls) -> ProcessState:
        status = contents("/proc/self/status")
        caught = int(_field(status, _CAUGHT) or b"0", 16) & _COUNTED
        return cls(_directory(), own_limits(), tuple(_field(status, name) for name in _FIELDS), caught)


def is_something_left(before: ProcessState, threads_that_end: Collection[str]) -> bool:
    """Return whether anything is left. Threads whose names begin with `threads_that_end` are ended by their owners."""
    return (
        _has_threads(tuple(threads_that_end))
        or _has_children()
        or _lacks_streams()
        or _has_timers()
        or ProcessState.now() != before
    )


def _has_threads(that_end: tuple[str, ...]) -> bool:
    others = (thread for thread in threading.enumerate() if thread is not threading.main_thread())
    return any(not thread.name.startswith(that_end) for thread in others)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _lacks_streams() -> bool:
    try:
        for descriptor in range(3):
            os.fstat(descriptor)
    except OSError:
        return True
    return False


def _has_timers() -> bool:
    timers = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
    return any(signal.getitimer(timer)[0] for timer in timers)


def _directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib is more than this needs
    except OSError:
        return ""  # it was removed


def _field(status: bytes, name: bytes) -> bytes:
    at = status.find(name)
    return status[at + len(name) : status.find(b"\n", at + 1)] if at >= 0 else b""
