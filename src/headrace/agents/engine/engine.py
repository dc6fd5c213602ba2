"""`Engine`: agent runs, surveys and heartbeats side by side inside one memory budget, as users hold it.

Each verb checks its options on the caller's side and passes the work to the engine's loop. Does not cover: how it gets
there (loop_access), what happens there (loop), one run (run_handle).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from headrace.agents.engine.engine_options import (
    EngineOptions,
    checked_job,
    checked_key,
    checked_name,
    checked_priority,
    checked_seconds,
)
from headrace.agents.engine.event_log import EngineEvent
from headrace.agents.engine.heartbeat_calls import Heartbeat
from headrace.agents.engine.loop_access import LoopAccess
from headrace.agents.engine.run_handle import Run, RunStatus
from headrace.agents.engine.status import EngineStatus
from headrace.agents.kept_values import encode_arguments
from headrace.agents.task import TaskKind, kind_of
from headrace.agents.workers.engine_workers import Isolation
from headrace.errors import OptionError, nearest
from headrace.interviews.ctrl_c import AsyncioKey, end_in_one_line, say_stopping
from headrace.limits import USUAL_BREAKER, BreakerLimits, MemoryLimits
from headrace.priority import Priority
from headrace.ray_option import Ray
from headrace.survey.model import Model
from headrace.workers.functions import refer_to

if TYPE_CHECKING:
    from headrace.plan.job import Job
    from headrace.results.results import Results

_BY_ARGUMENTS = "\0by arguments"  # no key can be this: it means "the kind and the arguments"
_LONGEST_NAME = 120
_STOPPED = "Stopped. Everything journaled is saved; run the same program again to go on."


class Engine:
    """Use it as `async with Engine("agents.run") as engine:`. Leaving the block parks unfinished runs.

    Agents run in `slots` worker processes (2), each held to its memory by the operating system. `preload` names modules
    that workers need, imported once; no file that a worker writes may become larger than `largest_file`. A run that ran
    out of memory is tried once more, with `oom_retry_memory`. `breaker` is when failures of a kind's runs refuse new
    ones, None for never.
    isolation="inline" runs agents in this process: any function will do, and a memory limit is best effort. That is the
    default where the platform has no such processes. A step that changed since it was journaled, in function,
    arguments or the name of a side effect, is reported in events and log when its run goes on; with strict=True the run
    fails instead. telemetry=True exports agent runs and surveys as spans and metrics, by OpenTelemetry.
    executor=Ray(...) runs agents on the nodes of a cluster: `memory` is then the budget of each node.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        memory: str | int | MemoryLimits | None = None,
        slots: int | None = None,
        slot_memory: str | int | None = None,
        oom_retry_memory: str | int | None = None,
        queue_depth: int = 5,
        isolation: Isolation | None = None,
        preload: Sequence[str] = (),
        largest_file: str | int = "4GB",
        grace_s: float = 2.0,
        stuck_after_s: float = 1.0,
        breaker: BreakerLimits | None = USUAL_BREAKER,
        strict: bool = False,
        telemetry: bool = False,
        executor: Ray | None = None,
    ) -> None:
        self.path = Path(path).expanduser().resolve()
        self._checked_options = partial(
            EngineOptions.checked,
            memory=memory,
            slots=slots,
            slot_memory=slot_memory,
            oom_retry_memory=oom_retry_memory,
            queue_depth=queue_depth,
            isolation=isolation,
            preload=preload,
            largest_file=largest_file,
            grace_s=grace_s,
            stuck_after_s=stuck_after_s,
            breaker=breaker,
            strict=strict,
            telemetry=telemetry,
            executor=executor,
        )
        self._isolation = self._checked_options().workers.isolation  # a mistake in them is told here already
        self._access = LoopAccess(self.path)
        self._heartbeats: dict[str, Callable[..., Any]] = {}  # by name, as many as were asked for

    async def __aenter__(self) -> Self:
        # Checked again: what "+512MB" and "60%" come to is what they come to now.
        await self._access.open(self._checked_options())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_ctrl_c = kind is asyncio.CancelledError and AsyncioKey().is_pressed
        if is_ctrl_c:
            self._access.tell(lambda loop: say_stopping(loop.in_flight, may_repeat=False))
        ended = await self._access.close()
        if is_ctrl_c:
            end_in_one_line(under_asyncio=_STOPPED)
        if kind is None:  # else the caller's own error goes on from here
            ended.result()

    async def submit(
        self,
        function: Callable[..., Any],
        *args: Any,
        priority: Priority = Priority.HIGH,
        key: str | None = _BY_ARGUMENTS,
        **keywords: Any,
    ) -> Run:
        """Submit an agent run, durable when this returns; waits while the queue of its priority is full.

        The same key is the same run, finished or not; by default the function and its arguments are the key. None
        makes a new run each time. A higher `priority` than the run has raises it; another function with that key is
        refused.
        """
        return await self._submit(function, args, keywords, priority, key, waits=True)

    async def submit_nowait(
        self,
        function: Callable[..., Any],
        *args: Any,
        priority: Priority = Priority.HIGH,
        key: str | None = _BY_ARGUMENTS,
        **keywords: Any,
    ) -> Run:
        """Submit an agent run, or raise QueueFull where there is no room."""
        return await self._submit(function, args, keywords, priority, key, waits=False)

    async def run(
        self, job: Job, path: str | Path | None = None, *, priority: Priority = Priority.NORMAL, **settings: Any
    ) -> Results:
        """Run a survey beside everything else, in a run file of its own; `settings` are those of `job.run`.

        The engine's file remembers it. The same job and path go on, after a kill too, or wait for a run under way.
        Cancelling this stops the survey, unless others wait for it or `resume_surveys` began it: what is in flight
        ends in the background, and everything is kept.
        """
        # Surveys take as long to load as all else here, and workers, which import Engine, run none.
        from headrace.interviews.api import run_options
        from headrace.results.results import results_of_run

        checked_job(job)
        options, level = run_options(settings), checked_priority(priority)
        if options.memory is not None:
            raise OptionError("memory= is the engine's: a survey in it shares that budget.", fix="Leave it out.")
        if options.view:
            raise OptionError("view= is for job.run().", fix="Look at the file with: headrace view FILE")
        place, scope = await self._access.call(
            lambda loop: loop.surveys.run(job, path, level, options), is_cancelled_with_caller=True
        )
        return results_of_run(place, scope)

    async def resume_surveys(self) -> list[Path]:
        """Go on, in the background, with every survey of this engine's file that is not complete; return their files.

        Each goes on with the job that its run file holds, as `headrace resume` does. What cannot is told in `status()`,
        in events and in the log. `drain` waits for them, and so does `run` with the same job and path.
        """
        return await self._access.call(lambda loop: loop.surveys.resume())

    def every(
        self,
        seconds: float,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        jitter: float = 1.0,
        max_skips: int = 10,
        timeout_s: float | None = None,
    ) -> None:
        """Call a function in a rhythm, at LOW priority: skipped above 70 % of the budget, and that is no failure.

        A function that takes an argument gets a `ctx`, whose steps are not journaled. A `name` that is given again
        replaces its function. A call that takes longer than `timeout_s` (by default its period, at least 1 s) is
        stopped and counts as failed. The first call comes within `jitter` of a period, at a random moment. After
        `max_skips` skipped calls in a row, an event says that nobody watches.
        """
        shown = checked_name(name) or getattr(function, "__qualname__", repr(function))
        if name is None and self._heartbeats.get(shown, function) is not function:
            raise OptionError(f"Another function beats as {shown!r} already.", fix="Give each a name=.")
        every_s = checked_seconds("seconds", seconds)
        heartbeat = Heartbeat(
            name=shown,
            every_s=every_s,
            timeout_s=max(every_s, 1.0) if timeout_s is None else checked_seconds("timeout_s", timeout_s),
            jitter=jitter,
            max_skips=max_skips,
            function=function,
        )
        self._access.tell(lambda loop: loop.heartbeats.add(heartbeat))
        self._heartbeats[shown] = function

    def stop_beating(self, name: str) -> None:
        """Call a heartbeat no more, by its `name`, or by its function's where none was given."""
        if name not in self._heartbeats:
            raise OptionError(f"No heartbeat is called {name!r}.", fix=nearest(str(name), self._heartbeats))
        self._access.tell(lambda loop: loop.heartbeats.remove(name))
        self._heartbeats.pop(name, None)

    def register(self, *functions: Callable[..., Any]) -> None:
        """Let unfinished runs of these functions go on, without submitting any."""
        for function in functions:
            kind = self._kind_of(function)
            self._access.tell(lambda loop, kind=kind: loop.register(kind))

    def reopen(self, model: Model | str | None = None) -> None:
        """Ask a model again at once, by its name or as a Model: one that was closed by a refused key, name or quota, or
        that calls wait for because it is busy, failing or away. None is all models.
        """
        self._access.look(lambda loop: loop.reopen(model))

    async def drain(self) -> None:
        """Wait until every run that can go on by itself has ended."""
        await self._access.call(lambda loop: loop.drained())

    async def unfinished(self, most: int = 1000) -> list[RunStatus]:
        """Runs that have not ended, oldest first: also those whose function this program does not have."""
        rows = await self._access.call(lambda loop: loop.requests.unfinished(most))
        return [RunStatus.from_row(row) for row in rows]

    async def failed(self, most: int = 1000) -> list[RunStatus]:
        """The latest runs that ended without a result and were not cancelled, oldest first, at most `most`:
        `await engine.handle(status).retry()` lets one go on once the cause is gone.
        """
        rows = await self._access.call(lambda loop: loop.requests.failed(most))
        return [RunStatus.from_row(row) for row in rows]

    async def find(self, key: str) -> Run | None:
        """The run that was submitted with this key."""
        row = await self._access.call(lambda loop: loop.requests.find(_digest(b"key", key.encode())))
        return None if row is None else Run(self._access, row.id, row.name)

    def handle(self, status: RunStatus) -> Run:
        """The run that `unfinished` or `failed` has listed."""
        return Run(self._access, status.id, status.name)

    async def events(self, most: int = 1000) -> list[EngineEvent]:
        """What the engine did lately and why: oldest first, at most `most` events."""
        return [EngineEvent.from_row(row) for row in await self._access.call(lambda loop: loop.requests.events(most))]

    def status(self) -> EngineStatus:
        """The engine's state now: runs, memory, heartbeats, circuits, and counts since it was opened."""
        return self._access.look(lambda loop: loop.status())

    @property
    def stuck(self) -> str | None:
        """The stack of what blocks the engine's loop at this moment; None where nothing does."""
        return self._access.stuck

    async def _submit(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        priority: Priority,
        key: str | None,
        *,
        waits: bool,
    ) -> Run:
        kind, level = self._kind_of(function), checked_priority(priority)
        arguments = encode_arguments(kind.name, args, keywords)
        name, digest = _named(kind.name, arguments, checked_key(key))
        number = await self._access.ask(
            lambda loop, reply: loop.backlog.submit(kind, digest, name, arguments, level, waits=waits, accepted=reply)
        )
        return Run(self._access, number, name)

    def _kind_of(self, function: Callable[..., Any]) -> TaskKind:
        kind = kind_of(function)
        if self._isolation == "process":
            refer_to(kind.function)  # one that a worker could not find is refused before anything starts
        return kind


def _named(kind: str, arguments: bytes, key: str | None) -> tuple[str, bytes | None]:
    """How a run is shown, and the digest it is found by."""
    if key is None:
        return kind, None
    if key == _BY_ARGUMENTS:
        shown = f"{kind}{arguments[:_LONGEST_NAME].decode('utf-8', 'replace')}"
        return shown, _digest(b"arguments", kind.encode(), arguments)
    return key, _digest(b"key", key.encode())


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"\0".join(parts)).digest()[:16]
