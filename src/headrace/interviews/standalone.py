"""A survey that runs by itself, as the caller holds it: on a thread of its own, watched and stopped from outside.

Covers: the thread, the caller's futures, worker processes, progress at the terminal, memory of its own.
Does not cover: the run from open to close (interviews.session), or what callers do with results meanwhile
(interviews.delivery).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from headrace.cluster.node_states import NodeState
from headrace.errors import HeadraceError, Interrupted
from headrace.interviews.contract import InterviewExecutor
from headrace.interviews.inline import InlineExecutor
from headrace.interviews.job_functions import functions_of
from headrace.interviews.open_chunks import CommittedRow
from headrace.interviews.run import SurveyRun
from headrace.interviews.session import Session, survey_nodes_module, survey_workers_module
from headrace.limits import RunOptions
from headrace.memory.budget import memory_limits
from headrace.memory.governed import OwnMemory
from headrace.models.response_cache import ResponseCache
from headrace.models.shared_limiters import SharedLimiters
from headrace.plan.bitmap import Bitmap
from headrace.plan.job import Job
from headrace.plan.portion import RunScope
from headrace.priority import Priority
from headrace.progress.pace import Progress
from headrace.progress.refresh import Display
from headrace.progress.terminal_line import canvas_for, say_reused
from headrace.store.home import cache_path
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.run_file import RunFile
from headrace.survey.known_services import SERVICES
from headrace.threads.flag import Flag
from headrace.threads.loop_thread import LoopThread

if TYPE_CHECKING:
    from headrace.interviews.workers.survey_nodes import SurveyNodes
    from headrace.interviews.workers.survey_workers import SurveyWorkers


class OpenedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a run found when it opened its file: `stored` are the results that will not be made again, `scope` the
    interviews that it was asked for.
    """

    path: Path
    stored: Bitmap
    scope: RunScope
    header: RunHeader


