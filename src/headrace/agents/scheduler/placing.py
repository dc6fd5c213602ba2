"""Decides which run starts on which host, with how much memory, alone or beside others.

The first run in order starts, or none does: a later, smaller run that slipped past it would starve it. Passed over are
only runs that memory pressure keeps out (those of a level, or for `aging_s` one that pressure stopped), and for
`passed_over_s` one that waits aside: it ran out of memory or was preempted too often, and needs more than others leave;
and one that no host can hold now even beside nothing else, as memory is in use outside of runs: it waits for that, and
an event says so. Given up is only what no host could ever have held, or none could for `gives_up_after_s` in a row.
Does not cover: what happens to runs afterwards (`lifecycle`).
"""

from __future__ import annotations

from typing import TypeAlias

from headrace.agents.scheduler.child_runs import enter_slot
from headrace.agents.scheduler.events import RecordShortage, SkipRun, StopReason
from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.hosts.needs import Need, need_of
from headrace.agents.scheduler.hosts.survey_permits import NOT_THROTTLED, SurveyThrottle
from headrace.agents.scheduler.lifecycle import age_from, settle
from headrace.agents.scheduler.making_room import highest_in_line, make_room, make_room_to_resume
from headrace.agents.scheduler.run_queue import Entry
from headrace.agents.scheduler.scheduled_runs import ScheduledRun, Slot
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.agents.scheduler.waiting_slots import resume_next, stop_waiting_parent
from headrace.exit_causes import ExitCause
from headrace.priority import Priority

_MOST_MOVED = 16  # of the runs that no host can hold now, at one event: all of a long queue may be such

Place: TypeAlias = tuple[Host, Need]  # where a run could start, and what it needs there


def dispatch(state: SchedulerState, now_s: float) -> None:
    """StartRun what can start now."""
    if state.is_closing:
        return
    if state.circuits.holds_any():
        for run in state.circuits.released(now_s):
            state.enqueue(run)
    for host in state.hosts.values():
        host.kept_for = None
        if host.throttle:
            host.throttle = NOT_THROTTLED
    state.moves_left = _MOST_MOVED
    if state.queue.has_too_large():
        _bring_back_what_fits(state)
        _give_up_what_fits_no_more(state, now_s)
    while _resume_or_start(state, now_s):
        pass
    for host in state.hosts.values():
        if host.resuming:
            make_room_to_resume(state, host, now_s)
        if not host.computing or host.idle_since_s is not None:
            stop_waiting_parent(state, host, now_s)


def _resume_or_start(state: SchedulerState, now_s: float) -> bool:
    """Let one slot whose wait is over go on, or start one run: the first goes ahead, unless a higher priority can
    start.
    """
    may_resume = _may_resume_any(state)
    if _may_start_any(state) and _start_next(state, now_s, may_resume=may_resume):
        return True
    return may_resume and resume_next(state, None, now_s)


def _may_resume_any(state: SchedulerState) -> bool:
    for host in state.hosts.values():  # noqa: SIM110 - any() takes thrice the time, and every event asks
        if host.resuming:
            return True
    return False


def _start_next(state: SchedulerState, now_s: float, *, may_resume: bool) -> bool:
    """Start or hold the next run, or let a slot go on that stands ahead of it; return whether one was, so that another
    may follow.
    """
    heads = state.queue.heads()
    is_any_admitted = False
    for number, entry in enumerate(heads, 1):
        run = entry[2]
        if may_resume and resume_next(state, entry, now_s):
            return True
        if state.circuits.holds(run):
            state.queue.remove(run)
            state.circuits.hold(run)
            return True
        places = _places_for(state, run, now_s)
        if places:
            if places[0][0].kept_for is not None and _is_kept_out(run, places):
                return False
            is_any_admitted, is_turn = True, not run.is_aside or has_its_turn(state, run, now_s)
            if _start_if_it_fits(state, run, places, heads[number:], now_s):
                return True
            if not _fits_alone(places):
                if _is_too_large_now(state, run, now_s):
                    return _put_off_or_give_up(state, run, now_s)
                _make_surveys_rest(state)  # there is enough for it where pressure keeps it out
                return False
            _throttle_surveys(places, now_s, only_where_idle=not is_turn)
            if is_turn:
                _make_room(state, run, places, heads[number:], now_s)
                return False
        elif _is_passed_no_more(state, run, now_s):
            break
        else:
            _skip_low_runs(state, run)
    if heads and not is_any_admitted:
        _make_surveys_rest(state)
    return False


def _places_for(state: SchedulerState, run: ScheduledRun, now_s: float) -> list[Place]:
    """The hosts that admit the run, each with what it needs there."""
    places: list[Place] = []
    for host in state.hosts.values():  # a comprehension is a call more, and there is mostly one host
        if host.admits(run):
            places.append((host, need_of(state.limits, state.reservations, run, host, now_s)))  # noqa: PERF401
    return places


def _is_kept_out(run: ScheduledRun, places: list[Place]) -> bool:
    """Whether room is being made for what a slot whose wait is over was promised, and the run does not go before it."""
    return all(host.kept_for is not None and run.priority <= host.kept_for for host, _ in places)


def has_its_turn(state: SchedulerState, run: ScheduledRun, now_s: float) -> bool:
    """Whether a run that waits aside has let others pass for `passed_over_s`."""
    return now_s - run.out_since_s >= state.limits.passed_over_s


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
    for host in state.hosts.values():
        if host.computing < host.slot_count or host.has_below(state.queue.highest()):
            return True
    return state.queue.has_aside()


