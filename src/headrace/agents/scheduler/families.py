"""Runs and their children. Covers: how one joins what runs, or waits for its parent to run again.

A child has its parent's slot, memory and worker: it starts at once, since its parent may be waiting for it. Where the
parent has been stopped, the child waits for it and starts with it; so it does where it needs more memory than they
have. Does not cover: the first of a family (agents.scheduler.placing).
"""

from __future__ import annotations

from headrace.agents.scheduler.board import Board
from headrace.agents.scheduler.events import Preempt, Start, Why
from headrace.agents.scheduler.task_states import HELD, RUNNING, Family, Task


def elder_of(board: Board, task: Task) -> Task | None:
    """The nearest of its parents that has not ended, and may be waiting for it."""
    elder = task.parent
    while elder is not None and not board.knows(elder):
        elder = elder.parent
    return elder


def join_parent(board: Board, task: Task, parent: Task, now_s: float) -> None:
    """Now, where the family runs and is not stopping; else when it starts again. What ran out of memory needs more
    than the family has: all of it starts again, alone and with all there is, once.
    """
    head, family = _head(board, parent), parent.family if parent.state is RUNNING else None
    task.priority = head.priority
    if family is not None and task.deaths and not family.is_after_death and not family.is_stopping():
        board.stop_family(family, Preempt, Why.FOR_CHILD, now_s)
    if family is not None and not family.is_stopping():
        enter_family(board, task, family)
    else:
        task.state, task.held_by, task.family = HELD, head, None
        head.children[task.id] = task


def enter_family(board: Board, task: Task, family: Family) -> None:
    """A run starts its family; a child joins it, in the same slot and the same memory."""
    task.epoch += 1
    task.state, task.family, task.held_by = RUNNING, family, None
    family.running[task.id] = task
    board.commands.append(
        Start(
            id=task.id,
            epoch=task.epoch,
            host=family.host,
            memory_bytes=family.reserved_bytes,
            slot=family.serial,
            is_alone=family.is_alone,
            preemptions=task.preemptions,
            deaths=task.deaths,
        )
    )


def _head(board: Board, parent: Task) -> Task:
    """The run that brings the family back: the root, or where that has ended, the parent itself."""
    if parent.held_by is not None:
        return parent.held_by
    if parent.family is not None and board.knows(parent.family.root):
        return parent.family.root
    return parent