class StandaloneRun:
    """`deliver` is called on the run's thread with committed rows, and with None at the end. `check` raises where what
    the run has opened is not what its caller wants: no interview is conducted then.
    """

    def __init__(
        self,
        job: Job,
        path: str | Path | None,
        options: RunOptions,
        deliver: Callable[[list[CommittedRow] | None], None] | None,
        check: Callable[[OpenedRun], None] = lambda _: None,
    ) -> None:
        self._check = check
        self._session = Session(job, path, options, has_workers=True, is_heard=deliver is not None)
        # On a cluster `memory` is a budget of each node: this process has its own.
        self.limits = memory_limits(None) if self._is_on_cluster else self._session.permissions.memory_limits()
        self._deliver = deliver
        self._is_stopping = False
        self._early_stops = 0
        self._run: SurveyRun | None = None
        self.opened: Future[OpenedRun] = Future()
        self.opened.set_running_or_notify_cancel()  # or a cancelled waiter would cancel it
        self._is_opened = Flag()
        is_here = not self._session.workers and not self._is_on_cluster
        has_network = is_here and all(model.service_name in SERVICES for model in job.called_models)
        self._thread = LoopThread(self._main, has_network=has_network)
        self.ended = self._thread.future
        self.ended.add_done_callback(self._has_ended)

    @property
    def _is_on_cluster(self) -> bool:
        return self._session.cluster is not None

    @property
    def is_running(self) -> bool:
        return self._thread.is_running

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """A first call lets interviews in flight end, a second stops at once; everything journaled is kept."""
        self._is_stopping = True
        self._thread.call(self._request_stop)

    def wait_for_opening(self, longest_s: float) -> bool:
        """Wait until the run has opened its file, or has ended; return whether that is so."""
        return self._is_opened.wait(longest_s)

    def wait_for_end(self, longest_s: float) -> bool:
        return self._thread.has_ended.wait(longest_s)

    async def opening(self) -> None:
        """Wait as `wait_for_opening` does, on an event loop and without an end."""
        await self._is_opened.reached()

    async def end(self) -> None:
        await self._thread.has_ended.reached()

    def delivered(self, count: int) -> None:
        if self._run is not None:
            self._thread.call(self._run.delivered, count)

    def check_is_here(self) -> None:
        """Refuse to wait in a fork, where nothing more would ever arrive."""
        if self._thread.is_elsewhere:
            path = self._session.path
            raise HeadraceError(
                f"This process is a fork of the one that runs {path}: the run goes on there, and only there.",
                fix="End a fork with os._exit(), or start it with multiprocessing, so that it does not return here.",
            )

    def progress(self) -> Progress | None:
        """How far the run is, from any thread; None before it has opened its file."""
        return self._run.progress() if self._run is not None else None

    def join(self) -> None:
        self._thread.join()

    def failure(self) -> BaseException | None:
        """The error of a run that has ended."""
        return self.ended.exception() if self.ended.done() else None

    def check_wanted(self) -> None:
        if self._is_stopping:
            raise Interrupted(self._session.path, done=0, total=0)

    def begun(self, run: SurveyRun, file: RunFile) -> None:
        """On the run's thread, before its first interview."""
        stored, header = run.portion.of(file.done), RunHeader.load(file.connection, file.path)
        opened = OpenedRun(path=file.path, stored=stored, scope=run.portion.scope, header=header)
        self._check(opened)
        self._run = run
        for _ in range(self._early_stops):
            run.request_stop()
        self.opened.set_result(opened)
        self._is_opened.set()

    def _has_ended(self, ended: Future[None]) -> None:
        """End every wait of the caller, whatever ended the run."""
        if not self._is_opened.is_set:
            self.opened.set_exception(ended.exception() or HeadraceError("The run ended before it began."))
        self._is_opened.set()
        if self._deliver is not None:
            self._deliver(None)

    def _request_stop(self) -> None:
        if self._run is not None:
            self._run.request_stop()
        else:
            self._early_stops += 1

    async def _main(self) -> None:
        async with self._workers() as workers:
            host = _OwnHost(self, self._session, self._deliver, workers)
            try:
                await self._session.run(host)
            finally:
                host.limiters.close()

    def _workers(self) -> AbstractAsyncContextManager[SurveyWorkers | SurveyNodes | None]:
        """The processes that conduct interviews, None for this one."""
        session = self._session
        if session.cluster is not None:
            memory = session.permissions.budgets.memory
            return survey_nodes_module().survey_nodes(session.job, session.cluster, memory, self.check_wanted)
        if session.workers:
            return survey_workers_module().survey_workers(session.job, session.workers, self.limits)
        return nullcontext()


class _OwnHost:
    """The SessionHost of a survey by itself."""

    priority = Priority.NORMAL

    def __init__(
        self,
        owner: StandaloneRun,
        session: Session,
        listener: Callable[[list[CommittedRow]], None] | None,
        workers: SurveyWorkers | SurveyNodes | None,
    ) -> None:
        self._session = session
        self._owner = owner
        self._workers = workers
        self.memory = OwnMemory(owner.limits, workers.gauge if workers is not None else None)
        self.limiters = SharedLimiters()
        self.listener = listener
        self.check_wanted = owner.check_wanted

    @asynccontextmanager
    async def cache(self) -> AsyncGenerator[ResponseCache]:
        cache = ResponseCache.open(cache_path(), time.time())
        try:
            yield cache
        finally:
            await asyncio.to_thread(cache.close)

    def nodes(self) -> list[NodeState]:
        return self._workers.states() if self._workers is not None else []

    def executor(self, cache: ResponseCache | None) -> InterviewExecutor:
        if self._workers is not None:
            return self._workers.executor(self.limiters, cache)
        return InlineExecutor(functions_of(self._session.job), self.limiters, cache)

    @asynccontextmanager
    async def running(self, run: SurveyRun, file: RunFile) -> AsyncGenerator[Callable[[Progress], None]]:
        self._owner.begun(run, file)
        portion = run.portion
        say_reused(run.progress(), file.last_run_at, lambda: file.failed_among(portion.of(file.done), portion.stop))
        display = Display(canvas_for(self._session.options.progress_bar))
        try:
            display.show(run.progress())
            yield display.show
        finally:
            display.close(run.progress())

    def stopped(self, progress: Progress) -> Interrupted:
        return Interrupted(self._session.path, done=progress.done, total=progress.total)
