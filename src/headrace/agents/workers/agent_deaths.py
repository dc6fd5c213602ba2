"""What the end of a worker means for the work in it. Covers: the cause, and the words that say what to do.

Does not cover: what follows (agents.scheduler.exits).
"""

from __future__ import annotations

import signal

from headrace.exit_causes import ExitCause
from headrace.units import format_bytes
from headrace.workers.handle import TaskEnd, Worker
from headrace.workers.wire import MEMORY_EXIT_CODE, Death, DeathKind, TaskDone, TaskFailed, TaskOutOfMemory

_AT_ITS_LIMIT = 0.9
_GIVES_UP_BY = {"SIGABRT", "SIGBUS", "SIGSEGV"}
_ADVICE = "Give it more (slot_memory=, or memory= of its @task), or keep large data in ctx.spool()."


def told_ending(ending: TaskEnd, step: str) -> tuple[ExitCause, str]:
    """`step` is the last that the work was about to take."""
    match ending:
        case TaskDone():
            return ExitCause.LOST, "its worker has left"
        case TaskFailed():
            return ExitCause.LOST, ending.reason
        case TaskOutOfMemory():
            return ExitCause.OUT_OF_MEMORY, _out_of_memory(f"{ending.reason}, with {_used(ending)}", step)
        case Death():
            return _died(ending, step)


def told_memory_error(reason: str, worker: Worker, peak_bytes: int, step: str) -> str:
    """Of work that could still say so itself. One large request that is refused never shows in what was in use."""
    used, limit = format_bytes(max(peak_bytes, worker.used_bytes)), format_bytes(worker.limit_bytes)
    told = reason.partition("\n")[0]
    return _out_of_memory(f"{told}, with {used} in use of the {limit} it may", step)


def _died(death: Death, step: str) -> tuple[ExitCause, str]:
    used = f"{format_bytes(death.used_bytes)} in use of the {format_bytes(death.limit_bytes)} it may"
    match death.kind:
        case DeathKind.OUT_OF_MEMORY:
            return ExitCause.OUT_OF_MEMORY, _out_of_memory(f"killed with {used}", step)
        case DeathKind.HUNG if death.used_bytes >= death.limit_bytes * _AT_ITS_LIMIT:
            return ExitCause.OUT_OF_MEMORY, _out_of_memory(f"killed: {death.reason}, with {used}", step)
        case DeathKind.EXITED if death.code == MEMORY_EXIT_CODE:
            return ExitCause.OUT_OF_MEMORY, _out_of_memory(f"MemoryError, with {used}", step)
        case DeathKind.EXITED:
            return ExitCause.LOST, f"its worker exited with code {death.code}{_where(step)}"
        case DeathKind.SIGNALLED if _gave_up_at_its_limit(death):
            told = (
                f"{_signal_name(death.signal)} at its limit, with {format_bytes(death.reserved_bytes)} reserved, {used}"
            )
            return ExitCause.OUT_OF_MEMORY, _out_of_memory(told, step)
        case DeathKind.SIGNALLED:
            return ExitCause.LOST, f"its worker was killed by {_signal_name(death.signal)}, with {used}{_where(step)}"
        case DeathKind.LOST | DeathKind.HUNG | DeathKind.STOPPED | DeathKind.TOO_MUCH_OUTPUT:
            return ExitCause.LOST, f"its worker was lost{_where(step)}: {death.reason}"


def _gave_up_at_its_limit(death: Death) -> bool:
    """Rust and C++ abort where Python would raise, and C may crash."""
    in_use_bytes = max(death.used_bytes, death.reserved_bytes)
    is_at_limit = in_use_bytes >= death.limit_bytes * _AT_ITS_LIMIT > 0
    return is_at_limit and _signal_name(death.signal) in _GIVES_UP_BY


def _out_of_memory(what: str, step: str) -> str:
    return f"{what}{_where(step)}. {_ADVICE}"


def _used(ending: TaskOutOfMemory) -> str:
    """A limit met by reservations (stacks, one huge array) is told apart from memory really used."""
    used, reserved = format_bytes(ending.used_bytes), format_bytes(ending.reserved_bytes)
    return f"{used} resident and {reserved} reserved"


def _where(step: str) -> str:
    return f", in step {step!r}" if step else ", before its first step"


def _signal_name(number: int | None) -> str:
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"
