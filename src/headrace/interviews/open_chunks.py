"""Keeps the chunks that an executor has. Covers: making them from ordinals, refusing stale events, and which agent and
scenario a row is about.

Does not cover: which ordinals (interviews.admission), or conducting them (interviews.inline, interviews.workers).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from headrace.executor import Batch
from headrace.interviews.contract import Chunk, Interview, InterviewEvent, Rows, Spec
from headrace.limits import RetryLimits
from headrace.plan.called_models import question_models
from headrace.plan.job import Job
from headrace.plan.prices import price_of
from headrace.priority import Priority
from headrace.store.run_file.rows import BatchRow
from headrace.store.run_file.run_file import RunFile
from headrace.survey.record import DetailShape


class CommittedRow(NamedTuple):
    """A committed interview on its way to the caller, with its agent and scenario as the file has them."""

    row: BatchRow
    agent: bytes
    scenario: bytes


@dataclass(slots=True)
class _OpenChunk:
    chunk: Chunk
    left: int  # interviews without a row


class OpenChunks:
    """Chunks by id, from their start to their last event; bounded by the window."""

    def __init__(self, file: RunFile) -> None:
        self._file = file
        self._open: dict[int, _OpenChunk] = {}
        self._last_id = 0
        self._seen_seq = 0

    def __iter__(self) -> Iterator[Chunk]:
        return iter([each.chunk for each in self._open.values()])

    def make(self, ordinals: list[int]) -> Chunk:
        """A chunk of these interviews, with the rows of the file that they need."""
        interviews = [self._interview(ordinal) for ordinal in ordinals]
        self._last_id += 1
        chunk = Chunk(
            id=self._last_id,
            epoch=1,
            interviews=interviews,
            agents=self._file.rows("agents", [interview.agent for interview in interviews]),
            scenarios=self._file.rows("scenarios", [interview.scenario for interview in interviews]),
        )
        self._open[chunk.id] = _OpenChunk(chunk, len(interviews))
        return chunk

    def new_events(self, batch: Batch[InterviewEvent]) -> list[InterviewEvent]:
        """The events of a batch that count: neither repeated, nor of a chunk that was replaced or has ended."""
        events = [event for event in batch.events if event.seq > self._seen_seq and self._is_open(event)]
        self._seen_seq = max(self._seen_seq, batch.upto)
        return events

    def count_down(self, events: Iterable[Rows]) -> None:
        """Subtract committed rows from what is left of their chunks."""
        for event in events:
            self._open[event.id].left -= len(event.rows)

    def committed_rows(self, events: Iterable[Rows]) -> list[CommittedRow]:
        """The rows as the caller gets them; bounded by a batch."""
        rows: list[CommittedRow] = []
        for event in events:
            chunk = self._open[event.id].chunk
            agents, scenarios = chunk.agents, chunk.scenarios
            rows += [CommittedRow(row, agents[row.agent], scenarios[row.scenario]) for row in event.rows]
        return rows

    def kept_questions(self, events: Iterable[Rows]) -> dict[int, frozenset[int]]:
        """The questions that interviews with a row had answered before they were started, by ordinal."""
        interviews = [each for event in events for each in self._open[event.id].chunk.interviews if each.kept]
        return {each.ordinal: frozenset(record.question for record in each.kept) for each in interviews}

    def end(self, id: int) -> int:
        """Forget a chunk that has ended; how many of its interviews have no row."""
        return self._open.pop(id).left

    def _is_open(self, event: InterviewEvent) -> bool:
        known = self._open.get(event.id)
        return known is not None and known.chunk.epoch == event.epoch

    def _interview(self, ordinal: int) -> Interview:
        interview = Interview(ordinal, *self._file.plan.coordinates(ordinal))
        if self._file.has_answers(ordinal):
            interview.kept, interview.uncounted = self._file.answers_kept(ordinal)
        return interview


def spec_of(job: Job, file: RunFile, details: DetailShape, priority: Priority) -> Spec:
    """Describe what all chunks of a job share."""
    return Spec(
        survey=job.survey.to_row(),
        models=[model.to_row() for model in job.called_models],
        prices=[price_of(model) for model in job.called_models],
        question_models=question_models(job.survey, len(job.models)),
        dictionary=file.dictionary,
        retry=RetryLimits(),
        agent_settings=job.agents.settings.to_row(),
        details=details,
        priority=priority,
        embedded_in=str(file.path) if file.has_embedded_files else "",
    )
