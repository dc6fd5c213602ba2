"""What becomes of a run. Covers: submission, steps, every way to end or to come back, children, cancelling.

Does not cover: when and where it starts (agents.scheduler.placing), or what an ending means
(agents.scheduler.verdicts).
"""

from __future__ import annotations

from headrace.agents.scheduler.board import Board
from headrace.agents.scheduler.events import (
    EffectEnded,
    EffectStarting,
    Ended,
    Ending,
    Kill,
    Park,
    Preempt,
    Refusal,
    Reject,
    Settle,
    Started,
    StepDone,
    Submitted,
    Verdict,
    Why,
)
from headrace.agents.scheduler.families import elder_of, enter_family, join_parent
from headrace.agents.scheduler.task_states import HELD, NEVER_KEPT_OUT, RUNNING, WAITING, Family, Task
from headrace.agents.scheduler.verdicts import Again, judge
from headrace.memory.governor import Pressure
from headrace.priority import Priority

_TAKES_CHILDREN_ALONG = (Verdict.CANCELLED, Verdict.TIMED_OUT)
_TELLS_SIZE = (Ending.DONE, Ending.FAILED, Ending.OUT_OF_MEMORY)


def submitted(board: Board, event: Submitted) -> None:
    task = _task(board, event)
    refusal = _refusal(board, event, task)
    if refusal is not None:
        board.commands.append(_reject(board, task, refusal))
        return
    task.parent = board.tasks.get(event.parent) if event.parent is not None else None
    board.tasks[task.id] = task
    if task.parent is None:
        board.waiting.add(task)
    else:
        join_parent(board, task, task.parent, event.now_s)


def started(board: Board, event: Started) -> None:
    task = board.running(event.id, event.epoch)
    if task is None or task.started_s is not None:
        return
    task.started_s = event.now_s
    if task.limit_s is not None:
        board.set_deadline(task, event.now_s + task.limit_s - task.executed_s)


def step_done(board: Board, event: StepDone) -> None:
    if task := board.running(event.id, event.epoch):
        task.has_progress = True


def effect_starting(board: Board, event: EffectStarting) -> None:
    if task := board.running(event.id, event.epoch):
        task.side_effects += 1


def effect_ended(board: Board, event: EffectEnded) -> None:
    if task := board.running(event.id, event.epoch):
        task.side_effects -= 1


def ended(board: Board, event: Ended) -> None:
    task = board.running(event.id, event.epoch)
    if task is None or task.family is None:
        return
    now_s, family = event.now_s, task.family
    host = board.hosts[family.host]
    was_alone = task.stopping is not None and host.has_only_one()
    del family.running[task.id]
    _count(board, task, family, event)
    verdict = judge(task, event.ending, board.limits, was_alone=was_alone)
    if not family.running:
        host.leave(family, now_s)
    if isinstance(verdict, Verdict):
        settle(board, task, verdict, now_s)
    elif verdict is Again.PARKED:
        _park(board, task, now_s)
        _leave_children(board, task, now_s)
    else:
        _note_crash(board, task, event)
        _come_back(board, task, family, now_s)
    root = family.root
    if not family.running and root.family is family and root.state is HELD:
        _wait(board, root, now_s)  # the last of a family has ended, and its root comes back


def settle(board: Board, task: Task, verdict: Verdict, now_s: float) -> None:
    """Its end, for good."""
    if task.children and verdict in _TAKES_CHILDREN_ALONG:
        while task.children:
            settle(board, task.children.popitem()[1], verdict, now_s)
    board.commands.append(Settle(id=task.id, epoch=task.epoch, verdict=verdict))
    _forget(board, task, verdict, now_s)
    if task.children:
        _leave_children(board, task, now_s)


def park(board: Board, task: Task, now_s: float) -> None:
    """It leaves without an end, and its children that wait for it leave with it."""
    while task.children:
        park(board, task.children.popitem()[1], now_s)
    _park(board, task, now_s)


def stop_for_good(board: Board, task: Task, why: Why, verdict: Verdict, now_s: float) -> None:
    """Cancelled, or out of time; a parent takes its children along."""
    if task.state is RUNNING:
        assert task.family is not None
        if task is task.family.root:
            board.stop_family(task.family, Kill, why, now_s)
        else:
            board.stop(task, Kill, why)
        return
    if task.state is WAITING:
        board.waiting.remove(task)
    elif task.held_by is not None:
        del task.held_by.children[task.id]
    elif task.family is not None:
        board.stop_family(task.family, Kill, why, now_s)  # it has stopped to come back; its children have not yet
    else:
        board.circuits.release(task)
    settle(board, task, verdict, now_s)


