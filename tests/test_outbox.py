"""Events of an executor: numbered in order, kept until they are read, counted until they are acknowledged."""

import asyncio
from typing import Any

import pytest

from headrace.executor import Batch, ExecutorEvent
from headrace.outbox import Outbox


def event(seq: int = 0) -> ExecutorEvent:
    return ExecutorEvent(id=1, epoch=1, seq=seq)


class Worker:
    """A source of events; keeps what was acknowledged to it."""

    def __init__(self) -> None:
        self.acknowledged: list[int] = []
        self.acknowledge = self.acknowledged.append


async def next_batch(outbox: Outbox[Any]) -> Batch[Any]:
    return await asyncio.wait_for(anext(outbox.batches()), 10)


async def test_events_are_numbered_in_order_and_read_once():
    outbox: Outbox[ExecutorEvent] = Outbox()
    for _ in range(3):
        outbox.add(event())
    first = await next_batch(outbox)
    outbox.add(event())
    second = await next_batch(outbox)
    assert [[each.seq for each in batch.events] for batch in (first, second)] == [[1, 2, 3], [4]]
    assert (first.upto, second.upto) == (3, 4)


async def test_each_source_hears_its_own_newest_number_and_only_of_what_is_on_disk():
    outbox: Outbox[ExecutorEvent] = Outbox()
    one, other = Worker(), Worker()
    for source, seq in [(one, 7), (other, 3), (one, 8), (other, 4)]:
        outbox.add_from(source, event(seq))
    outbox.ack(3)
    assert (one.acknowledged, other.acknowledged) == ([8], [3])
    outbox.ack(4)
    assert (one.acknowledged, other.acknowledged) == ([8], [3, 4])


async def test_whoever_waits_for_the_disk_goes_on_when_its_event_is_there():
    outbox: Outbox[ExecutorEvent] = Outbox()
    waiting = asyncio.ensure_future(outbox.committed(event()))
    batch = await next_batch(outbox)
    assert not waiting.done()
    outbox.ack(batch.upto)
    await asyncio.wait_for(waiting, 10)


async def test_there_is_room_again_when_what_was_held_is_on_disk():
    outbox: Outbox[ExecutorEvent] = Outbox()
    outbox.bound(100)
    outbox.count_bytes(150)
    assert outbox.is_full
    assert not outbox.has_room.is_set()
    outbox.add(event())
    outbox.free_with_last(150)
    outbox.ack(0)
    assert outbox.is_full
    outbox.ack(1)
    assert not outbox.is_full
    assert outbox.has_room.is_set()


async def test_a_failure_of_the_executor_is_raised_where_its_events_are_read():
    outbox: Outbox[ExecutorEvent] = Outbox()
    outbox.fail(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        await next_batch(outbox)
