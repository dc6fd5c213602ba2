"""`Engine`: agent runs, surveys and heartbeats side by side inside one memory budget. The caller's side.

The engine's loop has a thread of its own; everything here is called on the caller's loop or thread and passed on.
Does not cover: what happens there (agents.engine.loop).
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

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
from headrace.agents.engine.loop import EngineLoop
from headrace.agents.engine.run_handle import Run, RunStatus
from headrace.agents.engine.status import EngineStatus
from headrace.agents.kept_values import encode_arguments
from headrace.agents.task import TaskKind, kind_of
from headrace.agents.workers.engine_workers import EngineWorkers, Isolation
from headrace.errors import EngineClosed, HeadraceError, OptionError, nearest
from headrace.interviews.api import run_options
from headrace.interviews.ctrl_c import AsyncioKey, end_in_one_line, say_stopping
from headrace.limits import BreakerLimits, MemoryLimits
from headrace.models.services import provider_for
from headrace.plan.job import Job
from headrace.priority import Priority
from headrace.results.results import Results
from headrace.threads.crossing import Crossing, LoopPromise
from headrace.threads.loop_thread import LoopThread
from headrace.workers.functions import refer_to

Answer = TypeVar("Answer")
_Asked: TypeAlias = Callable[[EngineLoop, LoopPromise[Any]], None]

_BY_ARGUMENTS = "\0by arguments"  # no key can be this: it means "the kind and the arguments"
_LOOK_WITHIN_S = 5.0
_LONGEST_NAME = 120
_STOPPED = "Stopped. Everything journaled is saved; run the same program again to go on."
_NOT_OPEN = 'Use "async with Engine(...) as engine:".'


class Engine:
    """Use it as `async with Engine("agents.run") as engine:`. Leaving the block parks what is unfinished.

    Agents run in `slots` worker processes, each held to its memory by the operating system. `preload` names modules
    that workers need, imported once; no file that a worker writes may become larger than `largest_file`.
    isolation="inline" runs agents in this process: any function will do, and a memory limit is best effort. That is the
    default where the platform has no such processes. A run that goes on and finds a step changed since it was
    journaled, in function, arguments or the name of a side effect, is told of in events and log; with strict=True it
    fails instead.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        memory: str | int | MemoryLimits | None = None,
        slots: int = 2,
        slot_memory: str | int | None = None,
        queue_depth: int = 5,
        isolation: Isolation | None = None,
        preload: Sequence[str] = (),
        largest_file: str | int = "4GB",
        grace_s: float = 2.0,
        stuck_after_s: float = 1.0,
        breaker: BreakerLimits | None = None,
        strict: bool = False,
    ) -> None:
        self.path = Path(path).expanduser().resolve()
        self._options = EngineOptions.checked(
            memory=memory,
            slots=slots,
            slot_memory=slot_memory,
            queue_depth=queue_depth,
            isolation=isolation,
            preload=preload,
            largest_file=largest_file,
            grace_s=grace_s,
            stuck_after_s=stuck_after_s,
            breaker=breaker,
            strict=strict,
        )
        self._opened: LoopPromise[None] | None = None
        self._thread: LoopThread[None] | None = None
        self._loop: EngineLoop | None = None
        self._ident = 0
        self._asked: set[LoopPromise[Any]] = set()  # what callers wait for now
        self._called: set[asyncio.Task[Any]] = set()  # what runs for them on the engine's loop
        self._heartbeats: dict[str, Callable[..., Any]] = {}  # as many as there are heartbeats
        self._crossing = Crossing(self._wake)
        self._callers: dict[asyncio.AbstractEventLoop, Crossing] = {}  # one as a rule

    async def __aenter__(self) -> Self:
        if self._thread is not None:
            raise EngineClosed("This engine was opened before.", fix="Make a new one.")
        self._opened = self._reply()
        self._thread = LoopThread(self._main, has_network=True)
        self._thread.future.add_done_callback(self._fail_asked)
        self._thread.start()
        await self._opened.future
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        thread = self._thread
        assert thread is not None
        is_ctrl_c = kind is asyncio.CancelledError and AsyncioKey().is_pressed
        if is_ctrl_c:
            self.tell(lambda loop: say_stopping(loop.in_flight, may_repeat=False))
        self.tell(lambda loop: loop.close())
        ended = asyncio.wrap_future(thread.future)
        while not ended.done():
            try:
                await asyncio.wait([ended])
            except asyncio.CancelledError:
                continue  # parking takes a moment, and is not to be cut short
        thread.join()
        if is_ctrl_c:
            end_in_one_line(under_asyncio=_STOPPED)
        if kind is None:
            ended.result()
        else:
            ended.exception()  # looked at: the caller's own error goes on from here

    async def submit(
        self,
        function: Callable[..., Any],
        *args: Any,
        priority: Priority = Priority.HIGH,
        key: str | None = _BY_ARGUMENTS,
        **keywords: Any,
    ) -> Run:
        """Have an agent run, durable when this returns; waits while the queue of its priority is full.

        The same key is the same run, finished or not; by default the function and its arguments are the key. None
        makes a new run each time.
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
        """The same, but QueueFull where there is no room."""
        return await self._submit(function, args, keywords, priority, key, waits=False)

    async def run(
        self, job: Job, path: str | Path | None = None, *, priority: Priority = Priority.NORMAL, **settings: Any
    ) -> Results:
        """Run a survey beside everything else, in a run file of its own; `settings` are those of `job.run`."""
        checked_job(job)
        if "memory" in settings:
            raise OptionError("memory= is the engine's: a survey in it shares that budget.", fix="Leave it out.")
        options, level = run_options(settings), checked_priority(priority)
        job.check()
        for model in job.models:
            provider_for(model)  # an unknown model or parameter is an error before a file is made
        place = await self.call(lambda loop: loop.surveys.run(job, path, level, options))
        return Results.open(place)

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

        One that takes an argument gets a `ctx`, whose steps are not journaled. A `name` that is given again changes
        what beats under it.
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
        self.tell(lambda loop: loop.heartbeats.add(heartbeat))
        self._heartbeats[shown] = function

    def stop_beating(self, name: str) -> None:
        if name not in self._heartbeats:
            raise OptionError(f"No heartbeat is called {name!r}.", fix=nearest(str(name), self._heartbeats))
        self.tell(lambda loop: loop.heartbeats.remove(name))
        self._heartbeats.pop(name, None)

    def register(self, *functions: Callable[..., Any]) -> None:
        """Go on with unfinished runs of these functions, without submitting any."""
        for function in functions:
            kind = self._kind_of(function)
            self.tell(lambda loop, kind=kind: loop.register(kind))

    async def drain(self) -> None:
        """Wait until every run that can go on by itself has ended."""
        await self.call(lambda loop: loop.drained())

    async def unfinished(self, most: int = 1000) -> list[RunStatus]:
        """Runs that have not ended, oldest first: also those whose function this program does not have."""
        rows = await self.call(lambda loop: loop.requests.unfinished(most))
        return [RunStatus.from_row(row) for row in rows]

    async def find(self, key: str) -> Run | None:
        """The run that was submitted with this key."""
        row = await self.call(lambda loop: loop.requests.find(_digest(b"key", key.encode())))
        return None if row is None else Run(self, row.id, row.name)

    def handle(self, status: RunStatus) -> Run:
        """The run that `unfinished` has listed."""
        return Run(self, status.id, status.name)

    async def events(self, most: int = 1000) -> list[EngineEvent]:
        """What the engine did lately and why: oldest first, at most so many."""
        return [EngineEvent.from_row(row) for row in await self.call(lambda loop: loop.requests.events(most))]

    def status(self) -> EngineStatus:
        """How things stand."""
        return self.look(lambda loop: loop.status())

    @property
    def stuck(self) -> str | None:
        """The stack of what blocks the engine's loop at this moment; None where nothing does."""
        return self._loop.stuck if self._loop is not None else None

    # How the caller's side reaches the loop; used by `Run`.

    async def call(self, make: Callable[[EngineLoop], Coroutine[Any, Any, Answer]]) -> Answer:
        """Await a coroutine that runs on the engine's loop."""

        def start(loop: EngineLoop, reply: LoopPromise[Any]) -> None:
            task = asyncio.get_running_loop().create_task(make(loop))
            self._called.add(task)
            task.add_done_callback(self._called.discard)
            task.add_done_callback(lambda task: _pass_on(task, reply))

        return await self.ask(start)

    async def ask(self, start: _Asked, *, given_up: _Asked | None = None) -> Any:
        """Have the loop begin something that will be replied to, and wait for that; `given_up` is for a caller who
        does not wait to the end.
        """
        reply = self._reply()
        self._asked.add(reply)
        try:
            self.tell(lambda loop: _begin(loop, reply, start))
            return await reply.future
        except asyncio.CancelledError:
            if given_up is not None:
                with suppress(HeadraceError):  # the engine is closed, and has forgotten it already
                    self.tell(lambda loop: given_up(loop, reply))
            raise
        finally:
            self._asked.discard(reply)

    def look(self, make: Callable[[EngineLoop], Answer]) -> Answer:
        """What the loop says at once; also from the engine's own thread."""
        if threading.get_ident() == self._ident and self._loop is not None:
            return make(self._loop)
        future: Future[Answer] = Future()
        self.tell(lambda loop: _fill(future, loop, make))
        try:
            return future.result(_LOOK_WITHIN_S)
        except TimeoutError:
            told = f" What blocks it:\n{self.stuck}" if self.stuck else ""
            raise EngineClosed(f"The engine's loop does not answer.{told}") from None

    def tell(self, what: Callable[[EngineLoop], object]) -> None:
        loop, thread = self._loop, self._thread
        if thread is None or loop is None:
            raise EngineClosed("This engine is not open.", fix=_NOT_OPEN)
        if not thread.is_running:
            raise _why_closed(thread)
        self._crossing.call(what, loop)

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
        number = await self.ask(
            lambda loop, reply: loop.backlog.submit(kind, digest, name, arguments, level, waits=waits, accepted=reply)
        )
        return Run(self, number, name)

    def _kind_of(self, function: Callable[..., Any]) -> TaskKind:
        kind = kind_of(function)
        if self._options.workers.isolation == "process":
            refer_to(kind.function)  # one that a worker could not find is refused before anything starts
        return kind

    def _wake(self, call: Callable[[], None]) -> None:
        if self._thread is not None:
            self._thread.call(call)

    def _reply(self) -> LoopPromise[Any]:
        loop = asyncio.get_running_loop()
        crossing = self._callers.get(loop)
        if crossing is None:
            for ended in [each for each in tuple(self._callers) if each.is_closed()]:
                self._callers.pop(ended, None)  # a service may ask from a loop of its own each time
            crossing = self._callers[loop] = Crossing.to_loop(loop)
        return LoopPromise(crossing)

    async def _main(self) -> None:
        assert self._opened is not None
        self._ident = threading.get_ident()
        workers = EngineWorkers(self._options.workers, self._options.memory)
        await workers.start()
        try:
            self._loop = EngineLoop(self.path, self._options, workers, self._opened)
            await self._loop.main()
        finally:
            await self._end_called()
            await workers.close()

    async def _end_called(self) -> None:
        """Those who called hear how; asyncio would print what fails while its loop is shut down."""
        called = self._called.copy()
        for task in called:
            task.cancel()
        if called:
            await asyncio.wait(called)

    def _fail_asked(self, ended: Future[None]) -> None:
        """Whatever ended the loop, nobody is left waiting for it."""
        error = ended.exception() or EngineClosed("The engine was closed.", fix="Open it again to go on.")
        for reply in (self._opened, *list(self._asked)):
            if reply is not None:
                reply.set_exception(error)


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


def _begin(loop: EngineLoop, reply: LoopPromise[Any], start: _Asked) -> None:
    try:
        start(loop, reply)
    except Exception as error:  # noqa: BLE001 - handed to the caller, whatever it is
        reply.set_exception(error)


def _pass_on(task: asyncio.Task[Any], reply: LoopPromise[Any]) -> None:
    if task.cancelled():
        reply.set_exception(EngineClosed("The engine was closed meanwhile.", fix="Open it again to go on."))
    elif (error := task.exception()) is not None:
        reply.set_exception(error)
    else:
        reply.set_result(task.result())


def _fill(future: Future[Answer], loop: EngineLoop, make: Callable[[EngineLoop], Answer]) -> None:
    try:
        future.set_result(make(loop))
    except Exception as error:  # noqa: BLE001 - handed to the caller, whatever it is
        future.set_exception(error)


def _why_closed(thread: LoopThread[None]) -> BaseException:
    failure = thread.future.exception() if thread.future.done() else None
    return failure or EngineClosed("This engine is closed.", fix=_NOT_OPEN)
