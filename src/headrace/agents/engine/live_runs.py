"""What the engine holds of agent runs in RAM: those that the scheduler knows, and who waits for which.

Covers: the shapes. Does not cover: what happens to them (agents.engine.run_lives).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headrace.agents.contract import RunEnded
from headrace.agents.task import TaskKind
from headrace.errors import HeadraceError, RunCancelled, RunFailed, RunUndecided
from headrace.executor import Signal
from headrace.priority import Priority
from headrace.store.engine_file.engine_schema import RunState
from headrace.threads.crossing import Filled


@dataclass(slots=True, eq=False)
class Submission:
    """One that was asked for; each of `accepted` gets the run's number when it is on disk."""

    id: int
    kind: TaskKind
    key: bytes | None
    name: str
    arguments: bytes
    priority: Priority
    accepted: list[Filled[int]]
    parent: int | None = None


@dataclass(slots=True, eq=False)
class LiveRun:
    """One that the scheduler knows. `arguments` only until it first starts; later they are read from disk."""

    id: int
    name: str
    kind: TaskKind
    priority: Priority
    failures: int
    arguments: bytes | None
    parent: int | None = None
    epoch: int = 0
    is_starting: bool = False
    stop: Signal | None = None
    stop_s: float = 0.0  # when it was told to
    stop_reason: str = ""  # why, where that may become its end
    ended: RunEnded | None = None
    has_mail: bool = False
    has_children: bool = False
    floor_bytes: int | None = None  # in use when it started, where only that can tell what it takes
    used_bytes: int = 0  # as its executor has told
    peak_bytes: int = 0
    effects: set[str] = field(default_factory=set[str])  # steps whose side effects are under way
    marks: dict[str, bytes] = field(default_factory=dict[str, bytes])  # of steps that the controller takes for it
    requests: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])  # what is being done for it
    taken: set[int] = field(default_factory=set[int])  # messages on their way out of the file


class RunEnd(msgspec.Struct, frozen=True):
    """How a run ended. `result` is None where it has to be read from the file; `error` names the step of an
    undecided one.
    """

    name: str
    state: RunState
    result: bytes | None
    error: str

    def failure(self, *, fix: str = "") -> HeadraceError:
        """`fix` is what whoever holds the run can do about it."""
        failure = self._as_error(fix)
        _, _, trace = self.error.partition("\n\n")
        if trace:
            failure.add_note(f"Where it ran:\n{trace}")  # shown where nobody catches it
        return failure

    def _as_error(self, fix: str) -> HeadraceError:
        match self.state:
            case RunState.UNDECIDED:
                return RunUndecided(self.name, self.error)
            case RunState.CANCELLED:
                return RunCancelled(self.name, state="was cancelled", reason=self.error)
            case RunState.FAILED:
                return RunFailed(self.name, state="failed", reason=self.error, fix=fix)
            case RunState.BUDGET_TOO_SMALL:
                told = "cannot run: the memory budget cannot hold it even alone"
                return RunFailed(self.name, state=told, reason=self.error, fix=f"Give the engine more memory=. {fix}")
            case _:
                return RunFailed(self.name, state=f"ended: {self.state.value}", reason=self.error, fix=fix)


class Listeners:
    """Who waits for the end of a run, and who listens to what it emits."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[Filled[RunEnd], None]] = {}  # in order; as many as wait now
        self._listening: dict[int, list[Callable[[Any], None]]] = {}

    def wait(self, id: int, reply: Filled[RunEnd]) -> None:
        self._waiting.setdefault(id, {})[reply] = None

    def give_up(self, id: int, reply: Filled[RunEnd]) -> None:
        """Who was to be told does not wait any more."""
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
