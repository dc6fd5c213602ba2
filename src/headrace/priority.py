"""The priority levels of agent runs and surveys. Does not cover: order within a level (agents.scheduler.run_queue)."""

from __future__ import annotations

from enum import IntEnum


class Priority(IntEnum):
    """Surveys are NORMAL, runs HIGH, heartbeats LOW; CRITICAL only where asked for, or it would protect nothing."""

    LOW = 0
    NORMAL = 1
    HIGH = 2
    CRITICAL = 3


CRITICAL = Priority.CRITICAL  # by itself: see agents.scheduler.scheduled_runs
