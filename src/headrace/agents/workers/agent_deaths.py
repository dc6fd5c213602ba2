"""What a worker's death means for the agent runs in it: their exit cause, and the words that say what to do.

Does not cover: what the cause of a death is (workers.deaths), or what follows for a run (agents.scheduler.exits).
"""

from __future__ import annotations

from headrace.exit_causes import ExitCause
from headrace.units import format_bytes
from headrace.workers.deaths import DeathCause, death_cause, signal_name
from headrace.workers.handle import TaskEnd, Worker
from headrace.workers.wire import MEMORY_EXIT_CODE, Death, DeathKind, TaskDone, TaskFailed, TaskOutOfMemory


def set_aside_in_words(first: str, last: str, *, is_tried_again: bool) -> str:
    """Say of a run that ran out of memory for good what it had in both tries, and what to do; `first` is empty where
    an earlier engine saw it.
    """
    facts, separator, trace = last.partition("\n\n")
    facts = facts.rstrip(".")
    if not is_tried_again:
        what = f"{facts}; it was not tried again, since its @task has oom_retry=False"
        options = "slot_memory=, or memory= of its @task"
    else:
        before = first.partition("\n")[0].rstrip(".")
        what = f"first {before}; on its second try {facts}" if before else f"on its second try {facts}"
        options = "memory= of its @task, slot_memory=, or oom_retry_memory= for a second try"
    return f"{what}. Give it more ({options}), or keep large data in ctx.spool().{separator}{trace}"


def exit_after_death(ending: TaskEnd, step: str) -> tuple[ExitCause, str]:
    """Return the exit cause of a run whose worker has ended, and the words for it; `step` is the last it began."""
    if death_cause(ending) is DeathCause.OUT_OF_MEMORY:
        return ExitCause.OUT_OF_MEMORY, f"{_out_of_memory(ending)}{_where(step)}"
    match ending:
        case TaskFailed():
            return ExitCause.LOST, ending.reason
        case Death():
            return ExitCause.LOST, _lost(ending, step)
        case TaskDone() | TaskOutOfMemory():
            return ExitCause.LOST, "its worker has left"


def is_own_death(ending: TaskEnd) -> bool:
    """Whether the runs in a worker may be why it ended: not where the warden ended, and every worker with it."""
    return not (isinstance(ending, Death) and ending.kind is DeathKind.WARDEN_ENDED)


def memory_error_in_words(reason: str, worker: Worker, peak_bytes: int, step: str) -> str:
    """Say of a run that met a MemoryError itself what it used. A large request that is refused does not show there."""
    used_bytes = max(peak_bytes, worker.used_bytes)
    used, limit = format_bytes(used_bytes), format_bytes(worker.limit_bytes)
    error, counted_bytes = reason.partition("\n")[0], worker.counted_bytes
    reserved = f" and {format_bytes(counted_bytes)} reserved" if counted_bytes > used_bytes else ""
    return f"{error}, with {used} in use{reserved} of the {limit} it may{_where(step)}"


def _out_of_memory(ending: TaskEnd) -> str:
    match ending:
        case Death(kind=DeathKind.HUNG):
            return f"killed: {ending.reason}, with {_in_use(ending)}"
        case Death(kind=DeathKind.EXITED, code=code) if code == MEMORY_EXIT_CODE:
            return f"MemoryError, with {_in_use(ending)}"
        case Death(kind=DeathKind.EXITED):
            return f"exited with code {ending.code} at its limit, with {_reserved(ending)}, {_in_use(ending)}"
        case Death(kind=DeathKind.SIGNALLED):
            return f"{signal_name(ending.signal)} at its limit, with {_reserved(ending)}, {_in_use(ending)}"
        case Death():
            return f"killed with {_in_use(ending)}"
        case TaskOutOfMemory():  # a limit met by reservations (stacks, one huge array) shows as such
            return f"{ending.reason}, with {format_bytes(ending.used_bytes)} resident and {_reserved(ending)}"
        case TaskDone() | TaskFailed():
            return ""


def _lost(death: Death, step: str) -> str:
    match death.kind:
        case DeathKind.EXITED:
            return f"its worker exited with code {death.code}{_where(step)}"
        case DeathKind.SIGNALLED:
            return f"its worker was killed by {signal_name(death.signal)}, with {_in_use(death)}{_where(step)}"
        case _:
            return f"its worker was lost{_where(step)}: {death.reason}"


def _in_use(death: Death) -> str:
    return f"{format_bytes(death.used_bytes)} in use of the {format_bytes(death.limit_bytes)} it may"


def _reserved(ending: Death | TaskOutOfMemory) -> str:
    return f"{format_bytes(ending.reserved_bytes)} reserved"


def _where(step: str) -> str:
    return f", in step {step!r}" if step else ", before its first step"
