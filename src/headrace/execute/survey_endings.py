"""How a worker's end is understood by the interviews it had: whether they may have caused it, and what is said of it.

Covers: decisions and words. Does not cover: which interviews are suspected (execute.survey_pieces), or handing them
out again (execute.survey_handout).
"""

from __future__ import annotations

from headrace.execute.worker_handle import Ending
from headrace.execute.worker_protocol import Death, DeathKind, Failed, OutOfMemory
from headrace.survey.record import Cause
from headrace.units import format_bytes

_FULL = 0.9  # of its limit: what ends there ends for lack of memory


def is_to_blame(ending: Ending) -> bool:
    """Whether what the worker did may have ended it; not where the warden was lost, or we ended it ourselves."""
    return not (isinstance(ending, Death) and ending.kind is DeathKind.LOST)


def cause_of(ending: Ending) -> Cause:
    return Cause.OUT_OF_MEMORY if isinstance(ending, OutOfMemory) or _is_memory(ending) else Cause.CRASHED


def told_of(ending: Ending) -> str:
    match ending:
        case OutOfMemory():
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
        case Failed():
            return f"its worker failed: {ending.reason.partition(chr(10))[0]}"
        case _:
            return "its worker ended without a word"


def _is_memory(ending: Ending) -> bool:
    """Also where a library that is not Python's gave up at the limit: Rust aborts, C may crash."""
    if not isinstance(ending, Death):
        return False
    at_limit = 0 < ending.limit_bytes * _FULL <= ending.peak_bytes
    return ending.kind is DeathKind.OUT_OF_MEMORY or (at_limit and ending.kind is not DeathKind.LOST)