def close(board: Board, now_s: float) -> None:
    """Everything that waits is parked; what runs stops at its next step and is parked then."""
    board.is_closing = True
    for task in board.waiting.drain() + board.circuits.drain():
        park(board, task, now_s)
    for host in board.hosts.values():
        for family in host.families.values():
            if not family.is_stopping():
                board.stop_family(family, Preempt, Why.CLOSING, now_s)


def _task(board: Board, event: Submitted) -> Task:
    board.arrivals += 1
    return Task(
        event.id,
        event.kind,
        event.priority,
        event.memory_bytes,
        event.limit_s,
        event.now_s,
        board.arrivals,
        event.epoch,
        event.preemptions,
        event.deaths,
        executed_s=event.executed_s,
    )


def _refusal(board: Board, event: Submitted, task: Task) -> Refusal | None:
    """The circuit is asked last: being accepted by one that has cooled down makes a task its probe."""
    if board.is_closing:
        return Refusal.CLOSING
    if task.id in board.tasks:
        return Refusal.ALREADY_KNOWN
    if event.parent in board.tasks:
        return None  # it has its parent's slot and memory, and its parent may wait for it
    if board.waiting.count(task.priority) >= board.limits.queue_depth:
        return Refusal.QUEUE_FULL
    budgets = [host.limits.budget_bytes for host in board.hosts.values()]
    if task.declared_bytes and budgets and task.declared_bytes > max(budgets):
        return Refusal.BUDGET_TOO_SMALL
    return None if board.circuits.accepts(task, task.submitted_s) else Refusal.CIRCUIT_OPEN


def _reject(board: Board, task: Task, refusal: Refusal) -> Reject:
    return Reject(
        id=task.id,
        refusal=refusal,
        depth=board.waiting.count(task.priority),
        wait_s=board.expected_wait_s(task.priority),
        retry_at_s=board.circuits.next_probe_s(task.kind) if refusal is Refusal.CIRCUIT_OPEN else None,
    )


def _count(board: Board, task: Task, family: Family, event: Ended) -> None:
    """Time and memory this attempt took."""
    if task.started_s is not None:
        task.executed_s += event.now_s - task.started_s
    if task is family.root and event.ending in _TELLS_SIZE:
        board.reservations.seen(task.kind, max(event.peak_bytes, family.peak_bytes))
        board.note_run(task.executed_s)


def _note_crash(board: Board, task: Task, event: Ended) -> None:
    if event.ending is Ending.LOST and task.stopping is None and (note := board.circuits.crashed(task, event.now_s)):
        board.commands.append(note)


def _come_back(board: Board, task: Task, family: Family, now_s: float) -> None:
    root = family.root
    task.returns_below, task.out_since_s = _returns_below(task), now_s
    task.started_s = task.stopping = task.hopeless_since_s = None  # of this attempt; the next starts anew
    task.has_progress, task.side_effects = False, 0
    if task is root:
        task.state = HELD
        if family.running:  # in the same worker: they start again with it
            board.stop_family(family, Kill, Why.WITH_PARENT, now_s)
    elif elder := elder_of(board, task):
        join_parent(board, task, elder, now_s)
    elif family.running and not family.is_stopping() and not task.deaths:
        enter_family(board, task, family)
    else:
        _wait(board, task, now_s)


def _wait(board: Board, task: Task, now_s: float) -> None:
    task.family = None
    if board.is_closing:
        park(board, task, now_s)
    else:
        board.waiting.add(task)


def _leave_children(board: Board, task: Task, now_s: float) -> None:
    """What waited for a parent that has ended goes on by itself, or with one that still has to."""
    children, task.children = task.children, {}
    for child in children.values():
        child.held_by = None
    for child in children.values():
        if elder := elder_of(board, child):
            join_parent(board, child, elder, now_s)
        else:
            _wait(board, child, now_s)


def _returns_below(task: Task) -> int:
    """Where memory pushed it out it does not come back before the pressure has fallen."""
    if task.stopping is Why.PRESSURE or (task.stopping is Why.EMERGENCY and task.priority is not Priority.CRITICAL):
        return Pressure.PREEMPT
    return Pressure.EMERGENCY if task.stopping is Why.EMERGENCY else NEVER_KEPT_OUT


def _park(board: Board, task: Task, now_s: float) -> None:
    board.commands.append(
        Park(
            id=task.id,
            epoch=task.epoch,
            preemptions=task.preemptions,
            deaths=task.deaths,
            executed_s=task.executed_s,
        )
    )
    _forget(board, task, None, now_s)


def _forget(board: Board, task: Task, verdict: Verdict | None, now_s: float) -> None:
    del board.tasks[task.id]
    task.family = None  # they hold each other: without this, only the collector would free them
    if note := board.circuits.settled(task, verdict, now_s):
        board.commands.append(note)
