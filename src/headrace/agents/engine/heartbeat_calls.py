"""`EngineHeartbeats` calls the heartbeats of an engine when the scheduler says so, and counts how they went.

A heartbeat that raises is recorded and called again in its next period. One that is cancelled and does not stop is torn
down; a thread cannot be ended, so its next call waits until it has returned. Does not cover: when one is due or skipped
(agents.scheduler.heartbeats).
"""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.agents.context import AgentContext, Surroundings
from headrace.agents.contract import AgentRun
from headrace.agents.engine.engine_parts import EngineParts
from headrace.agents.heartbeat_link import HeartbeatLink
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

_CANCELS = 3
_CANCEL_EVERY_S = 1.0


@dataclass(slots=True, kw_only=True)
class Heartbeat:
    """A heartbeat, and how its calls went lately. Times are in seconds since 1970."""

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
        self._called: dict[str, Future[Any]] = {}  # sync functions, in their threads

    def add(self, heartbeat: Heartbeat) -> None:
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
        self.by_name.pop(name, None)
        self._driver.send(HeartbeatRemoved(now_s=time.monotonic(), name=name))

    def start(self, command: StartHeartbeat) -> None:
        task = asyncio.get_running_loop().create_task(self._run(self.by_name[command.name], command.epoch))
        self._tasks[command.name] = task

    def kill(self, command: KillHeartbeat) -> None:
        self._log.record("heartbeat stopped", f"{command.name}: it took longer than its time limit")
        if task := self._tasks.get(command.name):
            self._stop(task, _CANCELS)

    def _stop(self, task: asyncio.Task[None], tries: int) -> None:
        if task.done():
            return
        if not tries:
            tear_down(task)
            return
        task.cancel()
        asyncio.get_running_loop().call_later(_CANCEL_EVERY_S, self._stop, task, tries - 1)

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
        if not tasks:
            return
        _, unstopped = await asyncio.wait(tasks, timeout=_CANCEL_EVERY_S)
        for task in unstopped:
            with suppress(RuntimeError):  # it ignores even this
                tear_down(task)

    async def _run(self, heartbeat: Heartbeat, epoch: int) -> None:
        heartbeat.runs += 1
        heartbeat.skips_in_a_row = 0
        heartbeat.last_run_at, heartbeat.last_error = time.time(), ""
        try:
            await self._call(heartbeat, epoch)
        except asyncio.CancelledError:
            heartbeat.last_error = "stopped"
        except RunStopped as stopped:
            heartbeat.last_error = "stopped"
            if stopped.cause is ExitCause.PARKED:
                self._failed(
                    heartbeat, "A heartbeat cannot wait on disk. Use asyncio.sleep, or submit a run that waits."
                )
        except (Exception, SystemExit) as error:  # noqa: BLE001 - recorded; a heartbeat that fails beats again
            self._failed(heartbeat, f"{type(error).__name__}: {error}"[:500])
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
            if inspect.iscoroutinefunction(heartbeat.function):
                await heartbeat.function(*arguments)
                return
            called = self._called[heartbeat.name] = self._threads.submit(heartbeat.function, *arguments)
            result = await asyncio.wrap_future(called)
            if inspect.isawaitable(result):
                await result
        finally:
            if context is not None:
                context.close()
