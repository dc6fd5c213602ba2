"""Which run starts where. Covers: order, reservations, running alone, giving up what can never fit.

The first in order starts, or nobody does: a later, smaller run that slipped past it would starve it. Only what memory
pressure keeps out is passed over: a level, or for a while a run that was pushed out. Does not cover: what happens to
runs afterwards (agents.scheduler.lifecycle).
"""

from __future__ import annotations

from msgspec import Struct

from headrace.agents.scheduler.board import Board
from headrace.agents.scheduler.events import Preempt, Skip, Verdict, Why
from headrace.agents.scheduler.families import enter_family
from headrace.agents.scheduler.host import Host
from headrace.agents.scheduler.lifecycle import settle
from headrace.agents.scheduler.preemption import may_preempt_another, to_preempt
from headrace.agents.scheduler.task_states import Family, Task
from headrace.agents.scheduler.tenants import Squeeze
from headrace.priority import CRITICAL, Priority


class Need(Struct, frozen=True):
    """`until_seen`: it has to be alone only until it has shown what runs of its kind need."""

    memory_bytes: int
    is_alone: bool
    until_seen: bool


def dispatch(board: Board, now_s: float) -> None:
    """Start what can start now."""
    if board.is_closing:
        return
    if board.circuits.holds_any():
        for task in board.circuits.released(now_s):
            board.waiting.add(task)
    for host in board.hosts.values():
        if host.squeeze:
            host.squeeze = Squeeze.NONE
    while _may_start_any(board) and _start_next(board, now_s):
        pass


def need_of(board: Board, task: Task, host: Host, now_s: float) -> Need:
    """What it declares, else what its kind was seen to need, else a slot's memory; the last two as far as there is. A
    kind's first run is alone; not where it has waited for that, since others may run for hours, and it holds up all.
    """
    limits = board.limits
    usual = task.declared_bytes or board.reservations.needed_bytes(task.kind) or limits.slot_memory_bytes
    asked = max(usual, limits.least_run_bytes)
    there = host.room_beside_surveys_bytes()
    has_died = task.has_died
    if has_died:
        asked = max(asked, there)  # it runs alone: nobody else could use the rest
    is_cut = asked > there
    if is_cut:
        asked = max(there, task.declared_bytes or limits.least_run_bytes)
    is_alone = is_cut or has_died or task.preemptions >= host.limits.most_preemptions
    is_first = is_first_of_its_kind(board, task) and now_s - task.submitted_s < host.limits.min_run_s
    return Need(asked, is_alone or is_first, is_first and not is_alone)


def is_first_of_its_kind(board: Board, task: Task) -> bool:
    """Nobody knows what it needs. CRITICAL does not wait for everyone else to find out."""
    if task.declared_bytes is not None or board.reservations.knows(task.kind):
        return False
    return task.priority is not CRITICAL


def _may_join_its_kind(board: Board, task: Task, host: Host, now_s: float) -> bool:
    """Few runs tell little about the next one: at most twice as many are new at once as have ended, so that there is
    enough left for one that needs more than they did.
    """
    if task.declared_bytes is not None or task.priority is CRITICAL:
        return True
    most = max(1, 2 * board.reservations.ended(task.kind))
    if most >= host.slots:
        return True
    new_since_s = now_s - host.limits.min_run_s
    families = host.families.values()
    return sum(family.root.kind == task.kind and family.started_s > new_since_s for family in families) < most


def _start_next(board: Board, now_s: float) -> bool:
    """Whether one was taken from the queue, so that another may follow."""
    for _, _, task in board.waiting.heads():
        if board.circuits.holds(task):
            board.waiting.remove(task)
            board.circuits.hold(task)
            return True
        hosts = [host for host in board.hosts.values() if host.admits(task)]
        if hosts:
            return _start_or_wait(board, task, hosts, now_s)
        if _is_passed_no_more(board, task, now_s):
            break
        _pass_over(board, task)
    _make_surveys_rest(board)
    return False


def _is_passed_no_more(board: Board, task: Task, now_s: float) -> bool:
    """Whoever starts behind a run that was pushed out may keep up what keeps it out: not for longer than `aging_s`."""
    is_kept_out_alone = any(host.admits_level(task.priority) for host in board.hosts.values())
    return is_kept_out_alone and now_s - task.out_since_s >= board.limits.aging_s


