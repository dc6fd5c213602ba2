"""What a worker's death means for the agent runs in it: their exit cause, and the words that say what to do.

Does not cover: what the cause of a death is (workers.deaths), or what follows for a run (agents.scheduler.exits).
"""

from __future__ import annotations

from headrace.exit_causes import ExitCause
from headrace.units import format_bytes
from headrace.workers.deaths import DeathCause, death_cause, signal_name
from headrace.workers.handle import TaskEnd, Worker
from headrace.workers.wire import MEMORY_EXIT_CODE, Death, DeathKind, TaskDone, TaskFailed, TaskOutOfMemory

_REFUSED = ": one request for more than was left was refused"


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


def lost_in_words(reason: str, tries: int, *, is_with_parent: bool, is_with_warden: bool) -> str:
    """Say of a run that was lost for good how often it was tried."""
    if is_with_parent:
        return reason or "the worker that it shared with its parent was lost too often"
    facts, separator, trace = reason.partition("\n\n")
    alone = ", at last alone, and journaled nothing meanwhile: it seems to end the warden" if is_with_warden else ""
    return f"{facts.rstrip('.')}; it was tried {tries} times{alone}{separator}{trace}"


def in_step(step: str) -> str:
    return f", in step {step!r}" if step else ", before its first step"


def where_it_died(run: int, steps: dict[int, tuple[str, str]]) -> str:
    """Say where a run was when its worker ended. `steps` are the kind and the last step of each run in the worker, the
    parent of all first: where it waits for one child, it died in that.
    """
    first, *children = steps
    if run != first or not children:
        return in_step(steps[run][1])
    if len(children) > 1:
        return f", with its {len(children)} children in the same worker"
    kind, step = steps[children[0]]
    return f"{in_step(step)} of its child {kind!r}" if step else f", before the first step of its child {kind!r}"


def exit_after_death(ending: TaskEnd, where: str) -> tuple[ExitCause, str]:
    """Return the exit cause of a run whose worker has ended, and the words for it, with `where_it_died`."""
    if death_cause(ending) is DeathCause.OUT_OF_MEMORY:
        return ExitCause.OUT_OF_MEMORY, f"{_out_of_memory(ending)}{where}"
    match ending:
        case TaskFailed():
            return ExitCause.LOST, ending.reason
        case Death():
            return ExitCause.LOST, _lost(ending, where)
        case TaskDone() | TaskOutOfMemory():
            return ExitCause.LOST, "its worker has left"


def is_own_death(ending: TaskEnd) -> bool:
    """Whether the runs in a worker may be why it ended: not where the warden ended, and every worker with it."""
    return not (isinstance(ending, Death) and ending.kind is DeathKind.WARDEN_ENDED)


def memory_error_in_words(reason: str, worker: Worker, peak_bytes: int, where: str) -> str:
    """Say of a run that met a MemoryError itself what it used. A large request that is refused does not show there."""
    used_bytes = max(peak_bytes, worker.used_bytes)
    used, limit = format_bytes(used_bytes), format_bytes(worker.limit_bytes)
    error, counted_bytes = reason.partition("\n")[0], worker.counted_bytes
    reserved = (
        f" and {format_bytes(counted_bytes)} reserved" if used_bytes < counted_bytes <= worker.limit_bytes else ""
    )
    refused = "" if max(used_bytes, counted_bytes) > worker.limit_bytes // 2 else _REFUSED
    return f"{error}{refused}, with {used} in use{reserved} of the {limit} it may{where}"


def _out_of_memory(ending: TaskEnd) -> str:
    match ending:
        case Death(kind=DeathKind.HUNG):
            return f"killed: {ending.reason}, with {_in_use(ending)}"
        case Death(kind=DeathKind.EXITED, code=code) if code == MEMORY_EXIT_CODE:
            refused = "" if ending.used_bytes > ending.limit_bytes // 2 else _REFUSED
            return f"MemoryError{refused}, with {_in_use(ending)}"
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


def _lost(death: Death, where: str) -> str:
    match death.kind:
        case DeathKind.EXITED:
            return f"its worker exited with code {death.code}{where}"
        case DeathKind.SIGNALLED:
            used = f", with {_in_use(death)}" if death.used_bytes else ""  # 0 where it died before it was measured
            return f"its worker was killed by {signal_name(death.signal)}{used}{where}"
        case _:
            return f"its worker was lost{where}: {death.reason}"


def _in_use(death: Death) -> str:
    return f"{format_bytes(death.used_bytes)} in use of the {format_bytes(death.limit_bytes)} it may"


def _reserved(ending: Death | TaskOutOfMemory) -> str:
    return f"{format_bytes(ending.reserved_bytes)} reserved"
