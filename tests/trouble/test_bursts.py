import asyncio
import time

from headrace.interviews.contract import Chunk, ChunkEnded, Interview, Lease, Rows, Spec
from headrace.interviews.inline import InlineExecutor
from headrace.limits import RetryLimits
from headrace.survey.model import Model
from headrace.survey.questions.free_text import QuestionFreeText
from headrace.survey.survey import Survey

MANY = 1_500


async def test_an_executor_whose_chunks_all_end_at_the_same_moment_reports_every_row_before_their_end() -> None:
    executor = InlineExecutor([{}])
    survey = Survey([QuestionFreeText(question_name="word", question_text="Say something")])
    model = Model("test", canned_response="something", latency_s=0.05)
    await executor.open(Spec(survey.to_row(), [model.to_row()], [None], b"", RetryLimits()))
    executor.lease(Lease(interviews=MANY, buffer_bytes=100_000_000))
    for number in range(MANY):
        await executor.start(Chunk(number, 1, [Interview(number, 0, 0, 0, 0)], {0: b"{}"}, {0: b"{}"}))
    await asyncio.sleep(0.01)  # all have been asked
    time.sleep(0.2)  # a loop that was held up: when it goes on, all have answered
    rows, ended = set[int](), set[int]()
    async with asyncio.timeout(60):
        async for batch in executor.events():
            for event in batch.events:
                if isinstance(event, Rows):
                    rows.update(event.rows.ordinals)
                if isinstance(event, ChunkEnded):
                    assert event.id in rows, "a chunk ended and its row was never reported"
                    ended.add(event.id)
            executor.ack(batch.upto)
            if len(ended) == MANY:
                break
    await executor.close()
    assert rows == set(range(MANY))
