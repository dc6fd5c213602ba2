"""Decides which run starts on which host, with how much memory, alone or beside others.

The first run in order starts, or none does: a later, smaller run that slipped past it would starve it. Passed over are
only runs that memory pressure keeps out: those of a level, or for `aging_s` one that pressure stopped. Does not cover:
what happens to runs afterwards (`lifecycle`).
"""

from __future__ import annotations

from msgspec import Struct

from headrace.agents.scheduler.child_runs import enter_slot
from headrace.agents.scheduler.events import SkipRun, StopReason
from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.hosts.survey_permits import SurveyThrottle
from headrace.agents.scheduler.lifecycle import age_from, settle
from headrace.agents.scheduler.making_room import highest_in_line, make_room, make_room_to_resume
from headrace.agents.scheduler.run_queue import Entry
from headrace.agents.scheduler.scheduled_runs import ScheduledRun, Slot
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.agents.scheduler.waiting_slots import resume_next, stop_waiting_parents
from headrace.exit_causes import ExitCause
from headrace.priority import CRITICAL, Priority


class Need(Struct, frozen=True):
    """What a run needs of a host. `until_seen`: it is alone only until the memory need of its kind is measured."""

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
    while _resume_or_start(state, now_s):
        pass
    for host in state.hosts.values():
        if host.resuming:
            make_room_to_resume(state, host, now_s)
    stop_waiting_parents(state, now_s)


def _resume_or_start(state: SchedulerState, now_s: float) -> bool:
    """Let one slot whose wait is over go on, or start one run: the first goes ahead, unless a higher priority can
    start.
    """
    may_resume = any(host.resuming for host in state.hosts.values())
    heads = state.queue.heads() if may_resume else ()
    if may_resume and resume_next(state, ahead_of=heads[0] if heads else None):
        return True
    if _may_start_any(state) and _start_next(state, now_s):
        return True
    return may_resume and resume_next(state, ahead_of=None)


def need_of(state: SchedulerState, run: ScheduledRun, host: Host, now_s: float) -> Need:
    """A run needs what it declares, else what its kind was seen to need, else a slot's memory; the last two at most the
    room there is. A kind's first run is alone, unless it has waited `min_run_s` for that: others may run for hours, and
    it holds up all behind it.
    """
    limits = state.limits
    usual = run.declared_bytes or state.reservations.needed_bytes(run.kind) or limits.slot_memory_bytes
    asked = max(usual, limits.least_run_bytes, run.known_need_bytes)
    there = host.memory.room_beside_surveys_bytes()
    has_died = run.has_died
    if has_died:
        asked = max(asked, there)  # it runs alone: no other run could use the rest
    is_cut = asked > there
    if is_cut:
        asked = max(there, run.declared_bytes or limits.least_run_bytes)
    is_alone = is_cut or has_died or run.preemptions >= host.limits.most_preemptions
    is_first = is_first_of_its_kind(state, run) and now_s - run.submitted_s < host.limits.min_run_s
    return Need(asked, is_alone or is_first, is_first and not is_alone)


def is_first_of_its_kind(state: SchedulerState, run: ScheduledRun) -> bool:
    """Whether the memory need of the run's kind is unknown. A CRITICAL run does not wait to be alone for that."""
    if run.declared_bytes is not None or state.reservations.knows(run.kind):
        return False
    return run.priority is not CRITICAL


