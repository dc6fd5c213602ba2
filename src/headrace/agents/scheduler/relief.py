"""What follows from a memory reading. Covers: reclaiming, preempting, killing, the new zero where nothing helps.

Does not cover: levels (memory.governor), or the choice of who goes (agents.scheduler.preemption).
"""

from __future__ import annotations

from headrace.agents.scheduler.events import (
    KillRun,
    MemoryMeasured,
    Notice,
    PreemptRun,
    Reclaim,
    RecordNotice,
    StopReason,
)
from headrace.agents.scheduler.host import Host
from headrace.agents.scheduler.preemption import may_preempt_another, to_kill, to_preempt
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.memory.governor import Pressure


def take_reading(state: SchedulerState, host: Host, read: MemoryMeasured) -> None:
    before = host.pressure
    host.memory.observe(read)
    if host.pressure is not before:
        state.commands.append(RecordNotice(notice=Notice.LEVEL, subject=host.name, reading=host.reading))
        if host.pressure is Pressure.NORMAL:
            state.queue.skipped_runs.end()
    if host.pressure > before:
        state.commands.append(Reclaim(host=host.name))
    relieve(state, host, read.now_s)
    if host.has_alone():
        _note_firsts(state, host, read.now_s)
    if host.is_stuck() and _is_wanted(state, host):
        _start_over(state, host)


def _note_firsts(state: SchedulerState, host: Host, now_s: float) -> None:
    """The first run of a kind may take hours: others join it as soon as it has shown what it needs."""
    for slot in host.slots.values():
        is_seen = slot.peak_bytes > 0 and now_s - slot.started_s >= host.limits.min_run_s
        if slot.is_alone_until_seen and is_seen:
            host.let_others_in(slot)
            state.reservations.seen(slot.root.kind, slot.peak_bytes)
            state.commands.append(RecordNotice(notice=Notice.MEASURED, subject=slot.root.kind, reading=host.reading))


def relieve(state: SchedulerState, host: Host, now_s: float) -> None:
    """Only while the reading itself is high: a level that lasts by hysteresis alone costs nobody anything more."""
    if host.governor.share >= host.limits.emergency_at:
        if slot := to_kill(host, now_s):
            state.stop_slot(slot, KillRun, StopReason.EMERGENCY, now_s)
    elif host.pressure >= Pressure.PREEMPTING and _is_high(host):
        _preempt_one(state, host, now_s)


def _is_high(host: Host) -> bool:
    """A level that follows a higher one has no history of falling yet: there the reading itself has to say it."""
    return not host.governor.is_falling and host.governor.share >= host.limits.preempt_until


def _preempt_one(state: SchedulerState, host: Host, now_s: float) -> None:
    """The last one stays: with it gone, nothing would be left to make progress."""
    if len(host.slots) > 1 and may_preempt_another(host, now_s) and (slot := to_preempt(host, now_s)):
        state.stop_slot(slot, PreemptRun, StopReason.PRESSURE, now_s)


def _is_wanted(state: SchedulerState, host: Host) -> bool:
    return state.queue.total > 0 or any(not survey.granted for survey in host.surveys.by_id.values())


def _start_over(state: SchedulerState, host: Host) -> None:
    """Pressure that never falls must not end all progress: what is in use now counts as nothing, from here on."""
    if host.memory.should_reclaim():
        state.commands.append(Reclaim(host=host.name))
        return
    host.memory.make_floor_the_zero()
    state.queue.skipped_runs.end()
    state.commands.append(RecordNotice(notice=Notice.NEW_ZERO, subject=host.name, reading=host.reading))
