"""Surveys inside an engine: they share its memory, its limiters and its loop. Covers: one survey's place in the engine.

    engine readings, pressure level ──► EngineSurveyMemory ──► the survey's window
    scheduler ── GrantPermits ──► grant: pause, or tune and resume
    the survey ── SurveyOpened, SurveyUsage, SurveyClosed ──► scheduler
    the survey ── begun, how far, complete or not ──► engine file ──► resume: go on, by the job in its run file

Does not cover: a run from open to close (interviews.session), its loop (interviews.run), or how many permits there are
(agents.scheduler.hosts.survey_permits).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from msgspec import structs

from headrace.agents.engine.engine_memory import EngineSurveyMemory
from headrace.agents.engine.engine_parts import EngineParts
from headrace.agents.scheduler.events import GrantPermits, SurveyClosed, SurveyOpened, SurveyUsage
from headrace.cluster.node_states import NodeState
from headrace.display import counted
from headrace.errors import EngineClosed, HeadraceError, OptionError, RunFileError
from headrace.interviews.contract import InterviewExecutor
from headrace.interviews.inline import InlineExecutor
from headrace.interviews.job_functions import functions_of
from headrace.interviews.run import SurveyRun
from headrace.interviews.session import Session, path_of_run
from headrace.limits import RunOptions
from headrace.memory.gauge import BudgetReadings
from headrace.memory.governor import Pressure
from headrace.models.response_cache import ResponseCache
from headrace.models.shared_limiters import SharedLimiters
from headrace.plan.job import Job
from headrace.plan.portion import RunScope
from headrace.priority import Priority
from headrace.progress.pace import Progress
from headrace.store.engine_file.engine_surveys import MOST_SURVEYS_SHOWN, SurveyOptions, SurveyRow, SurveyState
from headrace.store.run_file.run_file import RunFile
from headrace.store.run_file.stored_job.stored_lists import read_job
from headrace.units import NONE

_NOTE_EVERY_S = 5.0
_log = logging.getLogger("headrace")


class EngineSurveys:
    """`read_memory` takes a reading of the engine's memory, which grants of permits follow."""

    def __init__(
        self,
        host: str,
        parts: EngineParts,
        readings: BudgetReadings,
        limiters: SharedLimiters,
        cache: Callable[[], ResponseCache | None],
        read_memory: Callable[[], None],
    ) -> None:
        self.host = host
        self.limiters = limiters
        self.cache = cache
        self.readings = readings
        self._parts = parts
        self._driver = parts.driver
        self._writes = parts.writes.surveys
        self.read_memory = read_memory
        self.running: dict[str, SurveyRun] = {}  # as many as the program runs at once
        self._begun: dict[str, _BegunSurvey] = {}  # those, and the ones whose file is being opened
        self._failed: dict[str, str] = {}  # why, of those whose failure is not yet committed
        self._closed: dict[str, tuple[SurveyState, Progress]] = {}  # those whose end is not yet committed
        self._unwritten: dict[str, SurveyRow] = {}  # being opened, or cancelled before they were: the latest
        self._noted_s: dict[str, float] = {}
        self.is_stopping = False

    @property
    def are_over(self) -> bool:
        return not self._begun

    @property
    def tasks(self) -> list[asyncio.Task[RunScope]]:
        """Of the surveys that are not over, for the engine to end."""
        return [begun.task for begun in self._begun.values()]

    async def run(
        self, job: Job, path: str | Path | None, priority: Priority, options: RunOptions
    ) -> tuple[Path, RunScope]:
        """Run a survey until it is complete, or wait for it where it runs already; return its file, and which
        interviews were asked for.

        Raises what `job.run` would, but EngineClosed where that raises Interrupted; refuses workers, and a file in
        which this engine runs something else. Cancelled, it stops a survey that nobody else waits for.
        """
        if options.workers not in (None, NONE):
            raise OptionError(
                "A survey inside an engine has no workers of its own.",
                fix="Leave workers= out, or run the survey by itself with job.run(..., workers=2).",
            )
        place = await asyncio.to_thread(path_of_run, job, path, options)
        with self._shown_while_it_opens(place, priority):
            session = await asyncio.to_thread(self._session, job, place, options)
        while (begun := self._begun.get(str(session.path))) is not None and begun.is_stopping:
            await asyncio.wait({begun.task})  # a cancelled one is about to end: this one goes on from there
        if begun is not None and begun.was_open:
            self._unwritten.pop(begun.path, None)
        if begun is not None and not begun.is_the_same(session):
            raise OptionError(
                f"{session.path} is being run by this engine already, with another job or other options.",
                fix="Wait for it.",
            )
        scope = await self._awaited(begun or self._begin(session, priority, is_background=False))
        await self._parts.writer.flush()
        return session.path, scope

    async def _awaited(self, begun: _BegunSurvey) -> RunScope:
        begun.waiting += 1
        try:
            await asyncio.wait({begun.task})
        except asyncio.CancelledError:
            if begun.waiting == 1 and not begun.is_background:
                begun.is_stopping = True
                if run := self.running.get(begun.path):
                    run.stop()
            raise
        finally:
            begun.waiting -= 1
        return begun.task.result()

    async def resume(self) -> list[Path]:
        """Begin to go on with the surveys in the engine's file that are not complete; return their files. What cannot
        go on is recorded, with the reason.
        """
        resumed: list[Path] = []  # as many as the program has begun
        for row in self._parts.file.surveys.unfinished():
            if row.path in self._begun:
                continue
            try:
                session = await asyncio.to_thread(self._session_of, row)
            except HeadraceError as error:
                self._record_failure("survey not resumed", row.path, error)
                continue
            if row.path not in self._begun:  # else the program has begun it meanwhile
                self._parts.log.record("survey resumed", f"{row.path}: {row.done:,} of {row.total:,} were done")
                self._begin(session, row.priority, is_background=True)
                resumed.append(session.path)
        await self._parts.writer.flush()
        return resumed

    def _session(self, job: Job, path: Path, options: RunOptions) -> Session:
        """Of a survey in this engine, which is exported where the engine is."""
        options = structs.replace(options, telemetry=options.telemetry or self._parts.options.telemetry)
        return Session(job, path, options, has_workers=False, is_heard=False)

    def _session_of(self, row: SurveyRow) -> Session:
        """The session of a survey that goes on, with the job that its run file holds. What is in the file is a claim:
        it must be the plan that this engine ran there, and its models are reached only as this user has confirmed
        before.
        """
        path = Path(row.path)
        job = read_job(path, frozenset())
        if job.identity().digest != row.plan:
            raise RunFileError(
                f"{path} holds another plan than the one that this engine ran there.",
                path=path,
                fix="Run the job that is meant with engine.run(job, path).",
            )
        return self._session(job, path, row.options.run_options())

    def shown(self) -> list[SurveyRow]:
        """The latest surveys, those that run with the figures of this moment."""
        rows = {row.path: self._live(row) for row in self._parts.file.surveys.latest()}
        return [*rows.values(), *(row for path, row in self._unwritten.items() if path not in rows)]

    def _live(self, row: SurveyRow) -> SurveyRow:
        if closed := self._closed.get(row.path):
            row = structs.replace(row, state=closed[0], done=closed[1].done, total=closed[1].total, error="")
        if row.path in self._failed:
            row = structs.replace(row, state=SurveyState.FAILED, error=self._failed[row.path])
        elif row.path in self._begun and closed is None:
            row = structs.replace(row, state=SurveyState.RUNNING, error="")
        if run := self.running.get(row.path):
            progress = run.progress()
            row = structs.replace(row, done=progress.done, total=progress.total)
        return row

    @contextmanager
    def _shown_while_it_opens(self, path: Path, priority: Priority) -> Generator[None]:
        """Show a survey that is not in the engine's file yet, and as stopped where it is cancelled meanwhile. One that
        is refused is shown no more: its caller has the error.
        """
        row = SurveyRow(str(path), "", priority, SurveyOptions(), SurveyState.OPENING, 0, 0, error="")
        self._unwritten.pop(row.path, None)  # the latest is last
        self._unwritten[row.path] = row
        while len(self._unwritten) > MOST_SURVEYS_SHOWN:
            del self._unwritten[next(iter(self._unwritten))]
        try:
            yield
        except (asyncio.CancelledError, EngineClosed):
            if row.path in self._unwritten:  # else it was open, and the engine's file has it
                words = "cancelled before it began: run it again"
                self._unwritten[row.path] = structs.replace(row, state=SurveyState.STOPPED, error=words)
            raise
        except BaseException:
            self._unwritten.pop(row.path, None)
            raise

    def _begin(self, session: Session, priority: Priority, *, is_background: bool) -> _BegunSurvey:
        begun = _BegunSurvey(session, is_background=is_background)
        self._begun[begun.path] = begun
        host = _EngineHost(self, session, priority, begun)
        begun.task = asyncio.get_running_loop().create_task(self._run(session, host, begun))
        begun.task.add_done_callback(lambda task: self._ended(begun, task))
        return begun

    def _ended(self, begun: _BegunSurvey, task: asyncio.Task[RunScope]) -> None:
        del self._begun[begun.path]
        if not task.cancelled():
            task.exception()  # retrieved: nobody may be waiting for it any more

    async def _run(self, session: Session, host: _EngineHost, begun: _BegunSurvey) -> RunScope:
        """Run a survey, and record what it fails with. One whose file could not even be opened is recorded only where
        its caller is not told.
        """
        try:
            with self._shown_while_it_opens(session.path, host.priority):
                return await session.run(host)
        except EngineClosed:
            raise  # it was stopped, and its row says so
        except Exception as error:
            if begun.is_background:
                self._record_failure("survey failed", begun.path, error)
            elif begun.was_open:
                self._note_failure("survey failed", begun.path, error)
            raise

    def _record_failure(self, what: str, path: str, error: Exception) -> None:
        """For a survey that no caller waits for: in the log too."""
        _log.warning("%s: %s: %s", what, path, error)
        self._note_failure(what, path, error)

    def _note_failure(self, what: str, path: str, error: Exception) -> None:
        self._parts.log.record(what, f"{path}: {error}")
        self._parts.writer.write(self._writes.failed(path, str(error)))
        self._failed[path] = str(error)
        self._parts.writer.after_commit(lambda: self._failed.pop(path, None))

    async def open(self, run: SurveyRun, session: Session, wanted: int, priority: Priority) -> None:
        """Journal a survey, and let the scheduler know of it; it waits for its first permits."""
        path, progress = str(session.path), run.progress()
        row = SurveyRow(
            path,
            session.permissions.plan,
            priority,
            SurveyOptions.of(session.options),
            SurveyState.RUNNING,
            progress.done,
            progress.total,
            error="",
        )
        self._parts.writer.write(self._writes.begun(row, time.time()))
        await self._parts.writer.flush()
        self._unwritten.pop(path, None)
        run.pause()
        self.running[path] = run
        if self.is_stopping:  # the engine was left while the file was being opened
            run.stop()
        self._noted_s[path] = time.monotonic()
        self._driver.send(
            SurveyOpened(now_s=time.monotonic(), survey=path, host=self.host, wanted=wanted, priority=priority)
        )
        self.read_memory()

    def close(self, path: Path) -> None:
        run = self.running.pop(str(path))
        self._closed[str(path)] = self._note(str(path), run, is_over=True)
        self._parts.writer.after_commit(lambda: self._closed.pop(str(path), None))
        del self._noted_s[str(path)]
        self._driver.send(SurveyClosed(now_s=time.monotonic(), survey=str(path)))

    def _note(self, path: str, run: SurveyRun, *, is_over: bool = False) -> tuple[SurveyState, Progress]:
        """Note how far a survey is: when it ends, and now and then before, for the case of a kill."""
        progress = run.progress()
        ended = SurveyState.COMPLETE if progress.is_over else SurveyState.STOPPED
        state = ended if is_over else SurveyState.RUNNING
        self._parts.writer.write(self._writes.went_on(path, state, progress.done, progress.total))
        self._noted_s[path] = time.monotonic()
        return state, progress

    def pressure(self) -> Pressure:
        return self._driver.scheduler.pressure(self.host)

    def report(self, survey: str) -> None:
        """Report to the scheduler what a survey uses."""
        if run := self.running.get(survey):
            used, each = run.in_flight, run.interview_bytes
            now_s = time.monotonic()
            self._driver.send(SurveyUsage(now_s=now_s, survey=survey, in_use=used, permit_bytes=each))
            if now_s - self._noted_s[survey] >= _NOTE_EVERY_S:
                self._note(survey, run)

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
        self.is_stopping = True
        for run in self.running.values():
            run.stop()