def _pass_over(board: Board, task: Task) -> None:
    """Of a LOW run's level, all that wait are passed over with it, and each is told so."""
    if task.priority is not Priority.LOW or not board.hosts:
        return
    reading = min(board.hosts.values(), key=lambda host: host.pressure).reading
    for passed in board.waiting.passed_over.take(board.waiting.of(Priority.LOW)):
        board.commands.append(Skip(id=passed.id, why=Why.PRESSURE, reading=reading))


def _may_start_any(board: Board) -> bool:
    """CRITICAL may make room for itself; anything else needs a slot."""
    if not board.waiting.total:
        return False
    for host in board.hosts.values():
        if len(host.families) < host.slots:
            return True
    return board.waiting.count(CRITICAL) > 0


def _start_or_wait(board: Board, task: Task, hosts: list[Host], now_s: float) -> bool:
    best: tuple[Host, Need] | None = None
    for host in hosts:
        need = need_of(board, task, host, now_s)
        fits = host.fits(task, need.memory_bytes, need.is_alone) and _may_join_its_kind(board, task, host, now_s)
        has_room = fits and _surveys_allow(host, need, now_s)
        if has_room and (best is None or host.room_bytes() > best[0].room_bytes()):
            best = host, need
    if best is not None:
        host, need = best
        start(board, task, host, need, now_s)
        return True
    if _is_hopeless(board, task, now_s):
        board.waiting.remove(task)
        settle(board, task, Verdict.BUDGET_TOO_SMALL, now_s)
        return True
    for host in hosts:
        host.squeeze = _squeeze_for(host, task, need_of(board, task, host, now_s), now_s)
    if task.priority is CRITICAL:
        _make_room(board, hosts, now_s)
    return False


def start(board: Board, task: Task, host: Host, need: Need, now_s: float) -> None:
    board.waiting.remove(task)
    board.starts += 1
    pauses = bool(host.tenants.by_id) and not _fits_beside_surveys(host, need)
    family = Family(
        task,
        host.name,
        board.starts,
        now_s,
        need.memory_bytes,
        need.is_alone,
        need.until_seen,
        pauses,
        task.has_died,
    )
    host.enter(family)
    enter_family(board, task, family)
    if task.children:
        for child in task.children.values():
            enter_family(board, child, family)
        task.children.clear()


def _make_surveys_rest(board: Board) -> None:
    """Pressure keeps all runs out. Where only a survey runs, it rests, to show whether it is what presses."""
    for host in board.hosts.values():
        if not host.families:
            host.squeeze = Squeeze.ONE


def _surveys_allow(host: Host, need: Need, now_s: float) -> bool:
    """A run beside which surveys have to pause waits until they have had their turn."""
    return not host.tenants.by_id or _fits_beside_surveys(host, need) or host.tenants.may_pause(now_s)


def _fits_beside_surveys(host: Host, need: Need) -> bool:
    return need.memory_bytes <= host.room_beside_surveys_bytes()


def _squeeze_for(host: Host, task: Task, need: Need, now_s: float) -> Squeeze:
    """How far surveys must give way to the run that is next."""
    if host.families:
        has_room = need.memory_bytes <= host.room_beside_others_bytes(task)
        return Squeeze.NONE if has_room else Squeeze.SHARE  # where it has, it waits for a slot, or to be alone
    if need.memory_bytes <= host.room_bytes() - host.tenants.owed_bytes:
        return Squeeze.NONE
    if _fits_beside_surveys(host, need):
        return Squeeze.ONE
    return Squeeze.PAUSE if host.tenants.may_pause(now_s) else Squeeze.NONE  # it is their turn


def _is_hopeless(board: Board, task: Task, now_s: float) -> bool:
    """Whether it has not fitted anywhere, even alone, for long enough to say that it never will."""
    for host in board.hosts.values():
        if host.families or need_of(board, task, host, now_s).memory_bytes <= host.whole_room_bytes:
            task.hopeless_since_s = None
            return False
    if task.hopeless_since_s is None:
        task.hopeless_since_s = now_s
    patience_s = min(host.limits.hopeless_after_s for host in board.hosts.values())
    return now_s - task.hopeless_since_s >= patience_s


def _make_room(board: Board, hosts: list[Host], now_s: float) -> None:
    """CRITICAL never waits for lower work to end by itself."""
    if any(family.is_stopping() for host in hosts for family in host.families.values()):
        return
    for host in hosts:
        family = to_preempt(host, now_s) if may_preempt_another(host, now_s) else None
        if family is not None:
            board.stop_family(family, Preempt, Why.MAKES_ROOM, now_s)
            return
