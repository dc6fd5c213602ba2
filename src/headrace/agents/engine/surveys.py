"""Surveys inside an engine: they share its memory, its limiters and its loop. Covers: one survey's place in the engine.

    engine readings, pressure level ──► EngineSurveyMemory ──► the survey's window
    scheduler ── GrantPermits ──► grant: pause, or tune and resume
    the survey ── SurveyOpened, SurveyUsage, SurveyClosed ──► scheduler

Does not cover: a run from open to close (interviews.session), its loop (interviews.run), or how many permits there are
(agents.scheduler.hosts.survey_permits).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from headrace.agents.engine.engine_memory import EngineSurveyMemory
from headrace.agents.engine.scheduler_driver import SchedulerDriver
from headrace.agents.scheduler.events import GrantPermits, SurveyClosed, SurveyOpened, SurveyUsage
from headrace.display import counted
from headrace.errors import EngineClosed, OptionError
from headrace.interviews.contract import InterviewExecutor
from headrace.interviews.inline import InlineExecutor
from headrace.interviews.job_functions import functions_of
from headrace.interviews.run import SurveyRun
from headrace.interviews.session import Session
from headrace.limits import RunOptions
from headrace.memory.gauge import BudgetReadings
from headrace.memory.governor import Pressure
from headrace.models.response_cache import ResponseCache
from headrace.models.shared_limiters import SharedLimiters
from headrace.plan.job import Job
from headrace.plan.portion import RunScope
from headrace.priority import Priority
from headrace.progress.pace import Progress
from headrace.store.run_file.run_file import RunFile
from headrace.units import NONE


class EngineSurveys:
    """`read_memory` takes a reading of the engine's memory, which grants of permits follow."""

    def __init__(
        self,
        host: str,
        driver: SchedulerDriver,
        readings: BudgetReadings,
        limiters: SharedLimiters,
        cache: Callable[[], ResponseCache | None],
        read_memory: Callable[[], None],
    ) -> None:
        self.host = host
        self.limiters = limiters
        self.cache = cache
        self.readings = readings
        self._driver = driver
        self.read_memory = read_memory
        self.running: dict[str, SurveyRun] = {}  # as many as the program runs at once

    async def run(
        self, job: Job, path: str | Path | None, priority: Priority, options: RunOptions
    ) -> tuple[Path, RunScope]:
        """Run a survey until it is complete; return its file, and which interviews were asked for.

        Raises what `job.run` would, but EngineClosed where that raises Interrupted; refuses workers, and a file that
        this engine is running already.
        """
        if options.workers not in (None, NONE):
            raise OptionError(
                "A survey inside an engine has no workers of its own.",
                fix="Leave workers= out, or run the survey by itself with job.run(..., workers=2).",
            )
        session = await asyncio.to_thread(Session, job, path, options, has_workers=False, is_heard=False)
        if str(session.path) in self.running:
            raise OptionError(f"{session.path} is being run by this engine already.", fix="Wait for it.")
        return session.path, await session.run(_EngineHost(self, session, priority))

    def open(self, run: SurveyRun, path: Path, wanted: int, priority: Priority) -> None:
        """Let the scheduler know of a survey, which waits for its first permits."""
        run.pause()
        self.running[str(path)] = run
        self._driver.send(
            SurveyOpened(now_s=time.monotonic(), survey=str(path), host=self.host, wanted=wanted, priority=priority)
        )
        self.read_memory()

    def close(self, path: Path) -> None:
        del self.running[str(path)]
        self._driver.send(SurveyClosed(now_s=time.monotonic(), survey=str(path)))

    def pressure(self) -> Pressure:
        return self._driver.scheduler.pressure(self.host)

    def report(self, survey: str) -> None:
        """Report to the scheduler what a survey uses."""
        if run := self.running.get(survey):
            used, each = run.in_flight, run.interview_bytes
            self._driver.send(SurveyUsage(now_s=time.monotonic(), survey=survey, in_use=used, permit_bytes=each))

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


class _EngineHost:
    """The SessionHost of one survey inside an engine."""

    listener = None

    def __init__(self, surveys: EngineSurveys, session: Session, priority: Priority) -> None:
        self._surveys = surveys
        self._session = session
        self.priority = priority
        self.memory = EngineSurveyMemory(surveys.readings, surveys.pressure, surveys.read_memory)
        self.limiters = surveys.limiters

    def check_wanted(self) -> None:
        """An engine that is left stops its surveys once they run."""

    @asynccontextmanager
    async def cache(self) -> AsyncGenerator[ResponseCache | None]:
        yield self._surveys.cache()  # the engine closes it

    def executor(self, cache: ResponseCache | None) -> InterviewExecutor:
        return InlineExecutor(functions_of(self._session.job), self.limiters, cache)

    @asynccontextmanager
    async def running(self, run: SurveyRun, file: RunFile) -> AsyncGenerator[Callable[[Progress], None]]:
        self._surveys.open(run, file.path, file.budgets.window, self.priority)
        try:
            yield lambda _: self._surveys.report(str(file.path))
        finally:
            self._surveys.close(file.path)

    def stopped(self, progress: Progress) -> EngineClosed:
        # Not Interrupted: a KeyboardInterrupt in a task would end the whole loop.
        return EngineClosed(
            f"The survey was stopped after {progress.done:,} of {counted(progress.total, 'interview')};"
            f" all of them are in {self._session.path}.",
            fix="Run the same job with the same path to go on.",
        )
