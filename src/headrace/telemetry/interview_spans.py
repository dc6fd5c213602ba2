"""Spans of interviews, made from the rows that a run has committed.

    interview                      from its first question to its last
      chat {model}                 a question that a model was asked: all calls it took, with the wait for the limiter

A reply from the response cache is no call and has no span. Answers that an earlier run journaled before it was stopped
have none either: when they were given is not known. Does not cover: the thread that does this (export_thread).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from headrace.plan.called_models import question_models
from headrace.plan.job import Job
from headrace.results.columns.raw_responses import generated_text
from headrace.store.run_file.rows import BatchRow, DetailPacker, RowBatch, Status
from headrace.survey.record import AnswerRecord, Detail, DetailShape
from headrace.telemetry.conventions import Attributes, captures_content, model_attributes, request_attributes
from headrace.telemetry.export_thread import ExportThread
from headrace.telemetry.otel_export import ModelCall, OtelExport


class InterviewSpans:
    """`take` is called on the run's loop, after the commit; the rest happens on the thread."""

    def __init__(self, job: Job, path: Path, dictionary: bytes, thread: ExportThread) -> None:
        self._thread = thread
        self._packer = DetailPacker(dictionary)
        self._has_content = captures_content()
        self._run: Attributes = {"headrace.run": path.name}
        self._names = [question.question_name for question in job.survey.questions]
        self._own_models = question_models(job.survey, len(job.models))
        self._models = [(model_attributes(model), request_attributes(model)) for model in job.called_models]

    @property
    def needed_details(self) -> DetailShape:
        """What spans need of an interview."""
        return DetailShape.WHOLE if self._has_content else DetailShape.SLIM

    def take(self, batches: Sequence[RowBatch], kept: Mapping[int, frozenset[int]]) -> None:
        """Export committed rows. `kept` are the questions, by ordinal, that were answered before the interview was
        started in this run.
        """
        for batch in batches:
            work = partial(self._export, batch, kept)
            self._thread.offer(work, count=len(batch), held_bytes=sum(map(len, batch.details)))

    def _export(self, batch: RowBatch, kept: Mapping[int, frozenset[int]], export: OtelExport) -> None:
        for row in batch:
            if row.detail:
                detail = self._packer.unpack(row.detail)
                self._export_one(row, detail, kept.get(row.ordinal, frozenset()), export)

    def _export_one(self, row: BatchRow, detail: Detail, kept: frozenset[int], export: OtelExport) -> None:
        asked = [record for record in detail.records if _was_called(record) and record.question not in kept]
        attributes = {
            **self._run,
            "headrace.interview.ordinal": row.ordinal,
            "headrace.interview.iteration": row.iteration,
            "headrace.interview.questions": len(asked),
        }
        span = export.begin("interview", detail.started_at, attributes)
        for record in asked:
            export.chat(self._call(row, detail, record), span)
        ended_ms = max((record.started_ms + record.took_ms for record in asked), default=0)
        is_failed = row.status is Status.FAILED
        export.end(span, detail.started_at + ended_ms / 1000, "failed_questions" if is_failed else "")

    def _call(self, row: BatchRow, detail: Detail, record: AnswerRecord) -> ModelCall:
        model, request = self._models[self._own_models.get(record.question, row.model)]
        more: Attributes = {
            **request,
            "headrace.question.name": self._names[record.question],
            "headrace.calls": record.attempts,
        }
        if service := record.service:
            more["headrace.calls"] = record.attempts - service.cache_hits
            more["headrace.cost_usd"] = service.cost
            more["gen_ai.usage.cache_read.input_tokens"] = service.cached_tokens
            more["gen_ai.usage.reasoning.output_tokens"] = service.reasoning_tokens
        has_content = self._has_content
        return ModelCall(
            model=model,
            more=more,
            started_at=detail.started_at + record.started_ms / 1000,
            took_s=record.took_ms / 1000,
            input_tokens=record.input_tokens,
            output_tokens=record.output_tokens,
            error=record.failure.cause.name.lower() if record.failure is not None else "",
            system=(record.system or detail.system) if has_content else "",
            prompt=record.prompt if has_content else "",
            answer=generated_text(record.raw) if has_content else "",
        )


@asynccontextmanager
async def interview_spans(job: Job, path: Path, dictionary: bytes) -> AsyncGenerator[InterviewSpans]:
    """The spans of one run; leaving waits until they are sent, for a few seconds at most."""
    thread = ExportThread()
    try:
        yield InterviewSpans(job, path, dictionary, thread)
    finally:
        await asyncio.shield(asyncio.to_thread(thread.close))


def _was_called(record: AnswerRecord) -> bool:
    return record.attempts > (record.service.cache_hits if record.service is not None else 0)
