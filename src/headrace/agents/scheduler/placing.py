"""Decides which run starts on which host, with how much memory, alone or beside others.

The first run in order starts, or none does that could take what it waits for: a later, smaller run that slipped past it
would starve it. A run that fits on no host yet claims one that could hold it: there none behind it starts, elsewhere
they may. Passed over without a claim are only runs that memory pressure keeps out (those of a level, or for `aging_s`
one that pressure stopped), and for `passed_over_s` one that waits aside: it ran out of memory or was preempted too
often, and needs more than others leave; and one that no host can hold now even beside nothing else, as memory is in use
outside of runs, or the host that could has left: it waits for that, and an event says so. Given up is only what no host
that ever joined could have held, or none could for `gives_up_after_s` in a row. Without any host, runs wait.
Which hosts are looked at is `hosts.host_index`: a few for each event. Does not cover: what happens to runs afterwards
(`lifecycle`).
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.agents.scheduler.child_runs import enter_slot
from headrace.agents.scheduler.events import RecordShortage, SkipRun, StopReason
from headrace.agents.scheduler.hosts.host import LOWEST_ADMITTED, Host
from headrace.agents.scheduler.hosts.needs import Need, need_of, smallest_need_bytes
from headrace.agents.scheduler.hosts.survey_permits import NOT_THROTTLED, SurveyThrottle
from headrace.agents.scheduler.lifecycle import age_from, settle
from headrace.agents.scheduler.making_room import highest_in_line, is_admitted, make_room, make_room_to_resume
from headrace.agents.scheduler.ordered_line import Entry
from headrace.agents.scheduler.scheduled_runs import ScheduledRun, Slot
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.agents.scheduler.waiting_slots import resume_next, stop_waiting_parent
from headrace.exit_causes import ExitCause
from headrace.priority import Priority

_MOST_MOVED = 16  # of the runs that claim a host, or that none can hold, at one event: all of a long queue may be such
_CLAIMS_ASKED = 4  # of one host


def dispatch(state: SchedulerState, now_s: float) -> None:
    """StartRun what can start now."""
    if state.is_closing:
        return
    if state.circuits.holds_any():
        for run in state.circuits.released(now_s):
            state.enqueue(run)
    hosts = state.index.look_at()
    for host in hosts:
        host.kept_for = None
        if host.throttle:
            host.throttle = NOT_THROTTLED
    state.moves_left = _MOST_MOVED
    if state.index.left_behind:
        _give_up_claims(state)
    if state.queue.smallest_too_large():
        _bring_back_what_fits(state)
        _give_up_what_fits_no_more(state, now_s)
    while _resume_or_start(state, hosts, now_s):
        pass
    for host in hosts:
        if host.resuming:
            make_room_to_resume(state, host, now_s)
        if not host.computing or host.idle_since_s is not None:
            stop_waiting_parent(state, host, now_s)


def _give_up_claims(state: SchedulerState) -> None:
    """Put runs in line again that have claimed a host which takes no more starts."""
    left_behind = state.index.left_behind
    while left_behind and state.moves_left:
        claims = left_behind[0].claims
        if not claims:
            left_behind.popleft()
            continue
        state.moves_left -= 1
        run = claims[0][2]
        state.queue.bring_back(run)
        state.enqueue(run)


def _resume_or_start(state: SchedulerState, hosts: list[Host], now_s: float) -> bool:
    """Let one slot whose wait is over go on, or start one run: the first goes ahead, unless a higher priority can
    start.
    """
    may_resume = False
    for host in hosts:
        if host.resuming:
            may_resume = True
            break
    if _may_start_any(state) and _start_next(state, hosts, now_s, may_resume=may_resume):
        return True
    return may_resume and resume_next(state, hosts, None, now_s)


def _start_next(state: SchedulerState, hosts: list[Host], now_s: float, *, may_resume: bool) -> bool:
    """Start or hold the next run, have it claim a host, or let a slot go on that stands ahead of it; return whether one
    was, so that another may follow.
    """
    heads = state.queue.heads(hosts)
    is_any_admitted = False
    for number, entry in enumerate(heads, 1):
        run = entry[2]
        if may_resume and resume_next(state, hosts, entry, now_s):
            return True
        if state.circuits.holds(run):
            state.queue.remove(run)
            state.circuits.hold(run)
            return True
        if _start_if_it_fits(state, entry, hosts, heads[number:], now_s):
            return True
        if not is_admitted(state, run):
            if _is_passed_no_more(state, run, now_s):
                break
            _skip_low_runs(state, run)
            continue
        is_any_admitted = True
        if _is_too_large_now(state, run):
            return _put_off_or_give_up(state, run, now_s)
        if run.is_aside and not has_its_turn(state, run, now_s):
            _throttle_surveys(state, run, hosts, now_s, only_where_idle=True)
            continue
        before = run.claim
        _wait_for_a_host(state, entry, hosts, heads[number:], now_s)
        if run.claim is not before:
            return True  # its line has another first run now
        if before is None or not _others_could_start(state, hosts, entry):
            return False
    if heads and not is_any_admitted:
        _make_surveys_rest(hosts)
    return False


def has_its_turn(state: SchedulerState, run: ScheduledRun, now_s: float) -> bool:
    """Whether a run that waits aside has let others pass for `passed_over_s`."""
    return now_s - run.out_since_s >= state.limits.passed_over_s


def _is_passed_no_more(state: SchedulerState, run: ScheduledRun, now_s: float) -> bool:
    """Whether a run that pressure stopped has waited `aging_s`: runs that start past it may keep the pressure up."""
    calmest = state.index.calmest()
    is_kept_out_alone = calmest is not None and run.priority >= LOWEST_ADMITTED[calmest.pressure]
    return is_kept_out_alone and now_s - run.out_since_s >= state.limits.aging_s


def _skip_low_runs(state: SchedulerState, run: ScheduledRun) -> None:
    """Record as skipped all LOW runs that wait, where memory pressure keeps their level out."""
    calmest = state.index.calmest()
    if run.priority is not Priority.LOW or calmest is None:
        return
    for passed in state.queue.skipped_runs.take(state.queue.of(Priority.LOW)):
        state.commands.append(SkipRun(id=passed.id, why=StopReason.PRESSURE, reading=calmest.reading))


def _may_start_any(state: SchedulerState) -> bool:
    """Whether any run may start: there is a free slot, or one waits that may make room for itself."""
    queue, index = state.queue, state.index
    if not queue.total:
        return False
    if index.changed:
        index.refresh()
    return index.open_count > 0 or index.has_slots_below(queue.highest()) or queue.has_aside()


def _start_if_it_fits(
    state: SchedulerState, entry: Entry, hosts: list[Host], behind: list[Entry], now_s: float
) -> bool:
    run = entry[2]
    found = state.index.free_for(run.priority)
    if state.queue.claims:
        found += _claimed_behind(state, entry, hosts)
    for host in found:
        if not host.admits(run) or (host.kept_for is not None and _is_kept_out(run, host)):
            continue
        need = need_of(state.limits, state.reservations, run, host, now_s)
        if host.fits(run, need) and (not host.surveys.by_id or _surveys_allow(host, need, now_s)):
            slot = start(state, run, host, need, now_s)
            if highest_in_line(state, run, behind) > run.priority:
                age_from(state, run, now_s)  # its age has given it a turn, and is used up by it
                slot.keeps_until_s = now_s + host.limits.min_run_s
            return True
    return False


def _claimed_behind(state: SchedulerState, entry: Entry, hosts: list[Host]) -> list[Host]:
    """Hosts that this run or one behind it has claimed."""
    claimed = [host for host in hosts if host.claims]
    claimed += state.queue.claimed_behind(entry)
    return [host for host in claimed if not _is_claimed_before(host, entry)]


def _is_claimed_before(host: Host, entry: Entry) -> bool:
    """Whether a run ahead of this one has claimed the host, and memory pressure does not keep that one out."""
    for claim in host.claims[:_CLAIMS_ASKED]:
        if claim >= entry:
            return False
        if host.admits(claim[2]):
            return True
    return False


def _is_kept_out(run: ScheduledRun, host: Host) -> bool:
    """Whether room is being made for what a slot whose wait is over was promised, and the run does not go before it."""
    return host.kept_for is not None and run.priority <= host.kept_for


def _wait_for_a_host(state: SchedulerState, entry: Entry, hosts: list[Host], behind: list[Entry], now_s: float) -> None:
    """Have room made for a run that cannot start yet, and have it claim the host where it is. Where none can be made,
    it claims the host that has most room, as far as others could start on the rest.
    """
    run, level = entry[2], highest_in_line(state, entry[2], behind)
    claim = run.claim if run.claim is not None and _could_hold(state, run, run.claim) else None
    _throttle_surveys(state, run, hosts if claim is None else [claim], now_s)
    if claim is not None and not claim.admits(run):
        _make_surveys_rest([claim])
    if claim is not None and (claim not in hosts or _makes_room(state, run, claim, level, now_s)):
        return
    for host in _hosts_below(state, run, hosts, level):
        is_open_to_it = _could_hold(state, run, host) and not _is_claimed_before(host, entry)
        if is_open_to_it and _makes_room(state, run, host, level, now_s):
            _claim(state, run, host)
            return
    if claim is None and (run.claim is not None or _others_could_start(state, hosts, entry)):
        _claim(state, run, _best_to_wait_for(state, entry, hosts))


def _hosts_below(state: SchedulerState, run: ScheduledRun, hosts: list[Host], level: Priority) -> Iterator[Host]:
    """Hosts where others may make room: lower ones; its equals too for a run that has waited aside."""
    if run.is_aside:
        yield from hosts
    yield from state.index.with_slots_below(level)


def _makes_room(state: SchedulerState, run: ScheduledRun, host: Host, level: Priority, now_s: float) -> bool:
    if not host.slots or not host.admits(run) or _is_kept_out(run, host):
        return False
    need = need_of(state.limits, state.reservations, run, host, now_s)
    return make_room(state, host, run, need, level, now_s)


def _could_hold(state: SchedulerState, run: ScheduledRun, host: Host) -> bool:
    return not host.is_leaving and smallest_need_bytes(state.limits, run) <= host.memory.room_alone_bytes


def _others_could_start(state: SchedulerState, hosts: list[Host], entry: Entry) -> bool:
    """Whether there is a free slot for runs behind this one, on a host that nobody or one of them has claimed."""
    if state.index.has_free():
        return True
    return any(host.claims and host.claims[0] > entry and host.has_free_slot() for host in hosts)


def _best_to_wait_for(state: SchedulerState, entry: Entry, hosts: list[Host]) -> Host | None:
    """The host to claim: if possible one that no run before this one has claimed, and that has most room now."""
    run = entry[2]
    found = {host.number: host for host in (*state.index.largest_first(), *hosts) if _could_hold(state, run, host)}
    return min(found.values(), key=lambda host: _reluctance(host, run, entry), default=None)


def _reluctance(host: Host, run: ScheduledRun, entry: Entry) -> tuple[bool, bool, int, int]:
    return not host.admits(run), _is_claimed_before(host, entry), -host.memory.room_bytes(), host.number


def _claim(state: SchedulerState, run: ScheduledRun, host: Host | None) -> None:
    if state.moves_left and host is not run.claim:
        state.moves_left -= 1
        if host is None:
            state.queue.bring_back(run)
            state.enqueue(run)
        else:
            state.queue.claim(run, host)


def _throttle_surveys(
    state: SchedulerState, run: ScheduledRun, hosts: list[Host], now_s: float, *, only_where_idle: bool = False
) -> None:
    for host in hosts:
        if host.surveys.by_id and not (only_where_idle and host.slots) and host.admits(run):
            need = need_of(state.limits, state.reservations, run, host, now_s)
            throttle = _throttle_for(host, need, now_s)
            if throttle > host.throttle:
                host.throttle = throttle


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


def _make_surveys_rest(hosts: list[Host]) -> None:
    """Pressure keeps runs out. Throttle surveys on hosts without runs: the next reading shows if they cause it."""
    for host in hosts:
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


def _is_too_large_now(state: SchedulerState, run: ScheduledRun) -> bool:
    """Whether no host could hold the run even beside nothing else."""
    return not state.index.could_hold(smallest_need_bytes(state.limits, run))


def _put_off_or_give_up(state: SchedulerState, run: ScheduledRun, now_s: float) -> bool:
    """Let others pass the run until memory comes back, and tell once; give it up where it could never have fitted.
    Return whether the next in line may be looked at.
    """
    if not state.moves_left:
        return False
    state.moves_left -= 1
    short = _shortage(state, run)
    if not state.index.could_ever_hold(run, short.needs_bytes):
        state.queue.remove(run)
        settle(state, run, ExitCause.BUDGET_TOO_SMALL, now_s, short)
        return True
    if not run.is_shortage_told:
        run.is_shortage_told = True
        state.commands.append(short)
    state.queue.put_off(run, short.needs_bytes, now_s)
    return True


def _shortage(state: SchedulerState, run: ScheduledRun) -> RecordShortage:
    host = state.index.largest
    assert host is not None
    return RecordShortage(
        id=run.id,
        needs_bytes=smallest_need_bytes(state.limits, run),
        room_bytes=max(0, host.memory.room_alone_bytes),
        best_room_bytes=host.memory.best_room_bytes or 0,
        reading=host.reading,
    )


def _give_up_what_fits_no_more(state: SchedulerState, now_s: float) -> None:
    """End runs that no host could hold for `gives_up_after_s` in a row, even beside nothing else."""
    while (first := state.queue.first_put_off()) and state.moves_left:
        since_s, run = first
        if state.index.largest is None or now_s - since_s < state.index.gives_up_after_s:
            return
        state.moves_left -= 1
        if _is_too_large_now(state, run):
            state.queue.remove(run)
            settle(state, run, ExitCause.BUDGET_TOO_SMALL, now_s, _shortage(state, run))
        else:  # what it needs has changed
            state.queue.bring_back(run)
            state.enqueue(run)


def _bring_back_what_fits(state: SchedulerState) -> None:
    """Put runs in line again that a host can hold now, beside nothing else."""
    for _ in range(_MOST_MOVED):
        run = state.queue.smallest_too_large()
        if run is None or not state.index.could_hold(run.too_large_bytes):
            return
        state.queue.bring_back(run)
        state.enqueue(run)