def _may_join_its_kind(state: SchedulerState, run: ScheduledRun, host: Host, now_s: float) -> bool:
    """Whether one more run of a kind may start. A small sample says little about the next run: within `min_run_s`, at
    most twice as many start as have ended, which leaves room for one that needs more.
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
    """Start or hold the next run; return whether one was taken from the queue, so that another may follow."""
    heads = state.queue.heads()
    for number, (_, _, run) in enumerate(heads, 1):
        if state.circuits.holds(run):
            state.queue.remove(run)
            state.circuits.hold(run)
            return True
        hosts = [host for host in state.hosts.values() if host.admits(run)]
        if hosts:
            return _start_or_wait(state, run, hosts, heads[number:], now_s)
        if _is_passed_no_more(state, run, now_s):
            break
        _skip_low_runs(state, run)
    _make_surveys_rest(state)
    return False


def _is_passed_no_more(state: SchedulerState, run: ScheduledRun, now_s: float) -> bool:
    """Whether a run that pressure stopped has waited `aging_s`: runs that start past it may keep the pressure up."""
    is_kept_out_alone = any(host.admits_level(run.priority) for host in state.hosts.values())
    return is_kept_out_alone and now_s - run.out_since_s >= state.limits.aging_s


def _skip_low_runs(state: SchedulerState, run: ScheduledRun) -> None:
    """Record as skipped all LOW runs that wait, where memory pressure keeps their level out."""
    if run.priority is not Priority.LOW or not state.hosts:
        return
    reading = min(state.hosts.values(), key=lambda host: host.pressure).reading
    for passed in state.queue.skipped_runs.take(state.queue.of(Priority.LOW)):
        state.commands.append(SkipRun(id=passed.id, why=StopReason.PRESSURE, reading=reading))


def _may_start_any(state: SchedulerState) -> bool:
    """Whether any run may start: there is a free slot, or one waits that may make room for itself."""
    if not state.queue.total:
        return False
    lowest = CRITICAL
    for host in state.hosts.values():
        if host.computing < host.slot_count:
            return True
        for slot in host.slots.values():
            lowest = min(lowest, slot.priority)
    return state.queue.has_above(lowest)


def _start_or_wait(
    state: SchedulerState, run: ScheduledRun, hosts: list[Host], behind: list[Entry], now_s: float
) -> bool:
    best: tuple[Host, Need] | None = None
    for host in hosts:
        need = need_of(state, run, host, now_s)
        fits = host.fits(run, need.memory_bytes, need.is_alone) and _may_join_its_kind(state, run, host, now_s)
        has_room = fits and _surveys_allow(host, need, now_s)
        if has_room and (best is None or host.memory.room_bytes() > best[0].memory.room_bytes()):
            best = host, need
    if best is not None:
        host, need = best
        slot = start(state, run, host, need, now_s)
        if highest_in_line(state, run, behind) > run.priority:
            age_from(state, run, now_s)  # its age has given it a turn, and is used up by it
            slot.keeps_until_s = now_s + host.limits.min_run_s
        return True
    if _is_hopeless(state, run, now_s):
        state.queue.remove(run)
        settle(state, run, ExitCause.BUDGET_TOO_SMALL, now_s)
        return True
    level, is_made = highest_in_line(state, run, behind), False
    for host in hosts:
        need = need_of(state, run, host, now_s)
        host.throttle = _throttle_for(host, run, need, now_s)
        if host.slots and not is_made:
            is_made = make_room(state, host, run, need.memory_bytes, level, now_s, alone=need.is_alone)
    return False


def start(state: SchedulerState, run: ScheduledRun, host: Host, need: Need, now_s: float) -> Slot:
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
    return slot


def _make_surveys_rest(state: SchedulerState) -> None:
    """Pressure keeps all runs out. Throttle surveys on hosts without runs: the next reading shows if they cause it."""
    for host in state.hosts.values():
        if not host.slots:
            host.throttle = SurveyThrottle.ONE_PERMIT


def _surveys_allow(host: Host, need: Need, now_s: float) -> bool:
    """Whether a run may start beside the surveys: one for which they must pause waits until they had their turn."""
    return not host.surveys.by_id or _fits_beside_surveys(host, need) or host.surveys.may_pause(now_s)


def _fits_beside_surveys(host: Host, need: Need) -> bool:
    return need.memory_bytes <= host.memory.room_beside_surveys_bytes()


def _throttle_for(host: Host, run: ScheduledRun, need: Need, now_s: float) -> SurveyThrottle:
    """How far surveys must give way so that the next run gets its memory."""
    if host.slots:
        has_room = need.memory_bytes <= host.memory.room_beside_others_bytes(run)
        return (
            SurveyThrottle.NONE if has_room else SurveyThrottle.HALVE
        )  # with room, it waits for a slot, or to be alone
    if need.memory_bytes <= host.memory.room_bytes() - host.surveys.owed_bytes:
        return SurveyThrottle.NONE
    if _fits_beside_surveys(host, need):
        return SurveyThrottle.ONE_PERMIT
    return SurveyThrottle.PAUSE if host.surveys.may_pause(now_s) else SurveyThrottle.NONE  # it is their turn


def _is_hopeless(state: SchedulerState, run: ScheduledRun, now_s: float) -> bool:
    """Whether the run has not fitted on any host, even alone, for `hopeless_after_s`."""
    for host in state.hosts.values():
        if host.slots or need_of(state, run, host, now_s).memory_bytes <= host.memory.room_alone_bytes():
            run.hopeless_since_s = None
            return False
    if run.hopeless_since_s is None:
        run.hopeless_since_s = now_s
    patience_s = min(host.limits.hopeless_after_s for host in state.hosts.values())
    return now_s - run.hopeless_since_s >= patience_s
