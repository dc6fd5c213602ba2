"""One run as the caller holds it: started on the engine's thread, watched and stopped from outside.

Covers: opening the run file, running, and closing it whatever happens. Does not cover: what callers do with results
meanwhile (interviews.api).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import HeadraceError, Interrupted, OptionError, RunFileBusy, Spelled, spelled
from headrace.interviews.inline import InlineExecutor
from headrace.interviews.permissions import Permissions
from headrace.interviews.run import CommittedRow, SurveyRun
from headrace.interviews.spending import check_priced
from headrace.interviews.steering.server import steerable
from headrace.limits import RunOptions
from headrace.memory.collector import rare_collections
from headrace.memory.governed import OwnMemory
from headrace.models.response_cache import ResponseCache
from headrace.models.services import provider_for
from headrace.models.shared_limiters import SharedLimiters
from headrace.plan.bitmap import Bitmap
from headrace.plan.job import Job
from headrace.progress.pace import Progress
from headrace.progress.refresh import Display
from headrace.progress.terminal_line import canvas_for, say_reused
from headrace.store.disk_errors import translated_errors
from headrace.store.home import cache_path, default_path
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.run_file import RunFile
from headrace.survey.known_services import SERVICES
from headrace.threads.loop_thread import LoopThread

if TYPE_CHECKING:
    from headrace.interviews.workers.survey_workers import SurveyWorkers


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRun:
    """What a run found when it opened its file: `stored` are the results that will not be made again."""

    path: Path
    stored: Bitmap
    stop: int
    header: RunHeader


class Session:
    """`deliver` is called on the engine's thread with sealed interviews, and with None at the end."""

    def __init__(
        self,
        job: Job,
        path: str | Path | None,
        options: RunOptions,
        deliver: Callable[[list[CommittedRow] | None], None] | None,
    ) -> None:
        if path is None and options.extend:
            raise OptionError(
                spelled("{extend} needs to know which file.", extend=True),
                fix=Spelled("Give the path of the run file to extend.", command="Name the run file with -o."),
            )
        job.check()
        # Resolved: one file has one lock by whatever name, and a later chdir changes nothing.
        self.path = (Path(path) if path is not None else default_path(job)).expanduser().resolve()
        self._permissions = Permissions.of(job, self.path, options)
        self._permissions.check()  # before anything reads a key
        self._budgets, self._worker_count = self._permissions.budgets, self._permissions.confirmed.workers
        if self._worker_count:
            _workers().check_for_workers(job)
        for model in job.models:
            provider_for(model)  # an unknown model or parameter is an error before a file is made
        check_priced(job, self._budgets)
        self.limits = self._permissions.memory_limits()
        self._job = job
        self._options = options
        self._deliver = deliver
        self._stopping = False
        self._endpoints = SharedLimiters()
        self._run: SurveyRun | None = None
        self.opened: Future[OpenedRun] = Future()
        self.opened.set_running_or_notify_cancel()  # or a cancelled waiter would cancel it
        has_network = not self._worker_count and all(model.service_name in SERVICES for model in job.models)
        self._thread = LoopThread(self._main, has_network=has_network)
        self.ended = self._thread.future
        self.ended.add_done_callback(self._tell_end)

    @property
    def is_running(self) -> bool:
        return self._thread.is_running

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """A first call lets what runs end, a second stops at once; either way everything journaled is kept."""
        self._stopping = True
        # Called when the loop gets a turn, which is after the file was opened; until then `_pause` sees it.
        self._thread.call(self._pass_stop_on)

    def delivered(self, count: int) -> None:
        if self._run is not None:
            self._thread.call(self._run.delivered, count)

    def check_is_here(self) -> None:
        """In a fork nothing more would ever arrive."""
        if self._thread.is_elsewhere:
            raise HeadraceError(
                f"This process is a fork of the one that runs {self.path}: the run goes on there, and only there.",
                fix="End a fork with os._exit(), or start it with multiprocessing, so that it does not return here.",
            )

    def progress(self) -> Progress | None:
        """How far the run is, from any thread; None before it has opened its file."""
        return self._run.progress() if self._run is not None else None

    def join(self) -> None:
        self._thread.join()

    def failure(self) -> BaseException | None:
        """What a run that has ended failed with."""
        return self.ended.exception() if self.ended.done() else None

    def _tell_end(self, ended: Future[None]) -> None:
        """Whatever ended the run, nobody is left waiting for it to open or to deliver."""
        if not self.opened.done():
            self.opened.set_exception(ended.exception() or HeadraceError("The run ended before it began."))
        if self._deliver is not None:
            self._deliver(None)

    async def _main(self) -> None:
        if self._worker_count:
            async with _workers().survey_workers(self._job, self._worker_count, self.limits) as workers:
                await self._run_file(workers)
        else:
            await self._run_file(None)

    async def _run_file(self, workers: SurveyWorkers | None) -> None:
        self._permissions.remember()
        file = RunFile.open(self.path, self._job, self._options, self._pause, self.limits.budget_bytes)
        outcome, cache = "failed", self._cache()
        try:
            self._check_budgets(file)
            run = self._run = self._prepared(file, cache, workers)
            with translated_errors(self.path):
                file.keep_budgets()
                note = file.journal.begin_run(run.reused)
            try:
                async with steerable(self.path, run):
                    with nullcontext() if self._job.is_test else rare_collections():
                        await self._run_with_progress(run, file)
                outcome = "complete" if run.progress().done == run.total else "stopped"
            finally:
                note.ended(run.peak_bytes, outcome, self._endpoints.figures().decode())
        finally:
            try:
                file.close()
            finally:
                if cache is not None:
                    await asyncio.to_thread(cache.close)
        progress = run.progress()
        if progress.done < progress.total:
            if run.was_stopped:
                raise Interrupted(self.path, done=progress.done, total=progress.total)
            raise run.why_incomplete()

    def _check_budgets(self, file: RunFile) -> None:
        """What was decided before the file was locked must rest on what it keeps."""
        if file.budgets != self._budgets:
            raise RunFileBusy(
                f"Another run of {self.path} has just changed its budgets.", path=self.path, fix="Run again."
            )

    def _cache(self) -> ResponseCache | None:
        """The replies that earlier runs paid for; not for the test model, and not for a fresh start."""
        is_wanted = self._options.cache and not self._options.fresh and not self._job.is_test
        return ResponseCache.open(cache_path(), time.time()) if is_wanted else None

    def _prepared(self, file: RunFile, cache: ResponseCache | None, workers: SurveyWorkers | None) -> SurveyRun:
        if workers is not None:
            executor = workers.executor(self._endpoints, cache)
        else:
            executor = InlineExecutor([model.functions for model in self._job.models], self._endpoints, cache)
        memory = OwnMemory(self.limits, workers.gauge if workers is not None else None)
        run = SurveyRun(self._job, file, self._options, memory, executor, self._deliver)
        header = RunHeader.load(file.connection, file.path)
        stored = run.portion.of(file.done)
        self.opened.set_result(OpenedRun(path=self.path, stored=stored, stop=run.portion.stop, header=header))
        return run

    async def _run_with_progress(self, run: SurveyRun, file: RunFile) -> None:
        say_reused(run.progress(), file.last_run_at)
        display = Display(canvas_for(self._options.progress_bar))
        try:
            display.show(run.progress())
            await run.run(display.show)
        finally:
            display.close(run.progress())

    def _pass_stop_on(self) -> None:
        if self._run is not None:
            self._run.request_stop()

    def _pause(self) -> None:
        if self._stopping:
            raise Interrupted(self.path, done=0, total=0)


def _workers() -> Any:
    """Loaded where they are asked for: 15 ms and 1.3 MB that other runs have no use for."""
    from headrace.interviews.workers import survey_workers

    return survey_workers
