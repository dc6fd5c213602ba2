"""What every executor must do, whatever it runs on."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from headrace import Model
from headrace.executor import Batch, Signal
from headrace.exit_causes import ExitCause
from headrace.interviews import contract
from headrace.interviews.contract import Answers, Chunk, ChunkEnded, InterviewEvent, Lease, Rows, Spec
from headrace.models.limiter import EndpointState
from headrace.store.run_file.rows import DetailPacker, Row, Status, row_batch
from headrace.survey.record import AnswerRecord, AnswerState, Cause, Failure, Usage
from tests.interviews.contract_driver import Controller, chunk, spec_for
from tests.interviews.executors import EXECUTORS, NETWORK_EXECUTORS
from tests.interviews.workers import survey_answers
from tests.models.server import HostileServer


@asynccontextmanager
async def opened(name: str, model: Model, lease: Lease | None = None) -> AsyncIterator[Controller]:
    executor = (NETWORK_EXECUTORS if "base_url" in model.parameters else EXECUTORS)[name]([model.functions])
    await executor.open(spec_for(model))
    executor.lease(lease or Lease(interviews=10, buffer_bytes=1_000_000))
    try:
        yield Controller(executor)
    finally:
        await executor.close()


each_executor = pytest.mark.parametrize("name", EXECUTORS)
each_speed = pytest.mark.parametrize("latency_s", [0, 0.005])


@each_executor
@each_speed
async def test_every_interview_of_a_chunk_comes_back_as_a_row_before_the_ending(name: str, latency_s: float):
    async with opened(name, Model("test", canned_response="x", latency_s=latency_s)) as controller:
        for number in range(3):
            await controller.executor.start(chunk(number, number * 10, 10))
        await controller.read_until(lambda: len(controller.ended) == 3)
    assert sorted(row.ordinal for row in controller.rows) == list(range(30))
    assert set(controller.ended.values()) == {ExitCause.DONE}
    assert controller.seqs == list(range(1, len(controller.seqs) + 1))


@each_executor
async def test_rows_are_encoded_and_hold_the_whole_interview(name: str):
    model = Model("test", canned_response="x")
    async with opened(name, model) as controller:
        await controller.executor.start(chunk(1, 5, 1))
        await controller.read_until(lambda: 1 in controller.ended)
    (row,) = controller.rows
    assert (row.ordinal, row.agent, row.status, row.answers, row.more) == (5, 5, Status.DONE, ["x", "x"], None)
    assert (controller.usage.calls, controller.failures) == (2, [])
    detail = DetailPacker(spec_for(model).dictionary).unpack(row.detail)
    assert [record.raw for record in detail.records] == [b"x", b"x"]
    assert detail.records[0].prompt.startswith("One, 5?")
    assert detail.records[1].prompt.startswith("Two after x?")


@each_executor
async def test_answers_of_interviews_in_flight_are_told_as_they_come(name: str):
    model = Model("test", canned_response="x", latency_s=0.3)
    async with opened(name, model) as controller:
        await controller.executor.start(chunk(1, 0, 3))
        await controller.read_until(lambda: 1 in controller.ended)
    assert controller.kinds.index(Answers) < controller.kinds.index(Rows)
    assert {(ordinal, record.question) for ordinal, record in controller.answers} == {(0, 0), (1, 0), (2, 0)}


@each_executor
async def test_answers_that_are_kept_are_not_asked_for_again(name: str):
    work = chunk(1, 0, 1)
    work.interviews[0].kept = [AnswerRecord(0, AnswerState.ANSWERED, value="old", attempts=1, input_tokens=5)]
    async with opened(name, Model("test", canned_response=survey_answers.answer_anew)) as controller:
        await controller.executor.start(work)
        await controller.read_until(lambda: 1 in controller.ended)
    assert controller.rows[0].answers == ["old", "new Two after old?"]
    assert controller.usage.calls == 1  # what is kept was counted before


@each_executor
async def test_what_waits_for_an_ack_is_bounded(name: str):
    model = Model("test", canned_response="x" * 50_000)
    async with opened(name, model, Lease(interviews=10, buffer_bytes=200_000)) as controller:
        await controller.executor.start(chunk(1, 0, 60))
        await controller.read_until(lambda: len(controller.rows) > 0, ack=False)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await controller.read_until(lambda: 1 in controller.ended, ack=False)
        held = len(controller.rows)
        assert 1 <= held <= 10
        controller.executor.ack(controller.seqs[-1])
        await controller.read_until(lambda: 1 in controller.ended)
    assert sorted(row.ordinal for row in controller.rows) == list(range(60))


@each_executor
async def test_cancel_starts_nothing_more_and_lets_what_runs_end(name: str):
    model = Model("test", canned_response="x", latency_s=0.05)
    async with opened(name, model, Lease(interviews=2, buffer_bytes=1_000_000)) as controller:
        await controller.executor.start(chunk(1, 0, 400))
        await controller.read_until(lambda: len(controller.rows) > 0)
        await controller.executor.signal(1, 1, Signal.CANCEL, 1.0)
        await controller.read_until(lambda: 1 in controller.ended)
    assert controller.ended[1] is ExitCause.PREEMPTED
    assert len(controller.rows) < 400
    assert all(row.answers == ["x", "x"] for row in controller.rows)


@each_executor
async def test_preempt_stops_at_the_next_answer_and_keeps_it(name: str):
    model = Model("test", canned_response="x", latency_s=1.5)
    async with opened(name, model) as controller:
        await controller.executor.start(chunk(1, 0, 5))
        await asyncio.sleep(0.02)
        await controller.executor.signal(1, 1, Signal.PREEMPT, 5.0)
        await controller.read_until(lambda: 1 in controller.ended)
    assert controller.ended[1] is ExitCause.PREEMPTED
    assert controller.rows == []
    assert [record.question for _, record in controller.answers] == [0] * 5  # paid for, so told


@each_executor
async def test_kill_stops_one_chunk_at_once_and_no_other(name: str):
    async with opened(name, Model.from_function(survey_answers.late_below_ten)) as controller:
        await controller.executor.start(chunk(1, 0, 3))
        await controller.executor.start(chunk(2, 10, 3))
        await asyncio.sleep(0.05)
        await controller.executor.signal(1, 1, Signal.KILL, 5.0)
        await controller.read_until(lambda: len(controller.ended) == 2)
    assert controller.ended == {1: ExitCause.LOST, 2: ExitCause.DONE}
    assert sorted(row.ordinal for row in controller.rows) == [10, 11, 12]


@each_executor
async def test_a_signal_for_another_epoch_is_not_for_this_work(name: str):
    async with opened(name, Model("test", canned_response="x", latency_s=0.02)) as controller:
        await controller.executor.start(chunk(1, 0, 3, epoch=2))
        await controller.executor.signal(1, 1, Signal.KILL, 1.0)
        await controller.read_until(lambda: 1 in controller.ended)
    assert controller.ended[1] is ExitCause.DONE
    assert len(controller.rows) == 3


@each_executor
async def test_a_busy_model_is_tried_again_and_its_interviews_end(name: str):
    model = Model("test", canned_response="x", fail_rate=0.4, seed=3)
    async with opened(name, model) as controller:
        await controller.executor.start(chunk(1, 0, 20))
        await controller.read_until(lambda: 1 in controller.ended)
    assert len(controller.rows) == 20
    assert sum(row.status is Status.DONE for row in controller.rows) >= 15


@each_executor
async def test_an_interview_that_waits_for_a_busy_model_can_be_cancelled(name: str):
    model = Model("test", canned_response="x", fail_rate=1.0)
    async with opened(name, model) as controller:
        await controller.executor.start(chunk(1, 0, 5))
        await controller.executor.signal(1, 1, Signal.CANCEL, 1.0)
        await controller.read_until(lambda: 1 in controller.ended)
    assert controller.ended[1] is ExitCause.PREEMPTED


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as one:
        yield one


def service_model(server: HostileServer) -> Model:
    return Model("m", base_url=server.url, service_name="openai_compatible")


@each_executor
@pytest.mark.parametrize("chars", [4_000, 10_000, 1_000_000])
async def test_each_question_is_one_request_however_large_prompts_and_replies_are(
    name: str, chars: int, server: HostileServer
):
    """A socket buffer holds some 200 KB: agents go to a worker and rows come back in many parts, at the same time."""
    interviews = 8 if chars == 1_000_000 else 150
    server.behave("ok", answer="y" * chars)
    work = chunk(1, 0, interviews)
    work.agents = {n: b'{"n": "%d%s"}' % (n, b"x" * chars) for n in work.agents}
    lease = Lease(interviews=4 if chars == 1_000_000 else 100, buffer_bytes=4_000_000)
    async with opened(name, service_model(server), lease) as controller:
        await controller.executor.start(work)
        await controller.read_until(lambda: 1 in controller.ended)
    assert (len(controller.rows), controller.failures) == (interviews, [])
    assert [row.ordinal for row in controller.rows if row.answers != ["y" * chars] * 2] == []
    assert server.calls == controller.usage.calls == interviews * 2


def test_every_message_can_be_sent_as_bytes():
    record = AnswerRecord(0, AnswerState.FAILED, b"\x01", failure=Failure(0, Cause.INVALID, "no"))
    row = Row(1, 0, 0, 0, 0, Status.FAILED, [1, 2.5, "x", None, b"[1]"], None, b"\x00", [], Usage(1, 2, 3))
    common: dict[str, Any] = {"id": 1, "epoch": 2, "seq": 3}
    events: list[InterviewEvent] = [
        Rows(**common, rows=row_batch([row])),
        Answers(**common, answers=[(1, record)]),
        contract.Spent(**common, usage=Usage(1, 2, 3)),
        contract.Observed(**common, model=0, state=EndpointState.HELD, reason="busy"),
        ChunkEnded(**common, cause=ExitCause.LOST, reason="gone"),
    ]
    assert {type(event) for event in events} == set(InterviewEvent.__args__)
    messages: list[tuple[Any, Any]] = [
        (Batch[InterviewEvent], Batch(3, events)),
        (Chunk, chunk(1, 0, 2)),
        (Spec, spec_for(Model("test", canned_response="x"))),
        (Lease, Lease(1, 2)),
    ]
    for kind, message in messages:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=kind) == message
