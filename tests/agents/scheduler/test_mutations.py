"""The simulation has teeth: with one rule of the scheduler changed for the worse, some history breaks."""

from collections.abc import Iterable
from typing import NamedTuple

import pytest

from headrace.agents.scheduler import (
    circuits,
    exits,
    heartbeats,
    host_changes,
    lifecycle,
    making_room,
    placing,
    preemption,
    relief,
    scheduler,
    waiting_slots,
)
from headrace.agents.scheduler.circuits import Circuits
from headrace.agents.scheduler.events import (
    EffectEnded,
    KillRun,
    MemoryMeasured,
    PriorityRaised,
    RecordNotice,
    SetPriority,
    StopReason,
)
from headrace.agents.scheduler.hosts import needs, survey_permits
from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.hosts.host_budget import HostBudget
from headrace.agents.scheduler.hosts.host_index import HostIndex
from headrace.agents.scheduler.ordered_line import Entry
from headrace.agents.scheduler.run_queue import RunQueue
from headrace.agents.scheduler.scheduled_runs import NEVER_KEPT_OUT, ScheduledRun, Slot
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.agents.scheduler.skipped_runs import SkippedRuns
from headrace.exit_causes import ExitCause
from headrace.limits import MemoryLimits
from headrace.memory.governor import Governor, Pressure
from headrace.models.endpoint.breaker import Breaker
from headrace.priority import Priority
from tests.agents.scheduler.histories import broken_rule, draw
from tests.agents.scheduler.world import BUDGET

_HISTORIES = 4000

waiting_heads = RunQueue.heads  # as they are without a mutation
stops_for_memory = preemption.to_preempt_for
counted_failure = Breaker.failed
stop_slot = SchedulerState.stop_slot
fits = Host.fits
counted = Circuits.count


def first_come(waiting: RunQueue, hosts: Iterable[Host] = ()) -> list[Entry]:
    return sorted(waiting_heads(waiting, hosts), key=lambda entry: entry[2].arrival)


def without_aging(waiting: RunQueue, hosts: Iterable[Host] = ()) -> list[Entry]:
    return sorted(waiting_heads(waiting, hosts), key=lambda entry: (-entry[2].priority, entry[2].arrival))


def without_hysteresis(governor: Governor, used_bytes: int, now_s: float) -> Pressure:
    governor.share = (used_bytes - governor.zero_bytes) / max(1, governor.budget_bytes - governor.zero_bytes)
    governor.pressure = governor._entered(governor.share)
    return governor.pressure


def right_after_the_start(slot: Slot, limits: MemoryLimits, now_s: float) -> bool:
    may_go = slot.priority is not Priority.CRITICAL and not slot.is_stopping() and not slot.is_alone
    return may_go and slot.leader.has_progress and not slot.is_inside_effect()


def without_patience(
    state: SchedulerState,
    slot: Slot,
    what: type,
    why: StopReason,
    now_s: float,
    *,
    is_patient: bool = False,
    **_: object,
) -> None:
    stop_slot(state, slot, what, why, now_s)


def fits_or_might(host: Host, run: ScheduledRun, need: needs.Need, leaving: Iterable[Slot] = ()) -> bool:
    return bool(leaving) or fits(host, run, need)


def highest_first(slots: list[Slot]) -> Slot | None:
    return max(slots, key=lambda slot: (slot.priority, slot.number), default=None)


def any_attempt(state: SchedulerState, run: int, epoch: int) -> ScheduledRun | None:
    run = state.runs.get(run)
    return run if run is not None and run.slot is not None else None


def told_with_every_reading(skipped_runs: SkippedRuns, waiting: Iterable[ScheduledRun]) -> list[ScheduledRun]:
    return list(waiting)


def behind_new_starts(state: SchedulerState, hosts: list[Host], ahead_of: Entry | None, now_s: float) -> bool:
    return ahead_of is None and waiting_slots.resume_next(state, hosts, None, now_s)


def whoever_is_highest(host: Host, short: Slot, owed_bytes: int, now_s: float) -> Slot | None:
    return highest_first([slot for slot in host.slots.values() if slot is not short and not slot.is_stopping()])


def equals_too(host: Host, short: Slot, owed_bytes: int, now_s: float) -> Slot | None:
    return stops_for_memory(host, short, 10 * BUDGET, now_s)


def each_attempt_is_a_failure(breaker: Breaker, now_s: float, who: int | None = None) -> None:
    counted_failure(breaker, now_s)


