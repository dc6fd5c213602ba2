"""What the end of a worker process means: one table for interviews and agent runs.

    how it ended                                        share of its limit   cause of death
    ──────────────────────────────────────────────────────────────────────────────────────────
    the warden or its cgroup killed it above its limit          any          out of memory
    it reported a MemoryError, or exited with code 71           any          out of memory  (1)
    SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGTRAP                at its limit    out of memory  (2)
                                                               below         crashed
    it exited with another code than 0                       at its limit    out of memory  (3)
                                                               below         crashed
    it exited with code 0                                       any          crashed        (4)
    SIGFPE, SIGSYS, SIGXCPU, SIGXFSZ                            any          crashed        (5)
    it was killed because it took no step in time            at its limit    out of memory  (6)
                                                               below         hung
    any other signal: SIGKILL, SIGTERM, SIGHUP, ...             any          lost           (7)
    SIGSTOP, for longer than the warden waits                   any          lost           (7)
    the warden ended, or could not start it                     any          lost
    its task ended or failed, and nothing else was said         any          crashed        (8)
    it wrote more than it may (programs, never workers)         any          crashed

"At its limit" is 90 % or more, in use or reserved, of the last reading, or of the reading it was killed for. The
highest reading of its life does not count: it may be that of an earlier task, or under a higher limit.

1  One large request that is refused never shows in a reading: the process's own word counts.
2  Rust, C++ and V8 abort or trap where Python would raise a MemoryError; C may use the NULL that malloc returned.
3  C libraries that exit when an allocation fails. It may also be chance; the work is then tried again with more memory,
   which costs less than trying again and again with too little.
4  It left in the middle of its work, and thought that all was well.
5  Arithmetic, a forbidden system call, CPU time, the size of a file: none of them is about memory.
6  A process at its limit that goes nowhere waits for memory.
7  From outside: an operator, a container that is being stopped, or the kernel of a host that is short of memory, for
   which a worker with a higher limit would be worse. The work in it is not why it died, also at 95 % of its limit.
8  Work reports its end itself, before its worker's task ends.

Does not cover: what is said of a death to users, and what follows for the work (interviews.workers.interview_deaths,
agents.workers.agent_deaths). A program that a step runs is reported as it ended, not as what that means
(workers.command): its exit code and signal are the step's result.
"""

from __future__ import annotations

import signal
from enum import Enum

from headrace.workers.handle import TaskEnd
from headrace.workers.wire import MEMORY_EXIT_CODE, Death, DeathKind, TaskDone, TaskFailed, TaskOutOfMemory

_AT_ITS_LIMIT = 0.9
# By name: not every system has all of them. The first are how native code ends itself when an allocation fails.
_GIVES_UP_BY = {"SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGTRAP"}
_OTHER_OWN_SIGNALS = {"SIGFPE", "SIGSYS", "SIGXCPU", "SIGXFSZ"}


class DeathCause(Enum):
    """Whether the work in a worker may be why the worker died; nothing but LOST clears it."""

    OUT_OF_MEMORY = "out of memory"
    CRASHED = "crashed"
    HUNG = "hung"
    LOST = "lost"


def death_cause(ending: TaskEnd) -> DeathCause:
    """Look an ending up in the table."""
    match ending:
        case TaskOutOfMemory():
            return DeathCause.OUT_OF_MEMORY
        case TaskDone() | TaskFailed():
            return DeathCause.CRASHED
        case Death():
            return _cause_of(ending)


def may_need_more_memory(ending: TaskEnd) -> bool:
    """Return whether a higher limit might have kept the worker alive.

    Native code that crashes when one large allocation is refused leaves no reading of that: its signals count at any
    share of the limit.
    """
    match ending:
        case Death(kind=DeathKind.SIGNALLED) if signal_name(ending.signal) in _GIVES_UP_BY:
            return True
        case _:
            return death_cause(ending) is DeathCause.OUT_OF_MEMORY


def held_bytes(death: Death) -> int:
    """Return what it had in use or reserved, whichever is more: the limit holds both."""
    return max(death.used_bytes, death.reserved_bytes)


def signal_name(number: int | None) -> str:
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"


def _cause_of(death: Death) -> DeathCause:
    is_at_limit = held_bytes(death) >= death.limit_bytes * _AT_ITS_LIMIT > 0
    match death.kind:
        case DeathKind.OUT_OF_MEMORY:
            return DeathCause.OUT_OF_MEMORY
        case DeathKind.EXITED if death.code == MEMORY_EXIT_CODE or (death.code and is_at_limit):
            return DeathCause.OUT_OF_MEMORY
        case DeathKind.SIGNALLED if signal_name(death.signal) in _GIVES_UP_BY:
            return DeathCause.OUT_OF_MEMORY if is_at_limit else DeathCause.CRASHED
        case DeathKind.SIGNALLED if signal_name(death.signal) not in _OTHER_OWN_SIGNALS:
            return DeathCause.LOST
        case DeathKind.HUNG:
            return DeathCause.OUT_OF_MEMORY if is_at_limit else DeathCause.HUNG
        case DeathKind.STOPPED | DeathKind.WARDEN_ENDED | DeathKind.LOST:
            return DeathCause.LOST
        case DeathKind.EXITED | DeathKind.SIGNALLED | DeathKind.TOO_MUCH_OUTPUT:
            return DeathCause.CRASHED
