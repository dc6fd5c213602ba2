"""What a run needs of a host: how much memory, and whether it must be alone there.

    what is known of the run              what it reserves
    it declares its need                  that
    enough runs of its kind were seen     the 95th percentile of their peaks (`reservations`): an estimate
    too few were seen                     a slot's memory, or what was seen where that is more; after `calm_s` of
                                          waiting, an equal share of the host
    it ran out of memory                  at least `oom_retry_bytes`; by default, or where it declares as much, twice
                                          a slot's memory, or twice what it declares where that is more
    others had the memory that it needed  at least what it then needed

In all that is at most what the host has beside nothing else: who declares more, was preempted too often, or may be
what ends the warden, is alone.
A small sample says little about the next run: within `min_run_s` at most twice as many runs start by an estimate as
were seen. Does not cover: whether there is room (`host`).
"""

from __future__ import annotations

from msgspec import Struct

from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.hosts.reservations import TRUSTED, Reservations
from headrace.agents.scheduler.scheduled_runs import ScheduledRun
from headrace.limits import QueueLimits
from headrace.priority import CRITICAL


class Need(Struct, frozen=True):
    """Where it `is_estimate`, by few runs, the run may need more, and leaves the part above `preempt_at` free."""

    memory_bytes: int
    is_alone: bool
    is_estimate: bool


def need_of(limits: QueueLimits, reservations: Reservations, run: ScheduledRun, host: Host, now_s: float) -> Need:
    there_bytes = host.memory.room_beside_surveys_bytes()
    is_estimate = False
    if run.declared_bytes is not None:
        asked_bytes = run.declared_bytes
    elif is_enough_seen(reservations, run, host, now_s):
        asked_bytes = reservations.needed_bytes(run.kind) or 0
        is_estimate = run.priority is not CRITICAL and reservations.count(run.kind) < TRUSTED
    else:
        asked_bytes = _promised_bytes(limits, run, host, now_s)
        asked_bytes = max(asked_bytes, reservations.needed_bytes(run.kind) or 0)
    if run.children:
        known_bytes, has_died = run.known_need_bytes, run.has_died
    else:  # the same without two calls: every look at the queue asks
        known_bytes, has_died = run.needs_bytes, run.deaths > 0
    if known_bytes > asked_bytes:  # here and below not max(), which takes thrice the time
        asked_bytes = known_bytes
    if limits.least_run_bytes > asked_bytes:
        asked_bytes = limits.least_run_bytes
    if has_died:
        had_bytes = max(limits.slot_memory_bytes, run.declared_bytes or 0)
        retry_bytes = limits.oom_retry_bytes or 0
        if retry_bytes <= (run.declared_bytes or 0):  # with what it had, a second try would end as the first
            retry_bytes = 2 * had_bytes
        asked_bytes, is_estimate = max(asked_bytes, retry_bytes), False
    elif run.declared_bytes is None and limits.most_run_bytes is not None:
        asked_bytes = min(asked_bytes, limits.most_run_bytes)  # a second try that had more has taught more
    is_alone = False
    if run.preemptions or run.warden_ends:
        is_alone = must_be_alone(limits, run, host.limits.most_preemptions)
    if asked_bytes > there_bytes:
        least_bytes = known_bytes if has_died else 0
        asked_bytes = max(there_bytes, run.declared_bytes or limits.least_run_bytes, least_bytes)
        is_alone = is_alone or run.declared_bytes is not None
    return Need(asked_bytes, is_alone, is_estimate)


def smallest_need_bytes(limits: QueueLimits, run: ScheduledRun) -> int:
    """What a run needs at least on any host: one where it could have that beside nothing else can hold it."""
    needs_bytes = run.declared_bytes or limits.least_run_bytes
    return max(needs_bytes, run.known_need_bytes) if run.has_died else needs_bytes


def must_be_alone(limits: QueueLimits, run: ScheduledRun, most_preemptions: int) -> bool:
    """Whether the run was preempted too often, or may be what ends the warden: alone, that shows."""
    is_suspected = run.warden_ends > 0 and run.warden_ends >= limits.most_losses
    return is_suspected or run.preemptions >= most_preemptions


def is_enough_seen(reservations: Reservations, run: ScheduledRun, host: Host, now_s: float) -> bool:
    """Whether what was seen of the run's kind is enough to start one more by it."""
    if reservations.needed_bytes(run.kind) is None:
        return False
    most = 2 * reservations.count(run.kind)
    if most >= host.slot_count or run.priority is CRITICAL:
        return True
    new_since_s = now_s - host.limits.min_run_s
    by_estimate = [slot for slot in host.slots.values() if slot.is_estimate and slot.root.kind == run.kind]
    return sum(slot.started_s > new_since_s for slot in by_estimate) < most


def _promised_bytes(limits: QueueLimits, run: ScheduledRun, host: Host, now_s: float) -> int:
    """A slot's memory. Others may run for hours and leave a little less: having waited, a run takes an equal share;
    at once where nobody has said what a slot's memory is.
    """
    if not limits.is_slot_a_share and now_s - run.submitted_s < host.limits.calm_s:
        return limits.slot_memory_bytes
    return min(limits.slot_memory_bytes, host.memory.share_bytes(host.slot_count))
