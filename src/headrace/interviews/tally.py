"""Counts what a run has done and what it took. Covers: rows committed, failures, models that cannot be asked, and the
error of a run that ended before its plan.

Does not cover: how much of the budget of money is left (interviews.spending).
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.display import counted
from headrace.errors import HeadraceError, InterviewFailed
from headrace.interviews.contract import Spent
from headrace.interviews.endpoint_states import EndpointStates
from headrace.interviews.spending import Spending
from headrace.memory.governed import GovernedMemory
from headrace.plan.job import Job
from headrace.progress.pace import Progress
from headrace.store.run_file.rows import RowBatch
from headrace.store.run_file.run_file import RunFile


class Tally:
    """`reused` were there before, `total` is what the run was asked for; `left_because` says why the executor has left
    interviews for a later run.
    """

    def __init__(self, job: Job, file: RunFile, endpoints: EndpointStates, *, reused: int, total: int) -> None:
        self.reused = reused
        self.total = total
        self.failed = 0
        self.left_because = ""
        self.spending = Spending(job, file.budgets, *file.usage_before())
        self._file = file
        self._questions = job.survey.questions
        self._committed = 0
        self._endpoints = endpoints

    @property
    def done(self) -> int:
        return self.reused + self._committed

    def add_rows(self, row_batches: Iterable[RowBatch]) -> None:
        for rows in row_batches:
            self._committed += len(rows)
            self.failed += rows.failed
            self.spending.add(rows.usage, len(rows))
            self._file.done.update(rows.ordinals)

    def put_back(self, count: int) -> None:
        """So many interviews that have failed are asked again: they count as not done until they have ended."""
        self._committed -= count
        self.failed -= count

    def add_lost(self, spent: Iterable[Spent]) -> None:
        """Count what ended workers have paid for."""
        for event in spent:
            self.spending.add_lost(event.usage, event.unanswered)

    def failure_among(self, row_batches: Iterable[RowBatch]) -> InterviewFailed | None:
        """The first failure of these, as an error."""
        failure = next((rows.failures[0] for rows in row_batches if rows.failures), None)
        if failure is None:
            return None
        ordinal, position, cause, message = failure
        return InterviewFailed(ordinal, self._questions[position].question_name, f"{cause}: {message}")

    def progress(self, memory: GovernedMemory, in_flight: int, *, is_paused: bool) -> Progress:
        spent = self.spending.run
        return Progress(
            done=self.done,
            total=self.total,
            reused=self.reused,
            failed=self.failed,
            in_flight=in_flight,
            memory_bytes=memory.used_bytes,
            budget_bytes=memory.budget_bytes,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            cost=None if spent.unpriced else spent.cost,
            is_paused=is_paused,
            notice=self._endpoints.notice(),
        )

    def why_incomplete(self, *, is_spent: bool) -> HeadraceError:
        """The error of a run that has ended by itself before its plan has."""
        if is_spent:
            return self.spending.spent(self.done, self.total)
        if (unusable := self._endpoints.failure(self.done, self.total)) is not None:
            return unusable
        if self.left_because:
            return HeadraceError(
                f"{self.total - self.done:,} of {self.total:,} interviews are left: {self.left_because}.",
                fix="Find out what ends workers, then run again: everything journaled is safe.",
            )
        if self.spending.is_limited:  # of interviews that a dead worker had, too
            return self.spending.spent(self.done, self.total)
        return HeadraceError(
            f"The run ended with {self.done:,} of {counted(self.total, 'interview')}.",
            fix="This is a fault of Headrace: please report it. Everything journaled is safe.",
        )
