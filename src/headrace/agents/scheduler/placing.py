"""Which run starts where. Covers: order, reservations, running alone, giving up what can never fit.

The first in order starts, or nobody does: a later, smaller run that slipped past it would starve it. Only what memory
pressure keeps out is passed over: a level, or for a while a run that was pushed out. Does not cover: what happens to
runs afterwards (agents.scheduler.lifecycle).
"""

from __future__ import annotations

from msgspec import Struct

from headrace.agents.scheduler.children import enter_slot
from headrace.agents.scheduler.events import PreemptRun, SkipRun, StopReason
from headrace.agents.scheduler.host import Host
from headrace.agents.scheduler.lifecycle import settle
from headrace.agents.scheduler.preemption import may_preempt_another, to_preempt
from headrace.agents.scheduler.scheduled_runs import ScheduledRun, Slot
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.agents.scheduler.survey_permits import SurveyThrottle
from headrace.exit_causes import ExitCause
from headrace.priority import CRITICAL, Priority


class Need(Struct, frozen=True):
    """`until_seen`: it has to be alone only until it has shown what runs of its kind need."""

    memory_bytes: int
    is_alone: bool
    until_seen: bool


def dispatch(state: SchedulerState, now_s: float) -> None:
    """StartRun what can start now."""
    if state.is_closing:
        return
    if state.circuits.holds_any():
        for run in state.circuits.released(now_s):
            state.queue.add(run)
    for host in state.hosts.values():
        if host.throttle:
            host.throttle = SurveyThrottle.NONE
    while _may_start_any(state) and _start_next(state, now_s):
        pass


def need_of(state: SchedulerState, run: ScheduledRun, host: Host, now_s: float) -> Need:
    """What it declares, else what its kind was seen to need, else a slot's memory; the last two as far as there is. A
    kind's first run is alone; not where it has waited for that, since others may run for hours, and it holds up all.
    """
    limits = state.limits
    usual = run.declared_bytes or state.reservations.needed_bytes(run.kind) or limits.slot_memory_bytes
    asked = max(usual, limits.least_run_bytes)
    there = host.memory.room_beside_surveys_bytes()
    has_died = run.has_died
    if has_died:
        asked = max(asked, there)  # it runs alone: nobody else could use the rest
    is_cut = asked > there
    if is_cut:
        asked = max(there, run.declared_bytes or limits.least_run_bytes)
    is_alone = is_cut or has_died or run.preemptions >= host.limits.most_preemptions
    is_first = is_first_of_its_kind(state, run) and now_s - run.submitted_s < host.limits.min_run_s
    return Need(asked, is_alone or is_first, is_first and not is_alone)


def is_first_of_its_kind(state: SchedulerState, run: ScheduledRun) -> bool:
    """Nobody knows what it needs. CRITICAL does not wait for everyone else to find out."""
    if run.declared_bytes is not None or state.reservations.knows(run.kind):
        return False
    return run.priority is not CRITICAL


def _may_join_its_kind(state: SchedulerState, run: ScheduledRun, host: Host, now_s: float) -> bool:
    """Few runs tell little about the next one: at most twice as many are new at once as have ended, so that there is
    enough left for one that needs more than they did.
    """
    if run.declared_bytes is not None or run.priority is CRITICAL:
        return True
    most = max(1, 2 * state.reservations.ended(run.kind))
    if most >= host.slot_count:
        return True
    new_since_s = now_s - host.limits.min_run_s
    slots = host.slots.values()
    return sum(slot.root.kind == run.kind and slot.started_s > new_since_s for slot in slots) < most


def _start_next(state: SchedulerState, now_s: float) -> bool:
    """Whether one was taken from the queue, so that another may follow."""
    for _, _, run in state.queue.heads():
        if state.circuits.holds(run):
            state.queue.remove(run)
            state.circuits.hold(run)
            return True
        hosts = [host for host in state.hosts.values() if host.admits(run)]
        if hosts:
            return _start_or_wait(state, run, hosts, now_s)
        if _is_passed_no_more(state, run, now_s):
            break
        _skip_low_runs(state, run)
    _make_surveys_rest(state)
    return False


def _is_passed_no_more(state: SchedulerState, run: ScheduledRun, now_s: float) -> bool:
    """Whoever starts behind a run that was pushed out may keep up what keeps it out: not for longer than `aging_s`."""
    is_kept_out_alone = any(host.admits_level(run.priority) for host in state.hosts.values())
    return is_kept_out_alone and now_s - run.out_since_s >= state.limits.aging_s


