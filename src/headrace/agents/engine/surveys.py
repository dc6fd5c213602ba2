"""Surveys inside an engine: tenants with a run file of their own. Covers: one survey from open to close.

It runs on the engine's loop, with as many interviews in flight as the scheduler grants.

Does not cover: the survey's own loop (interviews.run), or how many permits there are (agents.scheduler.survey_permits).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from headrace.agents.engine.engine_memory import EngineSurveyMemory
from headrace.agents.engine.scheduler_driver import SchedulerDriver
from headrace.agents.scheduler.events import GrantPermits, SurveyClosed, SurveyOpened, SurveyUsage
from headrace.display import counted
from headrace.errors import EngineClosed, OptionError
from headrace.interviews.inline import InlineExecutor
from headrace.interviews.permissions import Permissions
from headrace.interviews.run import SurveyRun
from headrace.interviews.spending import check_priced
from headrace.interviews.steering.server import steerable
from headrace.limits import RunOptions
from headrace.memory.gauge import BudgetReadings
from headrace.models.response_cache import ResponseCache
from headrace.models.shared_limiters import SharedLimiters
from headrace.plan.job import Job
from headrace.priority import Priority
from headrace.progress.pace import Progress
from headrace.store.disk_errors import translated_errors
from headrace.store.home import default_path
from headrace.store.run_file.run_file import RunFile
from headrace.units import NONE


class EngineSurveys:
    """`read_memory` is called when a survey opens: grants follow a reading."""

    def __init__(
        self,
        host: str,
        driver: SchedulerDriver,
        readings: BudgetReadings,
        endpoints: SharedLimiters,
        cache: Callable[[], ResponseCache | None],
        read_memory: Callable[[], None],
    ) -> None:
        self._host = host
        self._driver = driver
        self._readings = readings
        self._endpoints = endpoints
        self._cache = cache
        self._read_memory = read_memory
        self.running: dict[str, SurveyRun] = {}  # as many as the program runs at once

    async def run(self, job: Job, path: str | Path | None, priority: Priority, options: RunOptions) -> Path:
        """Until it is complete; raises what `job.run` would."""
        if options.workers not in (None, NONE):
            raise OptionError(
                "A survey inside an engine has no workers of its own.",
                fix="Leave workers= out, or run the survey by itself with job.run(..., workers=2).",
            )
        place = (Path(path) if path is not None else default_path(job)).expanduser().resolve()
        if str(place) in self.running:
            raise OptionError(f"{place} is being run by this engine already.", fix="Wait for it.")
        file = await asyncio.to_thread(_opened, place, job, options, self._readings.limits.budget_bytes)
        try:
            run = self._prepared(job, file, options)
            await self._run_tenant(str(place), run, file, priority)
        finally:
            file.close()
        progress = run.progress()
        if progress.done < progress.total:
            raise _stopped(progress, place) if run.was_stopped else run.why_incomplete()
        return place

    def _prepared(self, job: Job, file: RunFile, options: RunOptions) -> SurveyRun:
        cache = self._cache() if options.cache and not options.fresh and not job.is_test else None
        executor = InlineExecutor([model.functions for model in job.models], self._endpoints, cache)
        memory = EngineSurveyMemory(self._readings, lambda: self._driver.scheduler.pressure(self._host))
        return SurveyRun(job, file, options, memory, executor, None)

    async def _run_tenant(self, tenant: str, run: SurveyRun, file: RunFile, priority: Priority) -> None:
        run.pause()  # until the first grant
        self.running[tenant] = run
        with translated_errors(file.path):
            file.keep_budgets()
            note = file.journal.begin_run(run.reused)
        outcome = "failed"
        opened = SurveyOpened(
            now_s=time.monotonic(), survey=tenant, host=self._host, wanted=file.budgets.window, priority=priority
        )
        self._driver.send(opened)
        self._read_memory()
        try:
            async with steerable(file.path, run):
                await run.run(lambda _: self.report(tenant))
            outcome = "complete" if run.progress().done == run.total else "stopped"
        finally:
            del self.running[tenant]
            self._driver.send(SurveyClosed(now_s=time.monotonic(), survey=tenant))
            note.ended(run.peak_bytes, outcome, self._endpoints.figures().decode())

    def report(self, tenant: str) -> None:
        if run := self.running.get(tenant):
            run.read_memory()
            used = run.in_flight
            self._driver.send(
                SurveyUsage(now_s=time.monotonic(), survey=tenant, in_use=used, permit_bytes=run.interview_bytes)
            )

    def grant(self, command: GrantPermits) -> None:
        run = self.running.get(command.survey)
        if run is None:
            return
        if command.permits == 0:
            run.pause()
        else:
            run.tune(command.permits)
            run.resume()

    def stop(self) -> None:
        for run in self.running.values():
            run.stop()


def _opened(path: Path, job: Job, options: RunOptions, budget_bytes: int) -> RunFile:
    permissions = Permissions.of(job, path, options)
    permissions.check()
    check_priced(job, permissions.budgets)
    permissions.remember()
    return RunFile.open(path, job, options, lambda: None, budget_bytes)


def _stopped(progress: Progress, path: Path) -> EngineClosed:
    # Not Interrupted: a KeyboardInterrupt in a task would end the whole loop.
    return EngineClosed(
        f"The survey was stopped after {progress.done:,} of {counted(progress.total, 'interview')};"
        f" all of them are in {path}.",
        fix="Run the same job with the same path to go on.",
    )
