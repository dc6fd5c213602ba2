"""Agent runs that an engine holds in RAM, and the callers who wait for them.

Covers: `LiveRun` (one run, from its submission or its return from disk until it ends or is parked), `LiveRuns` (all of
them), `RunEnd` (how a run ended, for callers), `Listeners`. Does not cover: what happens to runs (run_commands,
run_events), or runs that are on disk only (backlog).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headrace.agents.contract import RemoteError, RunEnded
from headrace.agents.task import TaskKind
from headrace.errors import RunCancelled, RunFailed, RunUndecided
from headrace.executor import Signal
from headrace.priority import Priority
from headrace.store.engine_file.engine_schema import RunState
from headrace.threads.crossing import Promise


class HeldAnswer(msgspec.Struct, frozen=True):
    """An answer to what a run has asked for, as the executor takes it."""

    step: str
    data: bytes | None
    error: RemoteError | None
    is_in_journal: bool = False  # in place of `data`: it is read from there when the run gets it


@dataclass(slots=True, eq=False)
class LiveRun:
    """A run that waits for room in the queue, or that the scheduler knows.

    `arguments` are held only until its first start; later they are read from disk. Each of `accepted` gets the run's
    number when the submission is on disk.
    """

    id: int
    name: str
    kind: TaskKind
    priority: Priority
    arguments: bytes | None
    parent: int | None = None
    key: bytes | None = None
    accepted: list[Promise[int]] = field(default_factory=list[Promise[int]])
    failures: int = 0
    epoch: int = 0
    is_starting: bool = False
    stop: Signal | None = None
    stop_sent_s: float = 0.0
    is_stopped_for_memory: bool = False
    stop_reason: str = ""  # in words, where it may become the run's error
    is_given_up: bool = False  # stopped for good: cancelled, or out of time
    first_death: str = ""  # how it ran out of memory before its second try
    ended: RunEnded | None = None
    has_mail: bool = False
    has_children: bool = False
    floor_bytes: int | None = None  # in use when it started, where only the difference tells what it takes
    used_bytes: int = 0  # as its executor reported
    peak_bytes: int = 0
    effects: set[str] = field(default_factory=set[str])  # steps whose side effects are in flight
    doubtful: set[str] = field(default_factory=set[str])  # those, and side effects that a stop has cut short
    marks: dict[str, bytes] = field(default_factory=dict[str, bytes])  # of steps that wait for children
    requests: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])  # programs that run for it
    slot: int = 0
    host: str = ""  # where its attempt was started
    answers: int = 0  # given to this attempt
    held: list[HeldAnswer] = field(default_factory=list[HeldAnswer])  # until its slot computes again
    isolated: set[int] = field(default_factory=set[int])  # of its children, those with slots of their own
    taken: set[int] = field(default_factory=set[int])  # messages that are being removed from the file


class LiveRuns:
    """Runs that the scheduler knows, by id: bounded by the queue's depth and the slots."""

    def __init__(self) -> None:
        self.by_id: dict[int, LiveRun] = {}
        self.last_failures: dict[str, tuple[str, str]] = {}  # by kind: the name of its run that failed last, and why
        self._leaving: set[int] = set()  # ended or parked, and not yet so on disk

    def is_ahead_of_disk(self, id: int) -> bool:
        """Whether the file does not yet have the run's latest state."""
        return id in self.by_id or id in self._leaving

    def leave(self, id: int) -> Callable[[], None]:
        """The run's end, or its parking, was written; call what is returned when that is committed."""
        self._leaving.add(id)
        return lambda: self._leaving.discard(id)

    def attempt(self, id: int, epoch: int) -> LiveRun | None:
        """The run, while this attempt of it goes on; None once it was replaced or has ended."""
        run = self.by_id.get(id)
        return run if run is not None and run.epoch == epoch and run.ended is None else None

    def note_memory(self, used_bytes: int) -> None:
        """Update the peaks of runs that are measured by the whole tree."""
        for run in self.by_id.values():
            if run.floor_bytes is not None:
                run.peak_bytes = max(run.peak_bytes, used_bytes - run.floor_bytes)

    def memory_on(self, host: str) -> tuple[tuple[int, int], ...]:
        """(run, bytes) of the runs on a host that are measured one by one."""
        return tuple((run.id, run.used_bytes) for run in self.by_id.values() if run.used_bytes and run.host == host)


class RunEnd(msgspec.Struct, frozen=True):
    """How a run ended, for callers. `result` is None where it must be read from the file; where a run is undecided,
    `error` names the step.
    """

    name: str
    state: RunState
    result: bytes | None
    error: str
    is_endpoints: bool = False  # it failed because a model could not be reached or used

    def failure(self, *, fix: str = "") -> RunFailed:
        """The error to raise; `fix` is what the caller can do about a run that failed."""
        failure = self._as_error(fix)
        failure.is_endpoints = self.is_endpoints
        _, _, trace = self.error.partition("\n\n")
        if trace:
            failure.add_note(f"Where it ran:\n{trace}")  # shown where the error is not caught
        return failure

    def _as_error(self, fix: str) -> RunFailed:
        match self.state:
            case RunState.UNDECIDED:
                return RunUndecided(self.name, self.error)
            case RunState.CANCELLED:
                return RunCancelled(self.name, state="was cancelled", reason=self.error)
            case RunState.FAILED:
                return RunFailed(self.name, state="failed", reason=self.error, fix=fix)
            case RunState.BUDGET_TOO_SMALL:
                state = "cannot run: the memory budget cannot hold it even alone"
                more = "" if self.error else "Give the engine more memory=. "  # else the reason says so
                return RunFailed(self.name, state=state, reason=self.error, fix=f"{more}{fix}")
            case _:
                return RunFailed(self.name, state=f"ended: {self.state.value}", reason=self.error, fix=fix)


class Listeners:
    """Callers who wait for the end of a run, and callers who read the events that it emits."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[Promise[RunEnd], None]] = {}  # in order; as many as wait now
        self._listening: dict[int, list[Callable[[Any], None]]] = {}

    def wait(self, id: int, reply: Promise[RunEnd]) -> None:
        self._waiting.setdefault(id, {})[reply] = None

    def give_up(self, id: int, reply: Promise[RunEnd]) -> None:
        """The caller no longer waits."""
        waiting = self._waiting.get(id, {})
        waiting.pop(reply, None)
        if not waiting:
            self._waiting.pop(id, None)

    def listen(self, id: int, hear: Callable[[Any], None]) -> None:
        self._listening.setdefault(id, []).append(hear)

    def leave(self, id: int, hear: Callable[[Any], None]) -> None:
        kept = [each for each in self._listening.pop(id, []) if each is not hear]
        if kept:
            self._listening[id] = kept

    def emitted(self, id: int, payload: bytes) -> None:
        for hear in self._listening.get(id, ()):
            hear(payload)

    def ended(self, id: int, end: RunEnd) -> None:
        for reply in self._waiting.pop(id, ()):
            reply.set_result(end)
        for hear in self._listening.pop(id, ()):
            hear(None)

    def fail_all(self, error: BaseException) -> None:
        waiting, self._waiting = self._waiting, {}
        for replies in waiting.values():
            for reply in replies:
                reply.set_exception(error)
        listening, self._listening = self._listening, {}
        for hearers in listening.values():
            for hear in hearers:
                hear(None)
