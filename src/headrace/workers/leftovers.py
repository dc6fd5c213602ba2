"""What a run has left in its worker that would go on beside the next one, or change what that one meets.

Covers: threads, children, streams, timers, and what belongs to the process as a whole: its directory, signals, limits,
user and umask. Does not cover: memory (workers.pool), and what Python code has made of modules and of the
environment, which imports change as well.
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
# Not those that faulthandler catches, in many a module as soon as it is imported: nobody is harmed by that. Nor those
# beyond 31: the C library catches some with the first thread.
_CRASHES = (signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, getattr(signal, "SIGBUS", 0), signal.SIGILL)
_COUNTED = (1 << 31) - 1 & ~sum(1 << number - 1 for number in _CRASHES if number)


class ProcessState(NamedTuple):
    """Compared with what it was before a run; 16 us each time."""

    directory: str
    limits: tuple[tuple[int, int], ...]
    told: tuple[bytes, ...]
    caught: int  # signals, as bits

    @classmethod
    def now(cls) -> ProcessState:
        told = contents("/proc/self/status")
        caught = int(_told(told, _CAUGHT) or b"0", 16) & _COUNTED
        return cls(_directory(), own_limits(), tuple(_told(told, field) for field in _FIELDS), caught)


def is_something_left(before: ProcessState, threads_that_end: Collection[str]) -> bool:
    """`threads_that_end` are beginnings of names: whoever started those ends them."""
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


def _told(told: bytes, field: bytes) -> bytes:
    at = told.find(field)
    return told[at + len(field) : told.find(b"\n", at + 1)] if at >= 0 else b""
