"""`Backlog` offers agent runs to the scheduler: submissions that wait for room, and runs that wait on disk.

    submit ──► keys: is it a run we have? ──► a line for each level ──┐
    file: waiting, woken, or of a kind that is new here ──────────────┴──► offer(Submitted) ──► accepted, or RejectRun

Runs on disk come first: they were accepted earlier. Covers: keys, room, waking sleepers, kinds whose circuit is open.
Does not cover: runs that the scheduler knows (run_commands, run_events).
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Iterable
from functools import partial

from headrace.agents.contract import ChildWanted
from headrace.agents.engine.engine_parts import HERE, EngineParts
from headrace.agents.engine.live_runs import LiveRun
from headrace.agents.engine.run_commands import RunCommands
from headrace.agents.scheduler.events import PriorityRaised, Refusal, RejectRun, Submitted
from headrace.agents.task import TaskKind, check_succession
from headrace.errors import BudgetTooSmall, CircuitOpen, EngineClosed, HeadraceError, OptionError, QueueFull, TaskError
from headrace.priority import Priority
from headrace.store.engine_file.engine_schema import RunState
from headrace.store.engine_file.runs import RunRow
from headrace.threads.crossing import Promise
from headrace.units import format_bytes

_TRY_AGAIN_AFTER_S = 1.0
_FILTER_BITS = 23  # 1 MB: with a million keys, one look-up in fifty is needless
_FILTER_MASK = (1 << _FILTER_BITS) - 1


class Backlog:
    """Runs whose kind this program has neither registered nor submitted stay on disk."""

    def __init__(self, parts: EngineParts, commands: RunCommands) -> None:
        self._parts = parts
        self._commands = commands
        self._runs = parts.runs
        self._file = parts.file
        self._writer = parts.writer
        self._writes = parts.writes
        self._scheduler = parts.driver.scheduler
        self._kinds = parts.kinds
        self._lines: dict[Priority, deque[LiveRun]] = {level: deque() for level in sorted(Priority, reverse=True)}
        self._children: deque[LiveRun] = deque()  # bounded by what runs ask for at once
        self._in_line = 0
        self._on_disk = set(Priority)  # levels that may have runs on disk that the scheduler does not know
        self._blocked: dict[str, float] = {}  # kinds whose circuit refuses what has never started, until when
        self._fresh: dict[bytes, LiveRun] = {}  # keys that are not on disk yet
        self._unsure: set[LiveRun] = set()  # not refused, and not on disk yet
        self._keys = KeyFilter(parts.file.runs.keys())
        self._next_id = parts.file.values.highest("runs")
        self._next_wake_at = parts.file.runs.next_wake_s()
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
        accepted: Promise[int],
    ) -> None:
        """`accepted` gets the number of the run: a new one, or the one that has this key already."""
        if self.is_closed:
            accepted.set_exception(EngineClosed("The engine is closing.", fix="Submit it when it is open again."))
            return
        if (refused := self._register(kind)) is not None:
            accepted.set_exception(refused)
            return
        if key is not None and (known := self._known(key)) is not None:
            self._submit_again(known, kind, name, priority, accepted)
            return
        if self._scheduler.refuses(kind.name, kind.breaker, time.monotonic()):
            accepted.set_exception(self._circuit_open(kind, self._scheduler.next_probe_s(kind.name)))
            return
        line = self._lines[priority]
        if not waits and (line or not self._scheduler.has_room(priority)):
            accepted.set_exception(self._full(priority))
            return
        line.append(self._new_run(name, kind, priority, arguments, None, key, accepted))
        self._in_line += 1
        self._parts.driver.send()

    def submit_child(self, parent: LiveRun, wanted: ChildWanted, accepted: Promise[int]) -> None:
        """The same for a child: the run that the parent's step has asked for before, or a new one."""
        key = hashlib.sha256(f"child {parent.id} {wanted.step}".encode("utf-8", "replace")).digest()[:16]
        if (known := self._known(key)) is not None:
            if wanted.is_isolated:  # before it may start again
                parent.isolated.add(known.id)
            self._join(known, accepted)
            return
        name = f"{parent.name} > {wanted.kind if wanted.step.startswith('$') else wanted.step}"
        kind = self._kinds[wanted.kind]
        child = self._new_run(name, kind, parent.priority, wanted.arguments, parent.id, key, accepted)
        if wanted.is_isolated:
            parent.isolated.add(child.id)
        self._children.append(child)
        self._parts.driver.send()

    def _new_run(
        self,
        name: str,
        kind: TaskKind,
        priority: Priority,
        arguments: bytes,
        parent: int | None,
        key: bytes | None,
        accepted: Promise[int],
    ) -> LiveRun:
        self._next_id += 1
        run = LiveRun(self._next_id, name, kind, priority, arguments, parent, key, [accepted])
        if key is not None:
            self._fresh[key] = run
        self._unsure.add(run)
        return run

    def _register(self, kind: TaskKind) -> TaskError | None:
        known = self._kinds.get(kind.name)
        try:
            check_succession(known, kind)
        except TaskError as error:
            return error
        if known is None or known.function is not kind.function:
            self._kinds[kind.name] = kind
        return None

    def _known(self, key: bytes) -> LiveRun | RunRow | None:
        """The run that has this key: not on disk yet, or as it is there."""
        if (fresh := self._fresh.get(key)) is not None:
            return fresh
        return None if self._keys.add(key) else self._file.runs.by_key(key)

    def _submit_again(
        self, known: LiveRun | RunRow, kind: TaskKind, name: str, priority: Priority, accepted: Promise[int]
    ) -> None:
        """A submission whose key a run has already: it may raise that run's priority."""
        has_kind = known.kind if isinstance(known, RunRow) else known.kind.name
        if has_kind != kind.name:
            accepted.set_exception(
                OptionError(
                    f"key={name!r} is that of a run of {has_kind}, and this is {kind.name}.",
                    fix="Give each function keys of its own; key=None makes a new run each time.",
                )
            )
            return
        if self._raise(known, priority):
            self._writer.after_commit(partial(accepted.set_result, known.id))
        else:
            self._join(known, accepted)

    def _join(self, known: LiveRun | RunRow, accepted: Promise[int]) -> None:
        if isinstance(known, LiveRun):
            known.accepted.append(accepted)
        else:
            self.look_again(Priority(known.priority))  # its function may be new to this program
            accepted.set_result(known.id)

    def _raise(self, known: LiveRun | RunRow, priority: Priority) -> bool:
        """Raise the run's priority where that is higher than its own; return whether there was something to write."""
        live = self._runs.by_id.get(known.id)
        if priority <= (live or known).priority or (isinstance(known, RunRow) and known.state.is_final):
            return False
        if isinstance(known, LiveRun) and live is None:  # it waits for room, and nothing is written yet
            self._lines[known.priority].remove(known)
            known.priority = priority
            self._lines[priority].append(known)
            self._parts.driver.send()
            return False
        self._parts.log.record("raised", f"to {priority.name}, by another submission of its key", run=known.id)
        self._writer.write(self._writes.runs.raised(known.id, priority))
        self._raised(known.id, priority)
        # Once more when it is on disk: the run may have been read back from there in between.
        self._writer.after_commit(partial(self._raised, known.id, priority))
        return True

    def _raised(self, id: int, priority: Priority) -> None:
        if id in self._runs.by_id:
            self._parts.driver.send(PriorityRaised(now_s=time.monotonic(), id=id, priority=priority))
        else:
            self.look_again(priority)

    def _full(self, priority: Priority) -> QueueFull:
        depth = self._scheduler.snapshot().waiting[priority] + len(self._lines[priority])
        return self._queue_full(priority, depth, self._scheduler.expected_wait_s(priority))

    def _queue_full(self, priority: Priority, depth: int, wait_s: float) -> QueueFull:
        most = self._parts.options.queue.queue_depth
        return QueueFull(priority.name, depth=depth, queue_depth=most, wait_s=wait_s)

    def _circuit_open(self, kind: TaskKind, due_s: float | None) -> CircuitOpen:
        run_name, reason = self._runs.last_failures.get(kind.name, ("", ""))
        retry_after_s = None if due_s is None else max(0.0, due_s - time.monotonic())
        return CircuitOpen(kind.name, retry_after_s=retry_after_s, run_name=run_name, reason=reason)

    # Feeding the scheduler.

    def feed(self) -> bool:
        """Offer the runs that there is room for; return whether any was offered."""
        has_offered = bool(self._children) and not self.is_closed
        while self._children and not self.is_closed:
            self._offer(self._children.popleft())  # in its parent's slot, or at its place: it needs no room
        if self.is_closed or not (self._on_disk or self._in_line):
            return has_offered
        if self._on_disk:
            has_offered |= self._bring_children_back()
        for level, line in self._lines.items():
            if level in self._on_disk:
                has_offered |= self._feed_from_disk(level)
            while line and level not in self._on_disk and self._scheduler.has_room(level):
                self._in_line -= 1
                has_offered |= self._offer_if_wanted(line.popleft())
        return has_offered

    def _bring_children_back(self) -> bool:
        """Children need no room: their parent waits for them, in its slot or beside it."""
        parents = [run.id for run in self._runs.by_id.values() if run.has_children]
        rows = self._file.runs.waiting_children(parents) if parents else []
        waiting = [row for row in rows if not self._runs.is_ahead_of_disk(row.id) and row.kind in self._kinds]
        for row in waiting:
            self._bring_back(row)
        return bool(waiting)

    def _feed_from_disk(self, level: Priority) -> bool:
        has_room, has_offered = self._scheduler.has_room, False
        if not has_room(level):
            return False
        most = len(self._runs.by_id) + 2
        rows = self._file.runs.backlog(level, list(self._kinds), list(self._blocked), most)
        for row in rows:
            if self._runs.is_ahead_of_disk(row.id) or (row.kind in self._blocked and not row.epoch):
                continue
            if not has_room(level):
                return has_offered
            self._bring_back(row)
            has_offered = True
        if len(rows) < most:
            self._on_disk.discard(level)
        return has_offered

    def _bring_back(self, row: RunRow) -> None:
        kind, level = self._kinds[row.kind], Priority(row.priority)
        run = LiveRun(row.id, row.name, kind, level, None, row.parent, failures=row.failures)
        self._runs.by_id[row.id] = run
        refused = self._parts.driver.offer(_submitted(run, row, self._parent(run)))
        if refused is None:
            return
        del self._runs.by_id[row.id]
        if refused.refusal is Refusal.BUDGET_TOO_SMALL:
            self._commands.end_unstarted(row.id, row.name, RunState.BUDGET_TOO_SMALL)
        elif refused.refusal is Refusal.CIRCUIT_OPEN:
            self._blocked[row.kind] = refused.retry_at_s or time.monotonic() + _TRY_AGAIN_AFTER_S

    def _offer_if_wanted(self, run: LiveRun) -> bool:
        """A caller who no longer waits for room, after a timeout for instance, has submitted nothing."""
        if all(reply.is_abandoned for reply in run.accepted):
            self._forget(run)
            return False
        self._offer(run)
        return True

    def _offer(self, run: LiveRun) -> None:
        assert run.arguments is not None
        self._runs.by_id[run.id] = run
        # Written before it is offered: it may start at once, and what it journals must find it there.
        row = (run.key, run.name, run.kind.name, run.arguments, int(run.priority))
        self._writer.write(self._writes.runs.submitted(run.id, *row, time.time(), run.parent))
        refused = self._parts.driver.offer(_submitted(run, None, self._parent(run)))
        if refused is not None:
            del self._runs.by_id[run.id]
            self._writer.write(self._writes.runs.withdrawn(run.id))
            self._forget(run)
            _refuse(run, self._refused(refused, run))
            return
        self._writer.after_commit(partial(self._accepted, run))

    def _too_large(self, run: LiveRun) -> BudgetTooSmall:
        hosts, declared = self._scheduler.snapshot().hosts, run.kind.memory_bytes or 0
        largest = max((host for host in hosts if host.slots), key=lambda host: host.best_room_bytes, default=None)
        budget_bytes, room_bytes = (largest.reading.budget_bytes, largest.best_room_bytes) if largest else (0, 0)
        is_here = largest is None or largest.reading.host == HERE
        whose = "the engine's whole budget" if is_here else "the largest budget of a node"
        rest = "this process" if is_here else "its host process"
        return BudgetTooSmall(
            f"{run.kind.name} declares {format_bytes(declared)}, and {whose} is {format_bytes(budget_bytes)}, of which"
            f" a run can have {format_bytes(max(0, room_bytes))}: the rest is for {rest} itself.",
            budget_bytes=budget_bytes,
            used_bytes=declared,
            fix="Declare less, or give the engine more memory=.",
        )

    def _refused(self, refused: RejectRun, run: LiveRun) -> HeadraceError:
        match refused.refusal:
            case Refusal.CIRCUIT_OPEN:
                return self._circuit_open(run.kind, refused.retry_at_s)
            case Refusal.BUDGET_TOO_SMALL:
                return self._too_large(run)
            case Refusal.QUEUE_FULL:
                return self._queue_full(run.priority, refused.depth, refused.wait_s)
            case Refusal.CLOSING | Refusal.ALREADY_KNOWN:
                return EngineClosed(f"The run was not accepted: {refused.refusal.value}.")

    def _parent(self, run: LiveRun) -> LiveRun | None:
        return self._runs.by_id.get(run.parent) if run.parent is not None else None

    def _accepted(self, run: LiveRun) -> None:
        self._forget(run)
        for reply in run.accepted:
            reply.set_result(run.id)
        run.accepted.clear()

    def _forget(self, run: LiveRun) -> None:
        self._unsure.discard(run)
        if run.key is not None:
            self._fresh.pop(run.key, None)

    # Coming back.

    def parked(self, state: RunState, resume_at: float) -> None:
        if state is RunState.SLEEPING:
            self._next_wake_at = min(resume_at, self._next_wake_at or resume_at)
        elif state is RunState.WAITING:
            self.look_again()

    def look_again(self, level: Priority | None = None) -> None:
        """Read the file again: runs on disk may be ready now."""
        self._on_disk |= {level} if level is not None else set(Priority)
        self._parts.driver.send()

    def tick(self, now_s: float) -> None:
        """Wake runs whose sleep is over; offer kinds again whose circuit may close."""
        clock = self._parts.clock
        if self._next_wake_at is not None and clock.now() >= self._next_wake_at:
            self._next_wake_at = None
            self._writer.write(self._writes.runs.woken(clock.now()))
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
        """Refuse submissions that still wait for room: they were never accepted."""
        self.is_closed = True
        for line in self._lines.values():
            while line:
                error = EngineClosed("The engine was closed before there was room.", fix="Submit it again.")
                _refuse(line.popleft(), error)

    def fail(self, error: BaseException) -> None:
        for run in self._unsure:
            _refuse(run, error)


