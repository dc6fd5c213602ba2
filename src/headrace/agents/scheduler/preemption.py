"""Who has to go when memory is short. Covers: the choice. Does not cover: when to choose (agents.scheduler.scheduler).

The lowest priority first, of those the newest. Below the last level only work that loses nothing by it: journaled since
it started, outside a side effect, with its minimum run time behind it, not preempted too often already, not CRITICAL.
"""

from __future__ import annotations

from headrace.agents.scheduler.host import Host
from headrace.agents.scheduler.task_states import Family
from headrace.limits import MemoryLimits
from headrace.priority import Priority


def to_preempt(host: Host, now_s: float) -> Family | None:
    """One that may be asked to stop at its next step."""
    limits = host.limits
    return _lowest_newest([family for family in host.families.values() if may_be_preempted(family, limits, now_s)])


def to_kill(host: Host, now_s: float) -> Family | None:
    """One that has to stop at once, unless one is being killed already and still has time to."""
    families = list(host.families.values())
    if any(_is_being_killed(family, host.limits, now_s) for family in families):
        return None
    return _lowest_newest([family for family in families if not family.was_killed])


def may_be_preempted(family: Family, limits: MemoryLimits, now_s: float) -> bool:
    if family.priority is Priority.CRITICAL or family.is_stopping() or family.is_alone:
        return False
    leader = family.leader
    has_run = not leader.preemptions or now_s - family.started_s >= limits.min_run_s
    is_inside_effect = any(task.side_effects for task in family.running.values())
    return has_run and leader.preemptions < limits.most_preemptions and leader.has_progress and not is_inside_effect


def may_preempt_another(host: Host, now_s: float) -> bool:
    """One at a time, and what the last one freed has to show before the next is chosen."""
    if host.preempted_at_s is not None and now_s - host.preempted_at_s < host.limits.calm_s:
        return False
    return not any(_still_has_time(family, host.limits, now_s) for family in host.families.values())


def _still_has_time(family: Family, limits: MemoryLimits, now_s: float) -> bool:
    return family.stop_sent_s is not None and now_s - family.stop_sent_s < limits.stop_s


def _is_being_killed(family: Family, limits: MemoryLimits, now_s: float) -> bool:
    return family.was_killed and _still_has_time(family, limits, now_s)


def _lowest_newest(families: list[Family]) -> Family | None:
    return min(families, key=lambda family: (family.priority, -family.serial), default=None)
