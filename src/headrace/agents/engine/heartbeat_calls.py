"""`EngineHeartbeats` calls the heartbeats of an engine when the scheduler says so, and counts how they went.

A heartbeat that raises is recorded and called again in its next period. One that is cancelled and does not stop is torn
down; a thread cannot be ended, so its next call waits until it has returned. An async one that blocks the engine's loop
stalls everything there, once: from its next call on it has a loop in a thread of its own (agents.heartbeat_loop). Does
not cover: when one is due or skipped (agents.scheduler.heartbeats).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headrace.agents.context import AgentContext, Surroundings, without_stop_iteration
from headrace.agents.contract import AgentRun
from headrace.agents.engine.engine_parts import EngineParts
from headrace.agents.heartbeat_link import HeartbeatLink
from headrace.agents.heartbeat_loop import HeartbeatLoop, is_stopped_from_outside, stop_firmly
from headrace.agents.inline_agents import tear_down
from headrace.agents.model_calls import AgentCalls
from headrace.agents.scheduler.events import (
    HeartbeatAdded,
    HeartbeatEnded,
    HeartbeatRemoved,
    KillHeartbeat,
    SkipHeartbeat,
    StartHeartbeat,
)
from headrace.agents.stopping import RunStopped
from headrace.agents.task import TaskKind
from headrace.errors import OptionError, TaskError
from headrace.exit_causes import ExitCause
from headrace.limits import whole_number
from headrace.threads.slow_turns import SlowTurns

_CANCEL_EVERY_S = 1.0
_LONGEST_TURN_S = 0.2  # what a busy host takes from a turn now and then is less
_log = logging.getLogger("headrace")


@dataclass(slots=True, kw_only=True)
class Heartbeat:
    """A heartbeat, and how its calls went lately. Times are in seconds since 1970. `has_own_thread` once it has blocked
    the engine's loop; `loop` is there from its next call on.
    """

    name: str
    every_s: float
    timeout_s: float
    jitter: float
    max_skips: int
    function: Callable[..., Any]
    runs: int = 0
    failures: int = 0
    skips: int = 0
    skips_in_a_row: int = 0
    last_run_at: float | None = None
    last_error: str = ""
    last_skip_at: float | None = None
    last_skip_reason: str = ""
    has_own_thread: bool = False
    loop: HeartbeatLoop | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise OptionError(f"A heartbeat needs a function, not {type(self.function).__name__}.")
        if not 0 <= self.jitter <= 1:
            raise OptionError(f"jitter={self.jitter!r} must be a share of the period, from 0 to 1.")
        whole_number("max_skips", self.max_skips)

    @property
    def takes_context(self) -> bool:
        parameters = inspect.signature(self.function).parameters.values()
        return any(each.default is each.empty and each.kind <= each.POSITIONAL_OR_KEYWORD for each in parameters)


def _no_children(kind: TaskKind) -> None:
    raise TaskError(f"A heartbeat has no children: {kind.name}.", fix="Have it submit a run: await engine.submit(...).")


class EngineHeartbeats:
    def __init__(
        self,
        parts: EngineParts,
        host: str,
        calls: AgentCalls,
        threads: ThreadPoolExecutor,
        spools: Path,
    ) -> None:
        self.by_name: dict[str, Heartbeat] = {}  # as many as the program has asked for
        self._host = host
        self._driver = parts.driver
        self._log = parts.log
        self._calls = calls
        self._threads = threads
        self._surroundings = Surroundings(spools=spools, register=_no_children, meet=calls.meet)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._called: dict[str, Future[Any]] = {}  # in other threads
        self._loops: set[HeartbeatLoop] = set()  # of heartbeats that block
        self._turns: SlowTurns | None = None  # made on the engine's loop

    def add(self, heartbeat: Heartbeat) -> None:
        former = self.by_name.get(heartbeat.name)
        if former is not None and former.function is heartbeat.function:
            heartbeat.has_own_thread, heartbeat.loop = former.has_own_thread, former.loop
        elif former is not None:
            self._release(former)
        self.by_name[heartbeat.name] = heartbeat
        # A random place in its period: a hundred heartbeats must not run at the same moment.
        place = random.random() * heartbeat.jitter
        self._driver.send(
            HeartbeatAdded(
                now_s=time.monotonic(),
                name=heartbeat.name,
                host=self._host,
                every_s=heartbeat.every_s,
                limit_s=heartbeat.timeout_s,
                jitter=place,
            )
        )

    def remove(self, name: str) -> None:
        if heartbeat := self.by_name.pop(name, None):
            self._release(heartbeat)
        self._driver.send(HeartbeatRemoved(now_s=time.monotonic(), name=name))

    def start(self, command: StartHeartbeat) -> None:
        self._turns = self._turns or SlowTurns(_LONGEST_TURN_S)
        heartbeat = self.by_name[command.name]
        work = self._run(heartbeat, command.epoch)
        self._tasks[command.name] = self._turns.watched(work, lambda took_s: self._blocked(heartbeat, took_s))

    def kill(self, command: KillHeartbeat) -> None:
        words = "it took longer than its time limit"
        if heartbeat := self.by_name.get(command.name):
            words += f", timeout_s={heartbeat.timeout_s:g}"
            heartbeat.failures += 1
            heartbeat.last_error = words
        self._log.record("heartbeat stopped", f"{command.name}: {words}")
        if task := self._tasks.get(command.name):
            stop_firmly(task, every_s=_CANCEL_EVERY_S)

    def skip(self, command: SkipHeartbeat) -> None:
        heartbeat = self.by_name.get(command.name)
        if heartbeat is None:
            return
        heartbeat.skips += 1
        heartbeat.skips_in_a_row = command.skips
        heartbeat.last_skip_at, heartbeat.last_skip_reason = time.time(), command.why.value
        self._log.record("heartbeat skipped", f"{heartbeat.name}: {command.why.value}", reading=command.reading)
        if command.skips == heartbeat.max_skips:
            words = f"{heartbeat.name}: skipped {command.skips} times in a row, nobody watches"
            self._log.record("heartbeat blind", words, reading=command.reading)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        _, unstopped = await asyncio.wait(tasks, timeout=_CANCEL_EVERY_S) if tasks else ((), ())
        for task in unstopped:
            with suppress(RuntimeError):  # it ignores even this
                tear_down(task)
        for loop in self._loops:
            loop.close()
        if self._loops:  # a thread that something blocks is a daemon's, and is left behind
            await asyncio.wait([asyncio.wrap_future(loop.ended) for loop in self._loops], timeout=_CANCEL_EVERY_S)

    def _blocked(self, heartbeat: Heartbeat, took_s: float) -> None:
        """Give a heartbeat that has blocked the engine's loop a thread from its next call on, and say so once."""
        if heartbeat.has_own_thread:
            return
        heartbeat.has_own_thread = True
        words = (
            f"{heartbeat.name}: it blocked the engine's loop for {took_s:.1f} s, with time.sleep, computing or I/O that"
            " waits in an async function; from its next call on it runs in a thread of its own"
        )
        _log.warning("Heartbeat %s.", words)
        self._log.record("heartbeat moved", words)

    def _release(self, heartbeat: Heartbeat) -> None:
        if heartbeat.loop is not None:
            heartbeat.loop.close()
            self._loops.discard(heartbeat.loop)

    async def _run(self, heartbeat: Heartbeat, epoch: int) -> None:
        heartbeat.runs += 1
        heartbeat.skips_in_a_row = 0
        heartbeat.last_run_at = time.time()
        task = asyncio.current_task()
        try:
            await self._call(heartbeat, epoch)
            heartbeat.last_error = ""
        except KeyboardInterrupt:
            raise  # Ctrl-C is the program's
        except BaseException as error:  # noqa: BLE001 - recorded; a heartbeat that fails beats again
            if is_stopped_from_outside(task, error):
                heartbeat.last_error = heartbeat.last_error or "stopped"
            else:
                self._failed(heartbeat, _in_words(error))
        finally:
            self._tasks.pop(heartbeat.name, None)
            self._report_end(heartbeat, epoch)

    def _failed(self, heartbeat: Heartbeat, error: str) -> None:
        heartbeat.failures += 1
        heartbeat.last_error = error
        self._log.record("heartbeat failed", f"{heartbeat.name}: {error}")

    def _report_end(self, heartbeat: Heartbeat, epoch: int) -> None:
        """Report the end once the thread has returned: a heartbeat never runs twice at once."""
        loop, called = asyncio.get_running_loop(), self._called.pop(heartbeat.name, None)

        def report() -> None:
            self._driver.send(HeartbeatEnded(now_s=time.monotonic(), name=heartbeat.name, epoch=epoch))

        def returned(_: Future[Any]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(report)

        if called is None or called.done():
            report()
        else:
            called.add_done_callback(returned)

    async def _call(self, heartbeat: Heartbeat, epoch: int) -> None:
        context: AgentContext | None = None
        if heartbeat.takes_context:
            link = HeartbeatLink(epoch, self._threads, self._calls)
            context = AgentContext(AgentRun(0, epoch, heartbeat.name, b""), link, self._surroundings)
        arguments = () if context is None else (context,)
        try:
            if heartbeat.has_own_thread:
                await self._call_in_its_thread(heartbeat, arguments)
            elif inspect.iscoroutinefunction(heartbeat.function):
                await heartbeat.function(*arguments)
            else:
                call = partial(without_stop_iteration, partial(heartbeat.function, *arguments))
                called = self._called[heartbeat.name] = self._threads.submit(call)
                result = await asyncio.wrap_future(called)
                if inspect.isawaitable(result):
                    await result
        finally:
            if context is not None:
                context.close()

    async def _call_in_its_thread(self, heartbeat: Heartbeat, arguments: tuple[Any, ...]) -> None:
        if heartbeat.loop is None:
            heartbeat.loop = HeartbeatLoop()
            self._loops.add(heartbeat.loop)
        called = self._called[heartbeat.name] = heartbeat.loop.call(heartbeat.function, *arguments)
        try:
            await asyncio.wrap_future(called)
        except asyncio.CancelledError:
            heartbeat.loop.cancel()
            raise


def _in_words(error: BaseException) -> str:
    if isinstance(error, RunStopped) and error.cause is ExitCause.PARKED:
        return "A heartbeat cannot wait on disk. Use asyncio.sleep, or submit a run that waits."
    return f"{type(error).__name__}: {error}"[:500].removesuffix(": ")