def _start_if_it_fits(
    state: SchedulerState, run: ScheduledRun, places: list[Place], behind: list[Entry], now_s: float
) -> bool:
    best: Place | None = None
    for host, need in places:
        has_room = host.fits(run, need) and (not host.surveys.by_id or _surveys_allow(host, need, now_s))
        if has_room and (best is None or host.memory.room_bytes() > best[0].memory.room_bytes()):
            best = host, need
    if best is not None:
        host, need = best
        slot = start(state, run, host, need, now_s)
        if highest_in_line(state, run, behind) > run.priority:
            age_from(state, run, now_s)  # its age has given it a turn, and is used up by it
            slot.keeps_until_s = now_s + host.limits.min_run_s
        return True
    return False


def _throttle_surveys(places: list[Place], now_s: float, *, only_where_idle: bool) -> None:
    for host, need in places:
        if host.surveys.by_id and (not only_where_idle or not host.slots):
            throttle = _throttle_for(host, need, now_s)
            if throttle > host.throttle:
                host.throttle = throttle


def _make_room(
    state: SchedulerState, run: ScheduledRun, places: list[Place], behind: list[Entry], now_s: float
) -> None:
    """Have others make room on the first host where that helps."""
    level = highest_in_line(state, run, behind)
    for host, need in places:
        if host.slots and make_room(state, host, run, need, level, now_s):
            return


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
        pauses,
        run.deaths > 0 or (bool(run.children) and run.has_died),
        is_estimate=need.is_estimate,
        promised_bytes=need.memory_bytes,
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
    return _fits_beside_surveys(host, need) or host.surveys.may_pause(now_s)


def _fits_beside_surveys(host: Host, need: Need) -> bool:
    return need.memory_bytes <= host.memory.room_beside_surveys_bytes()


def _throttle_for(host: Host, need: Need, now_s: float) -> SurveyThrottle:
    """How far surveys must give way so that the next run gets its memory."""
    if host.slots:
        has_room = need.memory_bytes <= host.memory.room_beside_others_bytes(is_estimate=need.is_estimate)
        return NOT_THROTTLED if has_room else SurveyThrottle.HALVE  # with room, it waits for a slot, or to be alone
    if need.memory_bytes <= host.memory.room_bytes() - host.surveys.owed_bytes:
        return NOT_THROTTLED
    if _fits_beside_surveys(host, need):
        return SurveyThrottle.ONE_PERMIT
    return SurveyThrottle.PAUSE if host.surveys.may_pause(now_s) else NOT_THROTTLED  # it is their turn


def _is_too_large_now(state: SchedulerState, run: ScheduledRun, now_s: float) -> bool:
    """Whether no host could hold the run even beside nothing else."""
    for host in state.hosts.values():  # noqa: SIM110 - any() takes thrice the time where there is one host
        if _needed_bytes(state, run, host, now_s) <= host.memory.room_alone_bytes:
            return False
    return True


def _put_off_or_give_up(state: SchedulerState, run: ScheduledRun, now_s: float) -> bool:
    """Let others pass the run until memory comes back, and tell once; give it up where it could never have fitted.
    Return whether the next in line may be looked at.
    """
    if not state.moves_left:
        return False
    state.moves_left -= 1
    short = _shortage(state, run, now_s)
    if not state.may_ever_hold(run, short.needs_bytes):
        state.queue.remove(run)
        settle(state, run, ExitCause.BUDGET_TOO_SMALL, now_s, short)
        return True
    if not run.is_shortage_told:
        run.is_shortage_told = True
        state.commands.append(short)
    state.queue.put_off(run, short.needs_bytes, now_s)
    return True


def _shortage(state: SchedulerState, run: ScheduledRun, now_s: float) -> RecordShortage:
    host = max(state.hosts.values(), key=lambda host: host.memory.room_alone_bytes)
    return RecordShortage(
        id=run.id,
        needs_bytes=_needed_bytes(state, run, host, now_s),
        room_bytes=max(0, host.memory.room_alone_bytes),
        best_room_bytes=host.memory.best_room_bytes or 0,
        reading=host.reading,
    )


def _give_up_what_fits_no_more(state: SchedulerState, now_s: float) -> None:
    """End runs that no host could hold for `gives_up_after_s` in a row, even beside nothing else."""
    while (first := state.queue.first_put_off()) and state.moves_left:
        since_s, run = first
        if not state.hosts or now_s - since_s < max(host.limits.gives_up_after_s for host in state.hosts.values()):
            return
        state.moves_left -= 1
        if _is_too_large_now(state, run, now_s):
            state.queue.remove(run)
            settle(state, run, ExitCause.BUDGET_TOO_SMALL, now_s, _shortage(state, run, now_s))
        else:  # what it needs has changed
            state.queue.bring_back(run)
            state.enqueue(run)


def _bring_back_what_fits(state: SchedulerState) -> None:
    """Put runs in line again that a host can hold now, beside nothing else."""
    for _ in range(_MOST_MOVED):
        run = state.queue.smallest_too_large()
        if run is None or not any(run.too_large_bytes <= host.memory.room_alone_bytes for host in state.hosts.values()):
            return
        state.queue.bring_back(run)
        state.enqueue(run)


def _fits_alone(places: list[Place]) -> bool:
    for host, need in places:  # noqa: SIM110 - any() takes thrice the time where there is one host
        if need.memory_bytes <= host.memory.room_alone_bytes:
            return True
    return False


def _needed_bytes(state: SchedulerState, run: ScheduledRun, host: Host, now_s: float) -> int:
    return need_of(state.limits, state.reservations, run, host, now_s).memory_bytes
