"""Agent runs inside a worker: the inline executor behind a wire. Covers: the worker's side, a run and its children.

What a run does reaches the controller as events, and goes on when they are acknowledged, as it would inline. Does not
cover: the controller's side (agents.workers.agent_executor), or limits, which are set from outside
(workers.warden.warden).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Never, assert_never

from headrace.agents.agent_outbox import AgentOutbox
from headrace.agents.context import Surroundings
from headrace.agents.contract import AgentRun, MemoryUsed
from headrace.agents.inline_agents import InlineAgents
from headrace.agents.link import AgentLink
from headrace.agents.task import TaskKind
from headrace.agents.workers.agent_wire import (
    BeginRun,
    EffectRaised,
    FromAgentWorker,
    FunctionMissing,
    KindRegistered,
    LeaveWorker,
    StepAnswer,
    StepEntered,
    ToAgentWorker,
    decode_to_worker,
)
from headrace.errors import InvalidInput
from headrace.exit_causes import ExitCause
from headrace.memory.measure.os_limits import forget_peak
from headrace.memory.measure.process import own_data_bytes
from headrace.survey.model import Model
from headrace.workers.functions import NotOnThisHost, find_function, refer_to
from headrace.workers.hosting.executor_host import HostLink, host_executor
from headrace.workers.hosting.executor_wire import AckEvents, SignalWork
from headrace.workers.leftovers import ProcessState, is_something_left
from headrace.workers.wire import MEMORY_EXIT_CODE, FunctionReference
from headrace.workers.worker import Port, lend_last_words

SPOILED = b"spoiled"  # returned by a worker that must not be used again
_STEP_THREADS = 4
_THREAD_NAME = "headrace-step"
_THREADS_THAT_END = (_THREAD_NAME, "asyncio_")  # the second are joined when the loop ends


async def host_runs(port: Port, payload: bytes) -> bytes:
    """Host a slot's runs until the controller sends LeaveWorker: the entry of the worker's task."""
    asyncio.get_running_loop().set_exception_handler(_end_where_memory_did)
    forget_peak()  # of the task before
    return await _HostedRuns(port, Path(os.fsdecode(payload) or gettempdir())).until_left()


class _HostedRuns:
    def __init__(self, port: Port, spools: Path) -> None:
        self._port = port
        self._link = HostLink[FromAgentWorker](port)
        self._before = ProcessState.now()
        self._functions = _ImportedFunctions()
        self._threads = _CountedThreads(_STEP_THREADS, _THREAD_NAME)
        surroundings = Surroundings(spools=spools, register=self._send_kind, meet=_refuse_functions)
        self._runs = _MeasuredAgents(self._functions, self._threads, surroundings, _StepOutbox(self._link))
        self._runs.base_bytes = port.base_bytes

    async def until_left(self) -> bytes:
        try:
            await host_executor(self._port, self._link, self._runs, decode_to_worker, self._obey)
        finally:
            await self._runs.close()
            self._threads.shutdown(wait=False, cancel_futures=True)
        is_spoiled = self._runs.met_limit or self._threads.busy or is_something_left(self._before, _THREADS_THAT_END)
        return SPOILED if is_spoiled else b""

    async def _obey(self, message: ToAgentWorker) -> bool:
        match message:
            case BeginRun():
                self._functions.references[message.work.kind] = message.function
                self._begin(message.work)
            case StepAnswer():
                self._runs.put(message.id, message.epoch, message.step, message.data, message.error)
            case LeaveWorker():
                return True
            case SignalWork() | AckEvents():
                pass  # `host_executor` obeys these
            case _:
                assert_never(message)
        return False

    def _begin(self, work: AgentRun) -> None:
        try:
            self._functions[work.kind]
        except (NotOnThisHost, ModuleNotFoundError) as error:  # another host may have it
            self._link.send_now(FunctionMissing(work.id, work.epoch, f"{type(error).__name__}: {error}"))
            return
        except Exception as error:  # noqa: BLE001 - raised inside the run, whose failure it is
            self._functions[work.kind] = partial(_raise, error)
        self._runs.start(work)

    def _send_kind(self, kind: TaskKind) -> None:
        reference = refer_to(kind.function)
        message = KindRegistered(
            kind.name, reference, kind.max_attempts, kind.timeout_s, kind.memory_bytes, kind.breaker, kind.oom_retry
        )
        self._link.send_now(message)


class _MeasuredAgents(InlineAgents):
    """Tells with each ending how much the worker has used at most."""

    met_limit = False
    base_bytes = 0

    def end(self, link: AgentLink, cause: ExitCause, **details: Any) -> None:
        if cause is ExitCause.OUT_OF_MEMORY:
            self.met_limit = True
            lend_last_words()
        if not link.stopping.is_closed:
            peak = max(0, own_data_bytes()[0] - self.base_bytes)
            self._outbox.add(MemoryUsed(id=link.id, epoch=link.epoch, seq=0, memory_bytes=peak))
        super().end(link, cause, **details)


class _StepOutbox(AgentOutbox):
    """Sends at once what the controller must know before a step's function may block the loop or end the worker."""

    def __init__(self, link: HostLink[FromAgentWorker]) -> None:
        super().__init__()
        self._link = link

    def entering(self, id: int, epoch: int, step: str) -> None:
        self._link.send_now(StepEntered(id, epoch, step))

    def effect_raised(self, id: int, epoch: int, step: str) -> None:
        self._link.send_now(EffectRaised(id, epoch, step))


class _ImportedFunctions(dict[str, Callable[..., Any]]):
    """Functions by kind, imported when one is first run: what that raises is the run's failure."""

    def __init__(self) -> None:
        super().__init__()
        self.references: dict[str, FunctionReference] = {}

    def __missing__(self, kind: str) -> Callable[..., Any]:
        function = self[kind] = find_function(self.references[kind])
        return function


class _CountedThreads(ThreadPoolExecutor):
    """Knows whether a step is still busy in a thread: such a worker cannot be used again."""

    busy = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **keywords: Any) -> Future[Any]:
        future = super().submit(fn, *args, **keywords)
        self.busy += 1
        future.add_done_callback(self._one_less)
        return future

    def _one_less(self, _: Future[Any]) -> None:
        self.busy -= 1


def _raise(error: Exception, *_: Any, **__: Any) -> Never:
    raise error


def _refuse_functions(model: Model) -> None:
    if model.functions:
        raise InvalidInput(
            f"Model {model.name!r} is a function, which does not travel from a worker to the engine.",
            fix="Call the function in a step, or open the engine with isolation='inline'.",
        )


def _end_where_memory_did(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """End the worker: after a MemoryError in no run's own code, the state of the loop is unknown."""
    if isinstance(context.get("exception"), MemoryError):
        os._exit(MEMORY_EXIT_CODE)
    loop.default_exception_handler(context)