class KeyFilter:
    """A Bloom filter: tells at once, without the disk, that a key is new. It may take a new key for a known one, never
    the reverse. Keys are digests, so their bytes serve as hashes.
    """

    def __init__(self, keys: Iterable[bytes]) -> None:
        self._bits = bytearray(1 << (_FILTER_BITS - 3))
        for key in keys:
            self.add(key)

    def add(self, key: bytes) -> bool:
        """Add a key; return whether it is new for sure."""
        bits, is_new, number = self._bits, False, int.from_bytes(key[:12])
        for place in (number & _FILTER_MASK, (number >> 32) & _FILTER_MASK, (number >> 64) & _FILTER_MASK):
            bit = 1 << (place & 7)
            if not bits[place >> 3] & bit:
                bits[place >> 3] |= bit
                is_new = True
        return is_new


def _submitted(run: LiveRun, row: RunRow | None, parent: LiveRun | None) -> Submitted:
    """The event that submits a run; `row` is what the file has of one that was here before."""
    return Submitted(
        now_s=time.monotonic(),
        id=run.id,
        kind=run.kind.name,
        priority=run.priority,
        memory_bytes=run.kind.memory_bytes,
        limit_s=run.kind.timeout_s,
        parent=run.parent,
        epoch=row.epoch if row else 0,
        preemptions=row.preemptions if row else 0,
        deaths=row.deaths if row else 0,
        executed_s=row.executed_s if row else 0.0,
        breaker=run.kind.breaker,
        retries_oom=run.kind.oom_retry,
        is_isolated=parent is not None and run.id in parent.isolated,
    )


def _refuse(run: LiveRun, error: BaseException) -> None:
    for reply in run.accepted:
        reply.set_exception(error)
