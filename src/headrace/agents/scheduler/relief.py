"""What follows from a memory reading. Covers: reclaiming, preempting, killing, the new zero where nothing helps.

Does not cover: levels (memory.governor), or the choice of who goes (agents.scheduler.preemption).
"""

from __future__ import annotations

from headrace.agents.scheduler.board import Board
from headrace.agents.scheduler.events import Kill, MemoryRead, Note, Notice, Preempt, Reclaim, Why
from headrace.agents.scheduler.host import Host
from headrace.agents.scheduler.preemption import may_preempt_another, to_kill, to_preempt
from headrace.memory.governor import Pressure


def take_reading(board: Board, host: Host, read: MemoryRead) -> None:
    before = host.pressure
    host.observe(read)
    if host.pressure is not before:
        board.commands.append(Note(notice=Notice.LEVEL, subject=host.name, reading=host.reading))
        if host.pressure is Pressure.CALM:
            board.waiting.passed_over.end()
    if host.pressure > before:
        board.commands.append(Reclaim(host=host.name))
    relieve(board, host, read.now_s)
    if host.has_alone():
        _note_firsts(board, host, read.now_s)
    if host.is_stuck() and _is_wanted(board, host):
        _start_over(board, host)


def _note_firsts(board: Board, host: Host, now_s: float) -> None:
    """The first run of a kind may take hours: others join it as soon as it has shown what it needs."""
    for family in host.families.values():
        is_seen = family.peak_bytes > 0 and now_s - family.started_s >= host.limits.min_run_s
        if family.is_alone_until_seen and is_seen:
            host.let_others_in(family)
            board.reservations.seen(family.root.kind, family.peak_bytes)
            board.commands.append(Note(notice=Notice.MEASURED, subject=family.root.kind, reading=host.reading))


def relieve(board: Board, host: Host, now_s: float) -> None:
    """Only while the reading itself is high: a level that lasts by hysteresis alone costs nobody anything more."""
    if host.governor.share >= host.limits.emergency_at:
        if family := to_kill(host, now_s):
            board.stop_family(family, Kill, Why.EMERGENCY, now_s)
    elif host.pressure >= Pressure.PREEMPT and _is_high(host):
        _preempt_one(board, host, now_s)


def _is_high(host: Host) -> bool:
    """A level that follows a higher one has no history of falling yet: there the reading itself has to say it."""
    return not host.governor.is_falling and host.governor.share >= host.limits.preempt_until


def _preempt_one(board: Board, host: Host, now_s: float) -> None:
    """The last one stays: with it gone, nothing would be left to make progress."""
    if len(host.families) > 1 and may_preempt_another(host, now_s) and (family := to_preempt(host, now_s)):
        board.stop_family(family, Preempt, Why.PRESSURE, now_s)


def _is_wanted(board: Board, host: Host) -> bool:
    return board.waiting.total > 0 or any(not tenant.granted for tenant in host.tenants.by_id.values())


def _start_over(board: Board, host: Host) -> None:
    """Pressure that never falls must not end all progress: what is in use now counts as nothing, from here on."""
    if host.should_reclaim():
        board.commands.append(Reclaim(host=host.name))
        return
    host.start_over()
    board.waiting.passed_over.end()
    board.commands.append(Note(notice=Notice.NEW_ZERO, subject=host.name, reading=host.reading))