class _BegunSurvey:
    """A survey from its request to its end. `waiting` callers wait for it; one that goes on in the background
    `is_background`, and is stopped by none of them.
    """

    task: asyncio.Task[RunScope]

    def __init__(self, session: Session, *, is_background: bool) -> None:
        self._plan = session.permissions.plan
        self._options = SurveyOptions.of(session.options)
        self.path = str(session.path)
        self.is_background = is_background
        self.is_stopping = False
        self.was_open = False
        self.waiting = 0

    def is_the_same(self, session: Session) -> bool:
        return (self._plan, self._options) == (session.permissions.plan, SurveyOptions.of(session.options))


class _EngineHost:
    """The SessionHost of one survey inside an engine."""

    listener = None

    def __init__(self, surveys: EngineSurveys, session: Session, priority: Priority, begun: _BegunSurvey) -> None:
        self._surveys = surveys
        self._begun = begun
        self._session = session
        self.priority = priority
        self.memory = EngineSurveyMemory(surveys.readings, surveys.pressure, surveys.read_memory)
        self.limiters = surveys.limiters

    def nodes(self) -> list[NodeState]:
        return []

    def check_wanted(self) -> None:
        if self._surveys.is_stopping:
            raise EngineClosed("The engine was left before the survey began.", fix="Run it again.")
        if self._begun.is_stopping:
            raise EngineClosed("The survey was cancelled before it began.", fix="Run it again.")

    @asynccontextmanager
    async def cache(self) -> AsyncGenerator[ResponseCache | None]:
        yield self._surveys.cache()  # the engine closes it

    def executor(self, cache: ResponseCache | None) -> InterviewExecutor:
        return InlineExecutor(functions_of(self._session.job), self.limiters, cache)

    @asynccontextmanager
    async def running(self, run: SurveyRun, file: RunFile) -> AsyncGenerator[Callable[[Progress], None]]:
        await self._surveys.open(run, self._session, file.budgets.window, self.priority)
        self._begun.was_open = True
        if self._begun.is_stopping:  # cancelled while its file was being opened
            run.stop()
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