def endpoints_count(
    circuits: Circuits, run: ScheduledRun, cause: ExitCause | None, now_s: float
) -> RecordNotice | None:
    return counted(circuits, run, ExitCause.FAILED if run.is_blameless else cause, now_s)


def but_not_with_a_lost_parent(
    state: SchedulerState,
    slot: Slot,
    what: type,
    why: StopReason,
    now_s: float,
    *,
    is_patient: bool = False,
    **_: object,
) -> None:
    if why is not StopReason.PARENT_LOST:
        stop_slot(state, slot, what, why, now_s, is_patient=is_patient)


def raised_in_words_only(state: SchedulerState, run: ScheduledRun, priority: Priority, now_s: float) -> None:
    state.commands.append(SetPriority(id=run.id, epoch=run.epoch, priority=priority))


def lowered_too(state: SchedulerState, event: PriorityRaised) -> None:
    if run := state.runs.get(event.id):
        lifecycle._raise(state, run, event.priority, event.now_s)


def only_those_there(index: HostIndex, run: ScheduledRun, needs_bytes: int) -> bool:
    return any(needs_bytes <= (host.memory.best_room_bytes or 0) for host in index.by_name.values())


def whenever_it_was_read(state: SchedulerState, host: Host, read: MemoryMeasured) -> bool:
    host.heard_s = max(host.heard_s, read.now_s)
    return host_changes._is_possible(read)


def counted_below_zero(state: SchedulerState, event: EffectEnded) -> None:
    if run := state.running(event.id, event.epoch):
        run.side_effects -= 1


def of_every_host(state: SchedulerState, host: Host, now_s: float) -> None:
    for each in state.hosts.values():
        if host.governor.share >= host.limits.emergency_at and (slot := preemption.to_kill(each, now_s)):
            state.stop_slot(slot, KillRun, StopReason.EMERGENCY, now_s)


def killed_with_root(state: SchedulerState, slot: Slot, now_s: float) -> None:
    if slot.running:
        state.stop_slot(slot, KillRun, StopReason.WITH_PARENT, now_s)


class Mutation(NamedTuple):
    where: object
    name: str
    changed: object
    found_by: str
    shown_by: int  # the seed of the first history that showed it: played first, which saves playing those before it


