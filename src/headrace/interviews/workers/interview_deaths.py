"""How a worker's end is understood by the interviews it had: whether they may have caused it, and what is said of it.

Covers: decisions and words. Does not cover: which interviews are suspected (interviews.workers.chunk_parts), or handing
them out again (interviews.workers.assignment).
"""

from __future__ import annotations

import signal
from enum import Enum

from headrace.survey.record import Cause
from headrace.units import format_bytes
from headrace.workers.handle import TaskEnd
from headrace.workers.wire import Death, DeathKind, TaskFailed, TaskOutOfMemory

_FULL = 0.9  # of its limit: what ends there ends for lack of memory


# By which a process ends itself. Any other signal comes from outside: an operator, the kernel when the host is short of
# memory, a container that is being stopped.
_OWN_SIGNALS = {
    signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSYS, signal.SIGTRAP,
    signal.SIGXCPU, signal.SIGXFSZ,
}  # fmt: skip
_GIVES_UP_BY = {
    signal.SIGSEGV,
    signal.SIGABRT,
    signal.SIGBUS,
}  # a library that is not Python's, also for lack of memory


class Blame(Enum):
    """What one of a dead worker's interviews may have done to end it."""

    NOTHING = "nothing"
    MEMORY = "memory"
    CRASH = "crash"


def blame_of(ending: TaskEnd) -> Blame:
    """Nothing where the worker was killed or stopped from outside, where the warden was lost, or we ended it."""
    if isinstance(ending, TaskOutOfMemory) or _is_memory(ending):
        return Blame.MEMORY
    return Blame.NOTHING if isinstance(ending, Death) and _is_from_outside(ending) else Blame.CRASH


def may_need_more_memory(ending: TaskEnd) -> bool:
    """Whether more memory might have kept it alive. A library that crashes at the limit leaves no reading of it."""
    is_given_up = isinstance(ending, Death) and ending.kind is DeathKind.SIGNALLED and ending.signal in _GIVES_UP_BY
    return is_given_up or blame_of(ending) is Blame.MEMORY


def cause_of(ending: TaskEnd) -> Cause:
    return Cause.OUT_OF_MEMORY if blame_of(ending) is Blame.MEMORY else Cause.CRASHED


def told_of(ending: TaskEnd) -> str:
    match ending:
        case TaskOutOfMemory():
            return (
                f"its worker met its memory limit, also alone ({ending.reason}; {format_bytes(ending.used_bytes)} used)"
            )
        case Death() if _is_memory(ending):
            limit, used = format_bytes(ending.limit_bytes), format_bytes(ending.peak_bytes)
            return f"its worker was ended at {used}, with a limit of {limit}, also alone"
        case Death(signal=None, reason=""):
            return f"its worker exited with code {ending.code}"
        case Death(reason=""):
            return f"its worker was ended by signal {ending.signal}"
        case Death():
            return f"its worker was ended: {ending.reason}"
        case TaskFailed():
            return f"its worker failed: {ending.reason.partition(chr(10))[0]}"
        case _:
            return "its worker ended without a word"


def _is_from_outside(death: Death) -> bool:
    is_foreign_signal = death.kind is DeathKind.SIGNALLED and death.signal not in _OWN_SIGNALS
    return is_foreign_signal or death.kind in {DeathKind.LOST, DeathKind.STOPPED}


def _is_memory(ending: TaskEnd) -> bool:
    """Also where a library that is not Python's gave up at the limit: Rust aborts, C may crash."""
    if not isinstance(ending, Death) or _is_from_outside(ending):
        return False
    at_limit = 0 < ending.limit_bytes * _FULL <= max(ending.peak_bytes, ending.reserved_bytes)
    return ending.kind is DeathKind.OUT_OF_MEMORY or at_limit
