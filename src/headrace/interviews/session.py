"""One run of a job, from open to close: the same for `job.run` and for `engine.run(job)`.

    checks       the job, permissions, models, prices            Session()
    open         lock and open the run file, in a thread         Session.run
    keep         budgets and models' settings, for later runs    RunFile.keep_given
    run          the run noted, steering socket, SurveyRun.run
    close        the note ended, the file closed, the error of a run that is not complete

`SessionHost` is what differs: whose memory and limiters, which executor, what goes on around the run loop, and the
error of a run that was stopped. Does not cover: the loop (interviews.run), or the hosts: interviews.standalone for a
survey by itself, agents.engine.surveys for one in an engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headrace.cluster.node_states import NodeState
from headrace.errors import BudgetSpent, OptionError, RunFileBusy, Spelled, spelled
from headrace.interviews.contract import InterviewExecutor
from headrace.interviews.permissions import Permissions
from headrace.interviews.run import Listener, SurveyRun
from headrace.interviews.spending import check_priced
from headrace.interviews.steering.server import steerable
from headrace.limits import Budgets, RunOptions
from headrace.memory.collector import rare_collections
from headrace.memory.governed import GovernedMemory
from headrace.models.contacts import is_allowed
from headrace.models.http_client.address_file import AddressFile
from headrace.models.response_cache import ResponseCache
from headrace.models.services import check_described, provider_for
from headrace.models.shared_limiters import SharedLimiters
from headrace.plan.job import Job
from headrace.plan.portion import RunScope
from headrace.priority import Priority
from headrace.progress.pace import Progress
from headrace.results.totals.asked_totals import AskedTotals
from headrace.store.disk_errors import translated_errors
from headrace.store.home import default_path
from headrace.store.run_file.details import RunOutcome
from headrace.store.run_file.run_file import RunFile
from headrace.store.writer_thread import WriterThread
from headrace.survey.model import address_file_of

if TYPE_CHECKING:
    from headrace.telemetry.interview_spans import InterviewSpans


class SessionHost(Protocol):
    """Where a survey runs: by itself, or inside an engine. `listener` gets committed rows, where there is one."""

    @property
    def memory(self) -> GovernedMemory: ...
    @property
    def limiters(self) -> SharedLimiters: ...
    @property
    def listener(self) -> Listener | None: ...
    @property
    def priority(self) -> Priority: ...

    def nodes(self) -> list[NodeState]:
        """How the nodes of a cluster stand, where it runs on one."""
        ...

    def check_wanted(self) -> None:
        """Raise where the run was stopped while its file is still being made; from any thread."""
        ...

    def cache(self) -> AbstractAsyncContextManager[ResponseCache | None]:
        """The replies that earlier runs paid for."""
        ...

    def executor(self, cache: ResponseCache | None) -> InterviewExecutor: ...

    def running(self, run: SurveyRun, file: RunFile) -> AbstractAsyncContextManager[Callable[[Progress], None]]:
        """Around the run loop; what it yields is called with each progress."""
        ...

    def stopped(self, progress: Progress) -> BaseException:
        """The error of a run that was stopped before its plan had ended."""
        ...


class Session:
    """Made with every check that needs no file; `run` once. `workers` is how many processes it may have of its own.
    `is_heard` where a callback or a stream gets the results.
    """

    def __init__(
        self, job: Job, path: str | Path | None, options: RunOptions, *, has_workers: bool, is_heard: bool
    ) -> None:
        self.path = path_of_run(job, path, options)
        self.job = job
        self.options = options
        self.permissions = Permissions.of(job, self.path, options)
        self.permissions.check()  # before anything reads a key
        self.cluster = options.executor
        if self.cluster is not None and not has_workers:
            raise OptionError(
                "A survey in an engine runs in the process of the engine.", fix="Leave executor= out, or use job.run."
            )
        self.workers = self.permissions.confirmed.workers if has_workers and self.cluster is None else 0
        if self.workers or self.cluster is not None:
            survey_workers_module().check_for_workers(job)
        for model in job.called_models:
            provider_for(model)  # an unknown model or parameter is an error before a file is made
            if (file := AddressFile.of(model)) is not None:
                file.read()  # so is one that has no address
        check_priced(job, self.permissions.budgets)
        self._totals = AskedTotals.of(options, self.permissions.keeping, self.path)
        self._totals.check(job, is_heard=is_heard)
        if options.telemetry:
            check_telemetry()

    async def run(self, host: SessionHost) -> RunScope:
        """Return when the plan is complete, with the interviews that were asked for; raise what keeps it from that.
        Everything journaled by then stays.
        """
        self.permissions.remember()
        file = await asyncio.to_thread(self._open, host)
        try:
            self._check_budgets(file)
            with translated_errors(self.path):
                file.keep_given(self.job)  # before the totals begin: they read the models in the file
            async with host.cache() if self._uses_cache else nullcontext() as cache:
                with closing(WriterThread(file.live)) as writer:
                    executor = host.executor(cache)
                    totals = self._totals.begin(self.job, file)
                    async with self._telemetry(file) as telemetry:
                        run = SurveyRun(
                            self.job,
                            file,
                            writer,
                            self.options,
                            host.memory,
                            executor,
                            host.listener,
                            totals,
                            host.priority,
                            telemetry,
                        )
                        await self._run_noted(run, file, host)
        finally:
            file.close()
        progress = run.progress()
        if not progress.is_over:
            raise host.stopped(progress) if run.was_stopped else run.why_incomplete()
        return run.portion.scope

    def _telemetry(self, file: RunFile) -> AbstractAsyncContextManager[InterviewSpans | None]:
        """Around the run, where it is exported; loaded where that is asked for."""
        if not self.options.telemetry:
            return nullcontext()
        from headrace.telemetry.interview_spans import interview_spans

        return interview_spans(self.job, self.path, file.dictionary)

    def _open(self, host: SessionHost) -> RunFile:
        budget_bytes, wanted = host.memory.limits.budget_bytes, self._totals.wanted
        return RunFile.open(self.path, self.job, self.options, host.check_wanted, budget_bytes, wanted)

    async def _run_noted(self, run: SurveyRun, file: RunFile, host: SessionHost) -> None:
        """Run, and have the file note that and how it ended."""
        with translated_errors(self.path):
            note = file.journal.begin_run(run.tally.reused)
        endpoints = partial(host.limiters.shown, *self.job.called_models)
        outcome = RunOutcome.FAILED
        try:
            async with host.running(run, file) as on_progress, steerable(self.path, run, endpoints, host.nodes):
                with nullcontext() if self.job.is_test else rare_collections():
                    await run.run(on_progress)
            outcome = _outcome(run)
        finally:
            note.ended(host.memory.peak_bytes, outcome, host.limiters.figures(self.job.called_models).decode())

    @property
    def _uses_cache(self) -> bool:
        """Not for the test model, and not for a fresh start."""
        return self.options.cache and not self.options.fresh and not self.job.is_test

    def _check_budgets(self, file: RunFile) -> None:
        """Refuse to run where another run has changed the budgets since permissions were decided, before the lock."""
        if file.budgets != self.permissions.budgets:
            raise RunFileBusy(
                f"Another run of {self.path} has just changed its budgets.", path=self.path, fix="Run again."
            )


def check_estimated(job: Job, options: RunOptions) -> None:
    """The checks of a session that need no key, for a job that is estimated and not run. Nothing is contacted or
    loaded; a file that a study from elsewhere names is opened only where this user allows it.
    """
    for model in job.called_models:
        opens_file = model.service_name == "local" or address_file_of(model.parameters) is not None
        if opens_file and not is_allowed(model):
            continue
        check_described(model)
        if (file := AddressFile.of(model)) is not None:
            file.read()
    check_priced(job, options.budgets(Budgets()))


def _outcome(run: SurveyRun) -> RunOutcome:
    """How a run has ended that has raised nothing."""
    if run.progress().is_over:
        return RunOutcome.COMPLETE
    if run.was_stopped:
        return RunOutcome.STOPPED
    return RunOutcome.SPENT if isinstance(run.why_incomplete(), BudgetSpent) else RunOutcome.FAILED


def path_of_run(job: Job, path: str | Path | None, options: RunOptions) -> Path:
    """Where a job that can be run will be: known long before a session is made, which may wait for prices."""
    if path is None and options.extend:
        raise OptionError(
            spelled("{extend} needs to know which file.", extend=True),
            fix=Spelled("Give the path of the run file to extend.", command="Name the run file with -o."),
        )
    job.check()
    # Resolved: one file has one lock by whatever name, and a later chdir changes nothing.
    return (Path(path) if path is not None else default_path(job)).expanduser().resolve()


def check_telemetry() -> None:
    """Refuse to begin where telemetry is asked for and is not installed; loaded where that is so."""
    from headrace.telemetry.otel_export import check_installed

    check_installed()


def survey_workers_module() -> Any:
    """Loaded where workers are asked for: 15 ms and 1.3 MB that other runs have no use for."""
    from headrace.interviews.workers import survey_workers

    return survey_workers


def survey_nodes_module() -> Any:
    """Loaded where a cluster is asked for."""
    from headrace.interviews.workers import survey_nodes

    return survey_nodes
