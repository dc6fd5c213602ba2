"""Decides what follows from a memory reading: reclaim, preempt, kill, or count the floor as the new zero.

    share of the budget      what follows
    a level is entered       Reclaim
    from `preempt_at` on     PreemptRun for one slot at a time, never the last one
    from `emergency_at` on   KillRun for one slot at a time
    a worker is nearly full, PreemptRun for a lower slot; KillRun where it has not stopped before this one is about to
      and no memory is left  meet its limit
    pressure with no run     Reclaim once; then what is in use becomes the zero, so that one run may start

Does not cover: levels (memory.governor), the choice of the slot (`preemption`).
"""

from __future__ import annotations

from headrace.agents.scheduler.events import (
    KillRun,
    MemoryMeasured,
    MemoryWanted,
    NeedsRoom,
    Notice,
    PreemptRun,
    Reclaim,
    RecordNotice,
    ReserveLess,
    StopReason,
)
from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.preemption import (
    is_one_stopping,
    may_preempt_another,
    to_kill,
    to_kill_for,
    to_preempt,
    to_preempt_for,
)
from headrace.agents.scheduler.scheduled_runs import Slot
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.memory.governor import Pressure

_NOTICEABLY = 1.1


def take_reading(state: SchedulerState, host: Host, read: MemoryMeasured) -> None:
    before = host.pressure
    host.memory.observe(read)
    host.has_unread_exit = False
    if host.pressure is not before:
        state.commands.append(RecordNotice(notice=Notice.LEVEL, subject=host.name, reading=host.reading))
        if host.pressure is Pressure.NORMAL:
            state.queue.skipped_runs.end()
    if host.pressure > before:
        state.commands.append(Reclaim(host=host.name))
    relieve(state, host, read.now_s)
    if host.memory.has_undeclared():
        _learn(state, host, read.now_s)
    if host.is_stuck and _is_wanted(state, host):
        _start_over(state, host)


def make_memory(state: SchedulerState, wanted: MemoryWanted) -> None:
    """Stop a slot that goes behind the one that is nearly full, one at a time: what it holds is lent on. Where it does
    not stop in time, kill it: it has no more than a step to lose, and the other would lose its own.
    """
    run = state.running(wanted.id, wanted.epoch)
    if run is None or run.slot is None or run.slot.is_stopping():
        return
    short, host, why = run.slot, state.hosts[run.slot.host], StopReason.OTHERS_NEED_IT
    host.touch()
    for_whom = NeedsRoom(id=run.id)
    if is_one_stopping(host, wanted.now_s):
        if wanted.is_urgent and (slot := to_kill_for(host, short, wanted.now_s)):
            state.stop_slot(slot, KillRun, why, wanted.now_s, for_whom=for_whom)
        return
    owed_bytes = host.memory.owed_bytes(short, state.limits.slot_memory_bytes)
    if slot := to_preempt_for(host, short, owed_bytes, wanted.now_s):
        slot.root.needs_bytes = max(slot.root.needs_bytes, slot.in_use_bytes)
        if slot is not short:  # it has outgrown what was reserved, and may grow on
            host.memory.reserve_more(short, state.limits.slot_memory_bytes)
        state.stop_slot(slot, PreemptRun, why, wanted.now_s, for_whom=None if slot is short else for_whom)


def _learn(state: SchedulerState, host: Host, now_s: float) -> None:
    """Learn from runs that go on, which may take hours: once one's use has been steady for `calm_s` while it computes,
    and whenever it uses more than its kind was known to.
    """
    for slot in host.slots.values():
        if slot.root.declared_bytes is not None or not slot.peak_bytes:
            continue
        known_bytes = state.reservations.needed_bytes(slot.root.kind)
        if slot.is_waiting or slot.peak_bytes > _NOTICEABLY * slot.steady_bytes:
            slot.steady_bytes, slot.steady_since_s = slot.peak_bytes, now_s
        elif not slot.is_measured and _is_steady(slot, host, now_s):
            _note_steady(state, host, slot)
        if known_bytes is not None and slot.peak_bytes > known_bytes:
            state.reservations.goes_on(slot.root.kind, slot.number, slot.peak_bytes)


def _is_steady(slot: Slot, host: Host, now_s: float) -> bool:
    return now_s - slot.steady_since_s >= host.limits.calm_s


def _note_steady(state: SchedulerState, host: Host, slot: Slot) -> None:
    slot.is_measured, kind = True, slot.root.kind
    if state.reservations.needed_bytes(kind) is None:
        state.commands.append(RecordNotice(notice=Notice.MEASURED, subject=kind, reading=host.reading))
    state.reservations.goes_on(kind, slot.number, slot.peak_bytes)
    if not slot.is_after_death:  # it may have been promised more than its kind needs
        needed_bytes = _kept_bytes(state, slot)
        if needed_bytes < slot.reserved_bytes:
            slot.reserved_bytes = needed_bytes
            host.memory.charge_anew(slot)
        if needed_bytes < slot.promised_bytes:  # what was reserved for it since, as it grew, was promised to nobody
            slot.promised_bytes, leader = needed_bytes, slot.leader
            state.commands.append(ReserveLess(id=leader.id, epoch=leader.epoch, memory_bytes=needed_bytes))


def _kept_bytes(state: SchedulerState, slot: Slot) -> int:
    return max(slot.peak_bytes, state.reservations.needed_bytes(slot.root.kind) or 0)


def relieve(state: SchedulerState, host: Host, now_s: float) -> None:
    """Stop a slot, only while the reading itself is high: a level that lasts by hysteresis alone stops none."""
    if host.governor.share >= host.limits.emergency_at:
        if slot := to_kill(host, now_s):
            state.stop_slot(slot, KillRun, StopReason.EMERGENCY, now_s)
    elif host.pressure >= Pressure.PREEMPTING and _is_high(host):
        _preempt_one(state, host, now_s)


def _is_high(host: Host) -> bool:
    """Whether the reading is high. After a higher level, `is_falling` is not known yet: the reading itself decides."""
    return not host.governor.is_falling and host.governor.share >= host.limits.preempt_until


def _preempt_one(state: SchedulerState, host: Host, now_s: float) -> None:
    """Preempt one slot, never the last one: without it, nothing would make progress."""
    if len(host.slots) > 1 and may_preempt_another(host, now_s) and (slot := to_preempt(host, now_s)):
        state.stop_slot(slot, PreemptRun, StopReason.PRESSURE, now_s)


def _is_wanted(state: SchedulerState, host: Host) -> bool:
    is_waited_for = host.slot_count > 0 and state.queue.total > 0
    return is_waited_for or any(not survey.granted for survey in host.surveys.by_id.values())


def _start_over(state: SchedulerState, host: Host) -> None:
    """Pressure that never falls must not end all progress: reclaim, then count what is in use as zero from here on."""
    if host.memory.begin_reclaim():
        state.commands.append(Reclaim(host=host.name))
        return
    host.memory.make_floor_the_zero()
    state.queue.skipped_runs.end()
    state.commands.append(RecordNotice(notice=Notice.NEW_ZERO, subject=host.name, reading=host.reading))