MUTATIONS = {
    "a slot is kept by runs that wait": Mutation(
        scheduler, "wait_began", lambda state, event: None, "a slot computes only where one of its runs does", 1
    ),
    "one slot too many": Mutation(Host, "slots_now", lambda host: host.slot_count + 1, "never above the slots", 5),
    "reservations are not counted": Mutation(
        HostBudget, "_unreserved_bytes", lambda memory: BUDGET, "admitted reservations never above the budget", 27
    ),
    "first come, whatever its priority": Mutation(
        RunQueue, "heads", first_come, "CRITICAL never waits behind others", 21
    ),
    "age counts for nothing": Mutation(
        RunQueue, "heads", without_aging, "nobody passes who has waited longer, age counted", 9
    ),
    "levels are left at once": Mutation(
        Governor, "observe", without_hysteresis, "no level is left faster than hysteresis allows", 1
    ),
    "the floor never becomes the zero": Mutation(
        relief, "_start_over", lambda state, host: None, "everything ends, under pressure that never falls too", 22
    ),
    "pressure keeps nobody out": Mutation(Host, "admits", lambda host, run: True, "pressure keeps its levels out", 7),
    "what was preempted comes back at once": Mutation(
        lifecycle,
        "_returns_below",
        lambda run: NEVER_KEPT_OUT,
        "what pressure pushed out comes back when it has fallen",
        43,
    ),
    "what was pushed out is passed for ever": Mutation(
        placing,
        "_is_passed_no_more",
        lambda state, run, now_s: False,
        "what was pushed out is not passed for ever",
        53,
    ),
    "children are killed once their parent has stopped": Mutation(
        lifecycle,
        "_stop_with_root",
        killed_with_root,
        "no side effect is cut because a parent has stopped",
        643,
    ),
    "side effects are cut short": Mutation(
        Slot, "is_inside_effect", lambda slot: False, "never inside a side effect", 34
    ),
    "nobody makes room": Mutation(
        placing, "make_room", lambda *_: False, "a higher priority does not wait for lower work", 233
    ),
    "equals make room for each other": Mutation(
        making_room,
        "gives_way_to",
        lambda slot, level, *, is_patient: slot.priority <= level and not slot.is_stopping(),
        "only lower work makes room",
        5,
    ),
    "room is made that is too small": Mutation(
        Host, "fits", fits_or_might, "nobody stops where that does not help", 670
    ),
    "steps are cut short for everybody": Mutation(
        SchedulerState, "stop_slot", without_patience, "only CRITICAL work cuts steps short", 5
    ),
    "a turn that age has given counts for nothing": Mutation(
        making_room,
        "_makes_room",
        lambda slot, level, now_s, *, is_patient: preemption.gives_way_to(slot, level, is_patient=is_patient),
        "a turn that age has given is not cut short",
        9,
    ),
    "what has run counts as waiting": Mutation(
        lifecycle,
        "_time_not_waited_s",
        lambda run, slot, now_s: 0.0,
        "nobody passes who has waited longer, age counted",
        31,
    ),
    "no minimum run time": Mutation(
        preemption, "may_be_preempted", right_after_the_start, "a minimum run time before being preempted again", 7
    ),
    "the highest goes first": Mutation(
        preemption, "lowest_of", highest_first, "the lowest priority goes first, and of it the newest", 74
    ),
    "all that may go make room at once": Mutation(
        making_room,
        "_enough_for",
        lambda host, run, need, may_go, leaving: may_go,
        "no more stop than the next run needs",
        50,
    ),
    "more stop before what has stopped shows": Mutation(
        making_room,
        "awaits_reading",
        lambda host, need: False,
        "what has stopped shows in a reading before more stops",
        346,
    ),
    "many are preempted at once": Mutation(
        relief, "may_preempt_another", lambda host, now_s: True, "one at a time", 53
    ),
    "memory is never the run's own fault": Mutation(
        exits,
        "_out_of_memory",
        lambda run, slot, had, owed: exits.ComesBack.AGAIN,
        "after it ran out of memory it has more",
        5,
    ),
    "what can be lent is not counted": Mutation(
        HostBudget, "_left_to_lend_bytes", lambda memory: BUDGET, "what a start was promised can be lent to it", 30
    ),
    "whatever a run had, its death is its own": Mutation(
        exits, "_is_its_own", lambda had, owed: True, "only what used all that it was owed is set aside", 1
    ),
    "a death for want of what others that wait hold counts": Mutation(
        exits,
        "_is_like_a_preemption",
        lambda slot: True,
        "what had to go on with less is not counted as preempted for that",
        1,
    ),
    "a death while it makes way is its own": Mutation(
        exits, "_MAKES_WAY", (), "only what used all that it was owed is set aside", 29
    ),
    "a killed warden is the fault of its runs": Mutation(
        exits, "_is_counted", lambda run, event: True, "only what lost its own worker again and again is lost", 238
    ),
    "what ends the warden is started for ever": Mutation(
        exits,
        "_ends_the_warden",
        lambda run, slot, limits: False,
        "what ends the warden alone, again and again, is not started again",
        14,
    ),
    "who computes beside what ends the warden is lost with it": Mutation(
        needs, "must_be_alone", lambda limits, run, most: False, "what may be ending the warden is started alone", 14
    ),
    "everything is tried again with more memory": Mutation(
        exits, "_is_tried_again", lambda run: run.deaths < 2, "what more memory does not help is not tried again", 96
    ),
    "the highest makes memory": Mutation(
        relief, "to_preempt_for", whoever_is_highest, "only who goes before is made memory for", 534
    ),
    "equals make memory for whoever wants it": Mutation(
        relief, "to_preempt_for", equals_too, "of its equals none stops for who has all that it is owed", 1426
    ),
    "a child's want of memory is its own": Mutation(
        ScheduledRun, "has_died", property(lambda run: run.deaths > 0), "after it ran out of memory it has more", 250
    ),
    "new kinds are taken for small": Mutation(
        needs, "_promised_bytes", lambda *_: 20, "of a new kind it is promised a slot's memory", 1
    ),
    "new kinds wait to be alone": Mutation(
        needs, "_promised_bytes", lambda *_: BUDGET, "nobody waits for memory that is free", 41
    ),
    "the first reading is believed": Mutation(
        relief, "_is_steady", lambda *_: True, "what goes on is measured once it is steady", 10
    ),
    "what is in use is given back": Mutation(
        relief,
        "_kept_bytes",
        lambda *_: 1,
        "what is in use stays reserved",
        1,
    ),
    "who waits aside keeps others out": Mutation(
        placing, "has_its_turn", lambda *_: True, "only lower work makes room", 13
    ),
    "who waits aside is passed for ever": Mutation(
        placing, "has_its_turn", lambda *_: False, "who waits aside is not passed for ever", 78
    ),
    "what fits nowhere now is given up": Mutation(
        HostIndex, "could_ever_hold", lambda *_: False, "only what could never fit, or not for long, is given up", 1
    ),
    "what a host could hold that has left is given up": Mutation(
        HostIndex, "could_ever_hold", only_those_there, "only what could never fit, or not for long, is given up", 100
    ),
    "a host that is leaving takes new runs": Mutation(
        HostIndex, "begin_leaving", lambda index, host: None, "a host that is leaving takes no new runs", 12
    ),
    "a silent host is waited for": Mutation(
        host_changes, "lose_silent_hosts", lambda state, now_s: None, "a host that fell silent is dropped", 3
    ),
    "a host is silent while it speaks": Mutation(
        host_changes, "is_believed", lambda state, host, read: True, "only a host that fell silent is dropped", 1
    ),
    "a lost host is the fault of its runs": Mutation(
        host_changes, "FINAL", (*host_changes.FINAL, None), "only what lost its own worker again and again is lost", 11
    ),
    "readings that cannot be are believed": Mutation(
        host_changes, "_is_possible", lambda read: True, "what cannot be a reading is not believed", 15
    ),
    "old readings are believed": Mutation(
        host_changes,
        "is_believed",
        whenever_it_was_read,
        "a reading that is older than the last one changes nothing",
        0,
    ),
    "a worker is believed to have had more than its host": Mutation(
        lifecycle, "_within", lambda event, _: event, "only what could never fit, or not for long, is given up", 322
    ),
    "an effect that never began ends": Mutation(
        lifecycle, "effect_ended", counted_below_zero, "the lowest priority goes first, and of it the newest", 45
    ),
    "pressure on one host presses on all": Mutation(
        relief, "relieve", of_every_host, "a reading presses on its own host only", 38
    ),
    "who fits nowhere yet claims no host": Mutation(
        placing, "_claim", lambda *_: None, "nobody waits behind who cannot start on a host that is free", 348
    ),
    "a claim keeps nobody from a host": Mutation(
        placing,
        "_is_claimed_before",
        lambda *_: False,
        "nobody starts on the only host that could hold who has waited longer",
        348,
    ),
    "of several hosts, the first is claimed": Mutation(
        placing,
        "_best_to_wait_for",
        lambda state, entry, hosts: next(iter(state.index.by_name.values())),
        "nobody starts on the only host that could hold who has waited longer",
        348,
    ),
    "what fits nowhere now keeps others out": Mutation(
        placing, "_is_too_large_now", lambda *_: False, "nobody waits for memory that is free", 1033
    ),
    "what fits nowhere now never comes back": Mutation(
        placing,
        "_bring_back_what_fits",
        lambda state: None,
        "only what could never fit, or not for long, is given up",
        1844,
    ),
    "what fits nowhere for long is never given up": Mutation(
        placing,
        "_give_up_what_fits_no_more",
        lambda state, now_s: None,
        "everything ends, under pressure that never falls too",
        22,
    ),
    "parents wait in the way of others for what fits nowhere": Mutation(
        waiting_slots,
        "_parent_of_too_large",
        lambda host: None,
        "no parent stays in the way of its child or of others",
        845,
    ),
    "old news is believed": Mutation(SchedulerState, "running", any_attempt, "nothing is settled while it runs", 5),
    "surveys keep all they want": Mutation(
        survey_permits,
        "_permits",
        lambda survey, pressure, throttle, room: survey.wanted,
        "permits never above the budget",
        95,
    ),
    "LOW is passed over in silence": Mutation(
        placing, "_skip_low_runs", lambda state, run: None, "LOW work that pressure keeps out is told so", 7
    ),
    "who comes later is passed over in silence": Mutation(
        SkippedRuns, "came", lambda skipped_runs, run: None, "LOW work that pressure keeps out is told so", 38
    ),
    "LOW is told with every reading": Mutation(
        SkippedRuns, "take", told_with_every_reading, "skipped once in each episode", 1
    ),
    "an episode never ends": Mutation(
        SkippedRuns, "end", lambda skipped_runs: None, "LOW work that pressure keeps out is told so", 1129
    ),
    "what waited goes on at once": Mutation(waiting_slots, "_may_resume", lambda *_: True, "never above the slots", 32),
    "what waited goes on without its memory": Mutation(
        HostBudget,
        "more_to_resume_bytes",
        lambda memory, slot: 0,
        "what waited goes on beside others only with its memory",
        263,
    ),
    "a promise is forgotten while a run waits": Mutation(
        waiting_slots,
        "make_memory_to_resume",
        lambda state, host, slot, now_s: False,
        "what was promised is there after a wait, where those behind only wait",
        19,
    ),
    "starts take what is made free for a promise": Mutation(
        placing, "_is_kept_out", lambda run, host: False, "no start takes what is made free for a promise", 19
    ),
    "whoever waits stops for what was promised": Mutation(
        making_room,
        "_only_waits_behind",
        lambda slot, first: slot is not first and not slot.is_stopping(),
        "only what waits behind it stops for what was promised",
        1,
    ),
    "new starts go ahead of what waited": Mutation(
        placing, "resume_next", behind_new_starts, "what waited goes on ahead of new starts", 41
    ),
    "what waits keeps its slot": Mutation(
        Host,
        "has_free_slot",
        lambda host, leaving=(): len(host.slots) - len(leaving) < host.slots_now(),
        "everything ends, under pressure that never falls too",
        17,
    ),
    "parents never make room for their children": Mutation(
        waiting_slots,
        "_parent_in_the_way",
        lambda host: None,
        "no parent stays in the way of its child or of others",
        101,
    ),
    "a raised run keeps its place": Mutation(
        lifecycle, "_raise", raised_in_words_only, "CRITICAL never waits behind others", 163
    ),
    "a raised run's children stay where they are": Mutation(
        lifecycle,
        "_with_children",
        lambda run: [run],
        "who is submitted again with a higher priority has it, and its children have",
        122,
    ),
    "a priority may be lowered": Mutation(
        lifecycle, "raise_priority", lowered_too, "a priority is raised, never lowered", 1
    ),
    "circuits count attempts": Mutation(
        Breaker, "failed", each_attempt_is_a_failure, "a circuit opens after failures of different runs only", 6
    ),
    "circuits count children": Mutation(
        circuits, "topmost", lambda run: run, "a circuit opens after failures of different runs only", 6
    ),
    "circuits count failures of endpoints": Mutation(
        Circuits, "count", endpoints_count, "a circuit opens after failures of different runs only", 2386
    ),
    "children outlive a lost parent": Mutation(
        SchedulerState,
        "stop_slot",
        but_not_with_a_lost_parent,
        "what is lost takes the runs in its worker along",
        10,
    ),
    "circuits hold what is under way": Mutation(
        circuits, "goes_on", lambda run: False, "what has started before is never held by a circuit", 194
    ),
    "parking says nothing of a kind": Mutation(
        circuits,
        "_IS_SUCCESS",
        {**circuits._IS_SUCCESS, ExitCause.PARKED: None},
        "parking is a success, as an end is: enough of them close a circuit",
        322,
    ),
    "parking is a failure": Mutation(
        circuits, "_IS_SUCCESS", {**circuits._IS_SUCCESS, ExitCause.PARKED: False}, "parking never opens a circuit", 498
    ),
    "a half-open circuit lets all in": Mutation(
        Breaker,
        "would_try",
        lambda breaker, now_s: True,
        "a half-open circuit lets in one more than have succeeded",
        226,
    ),
    "one probe closes a circuit": Mutation(
        circuits,
        "Breaker",
        lambda limits, closes_after: Breaker(limits),
        "a circuit closes after enough successes of probes",
        194,
    ),
    "every kind has the engine's breaker": Mutation(
        Circuits, "learn", lambda circuits, kind, breaker: None, "a kind without a breaker is never refused", 1097
    ),
    "heartbeats are never skipped": Mutation(
        heartbeats, "may_run", lambda reading: True, "heartbeats are skipped above the first level", 7
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_rule_is_found(name: str, monkeypatch: pytest.MonkeyPatch):
    """A change of the scheduler or of the histories may move where: any of them will do, and `-rP` says which."""
    mutation = MUTATIONS[name]
    monkeypatch.setattr(mutation.where, mutation.name, mutation.changed)
    found: set[str] = set()
    for seed in (mutation.shown_by, *range(_HISTORIES)):
        if rule := broken_rule(draw(seed)):
            found.add(rule)
        if mutation.found_by in found:
            print(f"shown by {seed}, expected {mutation.shown_by}")
            return
    pytest.fail(f"{_HISTORIES} histories did not notice that {name}; found: {sorted(found)}", pytrace=False)