def _skip_low_runs(state: SchedulerState, run: ScheduledRun) -> None:
    """Of a LOW run's level, all that wait are passed over with it, and each is told so."""
    if run.priority is not Priority.LOW or not state.hosts:
        return
    reading = min(state.hosts.values(), key=lambda host: host.pressure).reading
    for passed in state.queue.skipped_runs.take(state.queue.of(Priority.LOW)):
        state.commands.append(SkipRun(id=passed.id, why=StopReason.PRESSURE, reading=reading))


def _may_start_any(state: SchedulerState) -> bool:
    """CRITICAL may make room for itself; anything else needs a slot."""
    if not state.queue.total:
        return False
    for host in state.hosts.values():
        if len(host.slots) < host.slot_count:
            return True
    return state.queue.count(CRITICAL) > 0


def _start_or_wait(state: SchedulerState, run: ScheduledRun, hosts: list[Host], now_s: float) -> bool:
    best: tuple[Host, Need] | None = None
    for host in hosts:
        need = need_of(state, run, host, now_s)
        fits = host.fits(run, need.memory_bytes, need.is_alone) and _may_join_its_kind(state, run, host, now_s)
        has_room = fits and _surveys_allow(host, need, now_s)
        if has_room and (best is None or host.memory.room_bytes() > best[0].memory.room_bytes()):
            best = host, need
    if best is not None:
        host, need = best
        start(state, run, host, need, now_s)
        return True
    if _is_hopeless(state, run, now_s):
        state.queue.remove(run)
        settle(state, run, ExitCause.BUDGET_TOO_SMALL, now_s)
        return True
    for host in hosts:
        host.throttle = _throttle_for(host, run, need_of(state, run, host, now_s), now_s)
    if run.priority is CRITICAL:
        _make_room(state, hosts, now_s)
    return False


def start(state: SchedulerState, run: ScheduledRun, host: Host, need: Need, now_s: float) -> None:
    state.queue.remove(run)
    state.starts += 1
    pauses = bool(host.surveys.by_id) and not _fits_beside_surveys(host, need)
    slot = Slot(
        run,
        host.name,
        state.starts,
        now_s,
        need.memory_bytes,
        need.is_alone,
        need.until_seen,
        pauses,
        run.has_died,
    )
    host.enter(slot)
    enter_slot(state, run, slot)
    if run.children:
        for child in run.children.values():
            enter_slot(state, child, slot)
        run.children.clear()


def _make_surveys_rest(state: SchedulerState) -> None:
    """Pressure keeps all runs out. Where only a survey runs, it rests, to show whether it is what presses."""
    for host in state.hosts.values():
        if not host.slots:
            host.throttle = SurveyThrottle.ONE_PERMIT


def _surveys_allow(host: Host, need: Need, now_s: float) -> bool:
    """A run beside which surveys have to pause waits until they have had their turn."""
    return not host.surveys.by_id or _fits_beside_surveys(host, need) or host.surveys.may_pause(now_s)


def _fits_beside_surveys(host: Host, need: Need) -> bool:
    return need.memory_bytes <= host.memory.room_beside_surveys_bytes()


def _throttle_for(host: Host, run: ScheduledRun, need: Need, now_s: float) -> SurveyThrottle:
    """How far surveys must give way to the run that is next."""
    if host.slots:
        has_room = need.memory_bytes <= host.memory.room_beside_others_bytes(run)
        return (
            SurveyThrottle.NONE if has_room else SurveyThrottle.HALVE
        )  # where it has, it waits for a slot, or to be alone
    if need.memory_bytes <= host.memory.room_bytes() - host.surveys.owed_bytes:
        return SurveyThrottle.NONE
    if _fits_beside_surveys(host, need):
        return SurveyThrottle.ONE_PERMIT
    return SurveyThrottle.PAUSE if host.surveys.may_pause(now_s) else SurveyThrottle.NONE  # it is their turn


def _is_hopeless(state: SchedulerState, run: ScheduledRun, now_s: float) -> bool:
    """Whether it has not fitted anywhere, even alone, for long enough to say that it never will."""
    for host in state.hosts.values():
        if host.slots or need_of(state, run, host, now_s).memory_bytes <= host.memory.room_alone_bytes():
            run.hopeless_since_s = None
            return False
    if run.hopeless_since_s is None:
        run.hopeless_since_s = now_s
    patience_s = min(host.limits.hopeless_after_s for host in state.hosts.values())
    return now_s - run.hopeless_since_s >= patience_s


def _make_room(state: SchedulerState, hosts: list[Host], now_s: float) -> None:
    """CRITICAL never waits for lower work to end by itself."""
    if any(slot.is_stopping() for host in hosts for slot in host.slots.values()):
        return
    for host in hosts:
        slot = to_preempt(host, now_s) if may_preempt_another(host, now_s) else None
        if slot is not None:
            state.stop_slot(slot, PreemptRun, StopReason.MAKES_ROOM, now_s)
            return
