"""Exit causes: how an attempt at an agent run, a chunk of interviews, or an agent run as a whole came to its end.

One enum for three boundaries, so that nothing has to be translated on the way:

    wire         RunEnded, ChunkEnded (contracts)             an executor reports how an attempt or a chunk ended
    scheduler    agents.scheduler.events.AttemptEnded.cause   the same, as an event
                 agents.scheduler.events.EndRun.cause         how a run ended for good, all attempts considered
    disk, user   RunState (store.engine_file.engine_schema)   a run's state; the final ones have the values used here

Does not cover: how a worker process ended (workers.wire.Death), and what that means (workers.deaths).
"""

from __future__ import annotations

from enum import Enum


class ExitCause(Enum):
    """The first group ends a run for good. The second ends one attempt: the run goes on later, from its journal."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    LOST = "lost"  # its worker crashed or was killed, or it ignored being stopped
    BUDGET_TOO_SMALL = "memory budget too small"

    PREEMPTED = "preempted"
    PARKED = "parked"  # it sleeps, or waits for a message
    UNDECIDED = "undecided"  # it met a side effect that has started and not finished
