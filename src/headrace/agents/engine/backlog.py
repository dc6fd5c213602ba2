"""Agent runs on their way to the scheduler: submissions that wait for room, and runs that wait on disk.

What waits on disk comes first: it was accepted earlier. Covers: keys, room, waking sleepers, kinds whose circuit is
open. Does not cover: runs the scheduler knows (agents.engine.run_lives).
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from headrace.agents.contract import ChildWanted
from headrace.agents.engine.engine_writer import EngineWriter
from headrace.agents.engine.key_filter import KeyFilter
from headrace.agents.engine.live_runs import LiveRun, RunEnd, Submission
from headrace.agents.engine.run_lives import AgentRuns
from headrace.agents.engine.scheduler_driver import SchedulerDriver
from headrace.agents.scheduler.events import Refusal, RejectRun, Submitted
from headrace.agents.task import TaskKind, check_succession
from headrace.errors import BudgetTooSmall, CircuitOpen, EngineClosed, HeadraceError, QueueFull, TaskError
from headrace.priority import Priority
from headrace.steady_clock import SteadyClock
from headrace.store.engine_file.engine_file import EngineFile, Writes
from headrace.store.engine_file.engine_schema import RunState
from headrace.store.engine_file.runs import RunRow
from headrace.threads.crossing import Filled, Then
from headrace.units import format_bytes

_TRY_AGAIN_AFTER_S = 1.0


class Backlog:
    """`kinds` are those this program has registered or submitted; runs of others stay on disk."""

    def __init__(
        self,
        file: EngineFile,
        driver: SchedulerDriver,
        writer: EngineWriter,
        writes: Writes,
        runs: AgentRuns,
        kinds: dict[str, TaskKind],
        watch: Callable[[int, Filled[RunEnd]], None],
        clock: SteadyClock,
    ) -> None:
        self._clock = clock
        self._watch = watch
        self._file = file
        self._driver = driver
        self._writer = writer
        self._writes = writes
        self._runs = runs
        self._kinds = kinds
        self._lines: dict[Priority, deque[Submission]] = {level: deque() for level in sorted(Priority, reverse=True)}
        self._children: deque[Submission] = deque()  # bounded by what runs ask for at once
        self._in_line = 0
        self._on_disk = set(Priority)  # levels that may have runs on disk that the scheduler does not know
        self._blocked: dict[str, float] = {}  # kinds whose circuit is open, until when
        self._fresh: dict[bytes, Submission] = {}  # keys that are not on disk yet
        self._unsure: set[Submission] = set()  # not refused, and not on disk yet
        self._keys = KeyFilter(file.runs.keys())
        self._next_id = file.values.highest("runs")
        self._next_wake_at = file.runs.next_wake_s()
        self.is_closed = False

    # Submitting.

    def submit(
        self,
        kind: TaskKind,
        key: bytes | None,
        name: str,
        arguments: bytes,
        priority: Priority,
        *,
        waits: bool,
        accepted: Filled[int],
    ) -> None:
        """`accepted` gets the number of the run, a new one or the one that has this key already."""
        if self.is_closed:
            accepted.set_exception(EngineClosed("The engine is closing.", fix="Submit it when it is open again."))
            return
        if (refused := self._not_met(kind)) is not None:
            accepted.set_exception(refused)
            return
        if key is not None and self._is_known(key, accepted):
            return
        scheduler = self._driver.scheduler
        if scheduler.refuses(kind.name, time.monotonic()):
            accepted.set_exception(_circuit_open(kind, scheduler.next_probe_s(kind.name)))
            return
        line = self._lines[priority]
        if not waits and (line or not scheduler.has_room(priority)):
            accepted.set_exception(self._full(priority))
            return
        self._next_id += 1
        submission = Submission(self._next_id, kind, key, name, arguments, priority, [accepted])
        if key is not None:
            self._fresh[key] = submission
        self._unsure.add(submission)
        line.append(submission)
        self._in_line += 1
        self._driver.tell()

    def _not_met(self, kind: TaskKind) -> TaskError | None:
        known = self._kinds.get(kind.name)
        try:
            check_succession(known, kind)
        except TaskError as error:
            return error
        if known is None or known.function is not kind.function:
            self._kinds[kind.name] = kind
        return None

    def child(self, parent: LiveRun, wanted: ChildWanted) -> None:
        """A run wants the result of another: the one it has asked for before, or a new one."""
        told = (parent.id, parent.epoch, wanted.step)
        key = hashlib.sha256(f"child {parent.id} {wanted.step}".encode("utf-8", "replace")).digest()[:16]
        accepted = Then[int](partial(self._child_accepted, told), partial(self._runs.child_refused, *told))
        if self._is_known(key, accepted):
            return
        self._next_id += 1
        name = f"{parent.name} > {wanted.kind if wanted.step.startswith('$') else wanted.step}"
        kind, level = self._kinds[wanted.kind], parent.priority
        child = Submission(self._next_id, kind, key, name, wanted.arguments, level, [accepted], parent.id)
        self._fresh[key] = child
        self._unsure.add(child)
        self._children.append(child)
        self._driver.tell()

    def _child_accepted(self, told: tuple[int, int, str], child: int) -> None:
        self._watch(child, Then[RunEnd](partial(self._runs.child_ended, *told, child), lambda _: None))

    def _is_known(self, key: bytes, accepted: Filled[int]) -> bool:
        if (fresh := self._fresh.get(key)) is not None:
            fresh.accepted.append(accepted)
            return True
        row = None if self._keys.add(key) else self._file.runs.by_key(key)
        if row is None:
            return False
        self.look_again(Priority(row.priority))  # its function may be new to this program
        accepted.set_result(row.id)
        return True

    def _full(self, priority: Priority) -> QueueFull:
        scheduler = self._driver.scheduler
        depth = scheduler.snapshot().waiting[priority] + len(self._lines[priority])
        return QueueFull(priority.name, depth=depth, wait_s=scheduler.expected_wait_s(priority))

    # Feeding the scheduler.

    def feed(self) -> bool:
        """Offer what there is room for; whether anything was offered."""
        has_offered = bool(self._children) and not self.is_closed
        while self._children and not self.is_closed:
            self._offer(self._children.popleft())  # in its parent's slot: it needs no room
        if self.is_closed or not (self._on_disk or self._in_line):
            return has_offered
        if self._on_disk:
            has_offered |= self._bring_children_back()
        for level, line in self._lines.items():
            if level in self._on_disk:
                has_offered |= self._feed_from_disk(level)
            while line and level not in self._on_disk and self._driver.scheduler.has_room(level):
                self._in_line -= 1
                has_offered |= self._offer_if_wanted(line.popleft())
        return has_offered

    def _bring_children_back(self) -> bool:
        """They need no room: their parent holds a slot and waits for them."""
        parents = [run.id for run in self._runs.live.values() if run.has_children]
        rows = self._file.runs.waiting_children(parents) if parents else []
        waiting = [row for row in rows if not self._runs.knows(row.id) and row.kind in self._kinds]
        for row in waiting:
            self._bring_back(row)
        return bool(waiting)

    def _feed_from_disk(self, level: Priority) -> bool:
        has_room, has_offered = self._driver.scheduler.has_room, False
        if not has_room(level):
            return False
        kinds = [name for name in self._kinds if name not in self._blocked]
        most = len(self._runs.live) + 2
        rows = self._file.runs.backlog(level, kinds, most) if kinds else []
        for row in rows:
            if self._runs.knows(row.id) or row.kind in self._blocked:
                continue
            if not has_room(level):
                return has_offered
            self._bring_back(row)
            has_offered = True
        if len(rows) < most:
            self._on_disk.discard(level)
        return has_offered

    def _bring_back(self, row: RunRow) -> None:
        kind = self._kinds[row.kind]
        level = Priority(row.priority)
        self._runs.revive(row.id, row.name, kind, level, row.failures, None, row.parent)
        refused = self._driver.offer(self._submitted(row.id, kind, level, row.parent, row))
        if refused is None:
            return
        del self._runs.live[row.id]
        if refused.refusal is Refusal.BUDGET_TOO_SMALL:
            self._runs.end_unstarted(row.id, row.name, RunState.BUDGET_TOO_SMALL)
        elif refused.refusal is Refusal.CIRCUIT_OPEN:
            self._blocked[row.kind] = refused.retry_at_s or time.monotonic() + _TRY_AGAIN_AFTER_S

    def _offer_if_wanted(self, submission: Submission) -> bool:
        """One who gave up waiting for room, after a time-out for instance, has not submitted anything."""
        if all(reply.is_abandoned for reply in submission.accepted):
            self._forget(submission)
            return False
        self._offer(submission)
        return True

    def _offer(self, submission: Submission) -> None:
        kind = submission.kind
        level, parent = submission.priority, submission.parent
        self._runs.revive(submission.id, submission.name, kind, level, 0, submission.arguments, parent)
        # Written before it is offered: it may start at once, and what it journals must find it there.
        row = (submission.key, submission.name, kind.name, submission.arguments, int(level))
        self._writer.write(self._writes.runs.submitted(submission.id, *row, time.time(), parent))
        refused = self._driver.offer(self._submitted(submission.id, kind, level, parent, None))
        if refused is not None:
            del self._runs.live[submission.id]
            self._writer.write(self._writes.runs.withdrawn(submission.id))
            self._forget(submission)
            _refuse(submission, self._refused(refused, submission))
            return
        self._writer.after_commit(partial(self._accepted, submission))

    def _refused(self, refused: RejectRun, submission: Submission) -> HeadraceError:
        kind = submission.kind
        match refused.refusal:
            case Refusal.CIRCUIT_OPEN:
                return _circuit_open(kind, refused.retry_at_s)
            case Refusal.BUDGET_TOO_SMALL:
                hosts, declared = self._driver.scheduler.snapshot().hosts, kind.memory_bytes or 0
                budget = hosts[0].reading.budget_bytes if hosts else 0
                return BudgetTooSmall(
                    f"{kind.name} declares {format_bytes(declared)}, and the engine's whole budget is"
                    f" {format_bytes(budget)}.",
                    budget_bytes=budget,
                    used_bytes=declared,
                    fix="Declare less, or give the engine more memory=.",
                )
            case Refusal.QUEUE_FULL:
                return QueueFull(submission.priority.name, depth=refused.depth, wait_s=refused.wait_s)
            case Refusal.CLOSING | Refusal.ALREADY_KNOWN:
                return EngineClosed(f"The run was not accepted: {refused.refusal.value}.")

    def _accepted(self, submission: Submission) -> None:
        self._forget(submission)
        for reply in submission.accepted:
            reply.set_result(submission.id)

    def _forget(self, submission: Submission) -> None:
        self._unsure.discard(submission)
        if submission.key is not None:
            self._fresh.pop(submission.key, None)

    def _submitted(
        self, id: int, kind: TaskKind, priority: Priority, parent: int | None, row: RunRow | None
    ) -> Submitted:
        return Submitted(
            now_s=time.monotonic(),
            id=id,
            kind=kind.name,
            priority=priority,
            memory_bytes=kind.memory_bytes,
            limit_s=kind.timeout_s,
            parent=parent,
            epoch=row.epoch if row else 0,
            preemptions=row.preemptions if row else 0,
            deaths=row.deaths if row else 0,
            executed_s=row.executed_s if row else 0.0,
        )

    # Coming back.

    def parked(self, state: RunState, resume_at: float) -> None:
        if state is RunState.SLEEPING:
            self._next_wake_at = min(resume_at, self._next_wake_at or resume_at)
        elif state is RunState.WAITING:
            self.look_again()

    def look_again(self, level: Priority | None = None) -> None:
        """Runs on disk may be ready now."""
        self._on_disk |= {level} if level is not None else set(Priority)
        self._driver.tell()

    def tick(self, now_s: float) -> None:
        """Wake what has slept long enough; try kinds again whose circuit may close."""
        if self._next_wake_at is not None and self._clock.now() >= self._next_wake_at:
            self._next_wake_at = None
            self._writer.write(self._writes.runs.woken(self._clock.now()))
            self._writer.after_commit(self._woken)
        over = [kind for kind, until_s in self._blocked.items() if now_s >= until_s]
        for kind in over:
            del self._blocked[kind]
        if over:
            self.look_again()

    def _woken(self) -> None:
        next_wake_at = self._file.runs.next_wake_s()
        if next_wake_at is not None:
            self._next_wake_at = min(next_wake_at, self._next_wake_at or next_wake_at)
        self.look_again()

    @property
    def has_more(self) -> bool:
        return bool(self._on_disk) or self._in_line > 0 or bool(self._blocked)

    def close(self) -> None:
        """Submissions that still wait for room were never accepted."""
        self.is_closed = True
        for line in self._lines.values():
            while line:
                error = EngineClosed("The engine was closed before there was room.", fix="Submit it again.")
                _refuse(line.popleft(), error)

    def fail(self, error: BaseException) -> None:
        for submission in self._unsure:
            _refuse(submission, error)


def _refuse(submission: Submission, error: BaseException) -> None:
    for reply in submission.accepted:
        reply.set_exception(error)


def _circuit_open(kind: TaskKind, due_s: float | None) -> CircuitOpen:
    return CircuitOpen(kind.name, retry_after_s=None if due_s is None else max(0, due_s - time.monotonic()))
