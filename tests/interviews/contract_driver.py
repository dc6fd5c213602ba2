"""The least that drives an executor: a survey, chunks of it, and a controller that reads events and keeps them."""

import asyncio
import functools
from collections.abc import Callable

import pytest

from headrace import Agent, AgentList, Model, QuestionFreeText, Scenario, Survey
from headrace.exit_causes import ExitCause
from headrace.interviews.contract import (
    Answers,
    Chunk,
    ChunkEnded,
    Interview,
    InterviewEvent,
    InterviewExecutor,
    Rows,
    Spec,
)
from headrace.limits import RetryLimits
from headrace.store.run_file.rows import BatchRow
from headrace.store.run_file.stored_job.creation import detail_dictionary
from headrace.survey.record import AnswerRecord, Usage

SURVEY = Survey(
    [
        QuestionFreeText(question_name="one", question_text="One, {{ agent.n }}?"),
        QuestionFreeText(question_name="two", question_text="Two after {{ one.answer }}?"),
    ]
)


PATIENCE_S = 60.0


@functools.cache  # its dictionary is made with the time: what was packed with one is unpacked with it
def spec_for(model: Model) -> Spec:
    job = SURVEY.by(AgentList([Agent({"n": 0})]), Scenario(), model)
    return Spec(
        survey=SURVEY.to_row(),
        models=[model.to_row()],
        prices=[None],
        dictionary=detail_dictionary(job),
        retry=RetryLimits(first_wait_s=0.01),
    )


def chunk(id: int, first: int, count: int, epoch: int = 1) -> Chunk:
    numbers = range(first, first + count)
    return Chunk(
        id=id,
        epoch=epoch,
        interviews=[Interview(n, 0, n, 0, 0) for n in numbers],
        agents={n: b'{"n": %d}' % n for n in numbers},
        scenarios={0: b"{}"},
    )


class Controller:
    """The least that a controller does: reads events, acknowledges them, keeps what came."""

    def __init__(self, executor: InterviewExecutor) -> None:
        self.executor = executor
        self.rows: list[BatchRow] = []
        self.usage = Usage()
        self.failures: list[tuple[int, int, str, str]] = []
        self.answers: list[tuple[int, AnswerRecord]] = []
        self.ended: dict[int, ExitCause] = {}
        self.seqs: list[int] = []
        self.kinds: list[type[InterviewEvent]] = []

    async def read_until(self, enough: Callable[[], bool], *, ack: bool = True) -> None:
        async with asyncio.timeout(PATIENCE_S):
            events = self.executor.events()
            while not enough():
                batch = await anext(events)
                for event in batch.events:
                    self.take(event)
                assert batch.upto == self.seqs[-1]
                if ack:
                    self.executor.ack(batch.upto)

    def take(self, event: InterviewEvent) -> None:
        assert event.id not in self.ended, "an event after its work's ending"
        self.seqs.append(event.seq)
        self.kinds.append(type(event))
        match event:
            case Rows():
                self.rows += event.rows
                self.usage.calls += event.rows.usage.calls
                self.failures += event.rows.failures
            case Answers():
                self.answers += event.answers
            case ChunkEnded():
                self.ended[event.id] = event.cause
            case _:
                pytest.fail(f"{event} says nothing of interviews")
