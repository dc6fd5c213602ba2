"""What a worker's death means for the interviews it had: the cause that is recorded, and the words for it.

Does not cover: what the cause of a death is (workers.deaths), which interviews are suspected
(interviews.workers.chunk_parts), or handing them out again (interviews.workers.assignment).
"""

from __future__ import annotations

from headrace.survey.record import Cause
from headrace.units import format_bytes
from headrace.workers.deaths import DeathCause, death_cause, held_bytes, signal_name
from headrace.workers.handle import TaskEnd
from headrace.workers.wire import Death, TaskFailed, TaskOutOfMemory


def failure_cause(ending: TaskEnd) -> Cause:
    """Return the cause that is recorded for an interview that ended its worker, also alone."""
    return Cause.OUT_OF_MEMORY if death_cause(ending) is DeathCause.OUT_OF_MEMORY else Cause.CRASHED


def death_in_words(ending: TaskEnd) -> str:
    """Say how the worker of an interview ended."""
    match ending:
        case TaskOutOfMemory():
            return (
                f"its worker met its memory limit, also alone ({ending.reason}; {format_bytes(ending.used_bytes)} used)"
            )
        case Death() if death_cause(ending) is DeathCause.OUT_OF_MEMORY:
            held, limit = format_bytes(held_bytes(ending)), format_bytes(ending.limit_bytes)
            return f"its worker was ended at {held}, with a limit of {limit}, also alone"
        case Death(signal=None, reason=""):
            return f"its worker exited with code {ending.code}"
        case Death(reason=""):
            return f"its worker was killed by {signal_name(ending.signal)}"
        case Death():
            return f"its worker was ended: {ending.reason}"
        case TaskFailed():
            return f"its worker failed: {ending.reason.partition(chr(10))[0]}"
        case _:
            return "its worker ended without a word"
