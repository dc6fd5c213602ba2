"""A warden behind the messages that cross to another host, without Ray: silence, loss, credit."""

import asyncio
import os
import signal
from typing import Any

import pytest

from headrace.cluster.links import RemoteChannel
from headrace.cluster.node_host import NodeHost
from headrace.cluster.remote_warden import GATHER_S, Gathering, RemoteWarden
from headrace.cluster.tunnel_wire import (
    CREDIT_BYTES,
    PARTS,
    PAYLOAD_BYTES,
    PIECE_BYTES,
    LinkData,
    LinkTaken,
    OutgoingMessages,
    decode_from_node,
)
from headrace.workers.functions import refer_to
from headrace.workers.local_warden import WardenLost
from headrace.workers.pool import WorkerPool
from headrace.workers.wire import Death, DeathKind, FromWorker, TaskDone, TaskMessage, frame
from tests.workers import entries

pytestmark = pytest.mark.anyio

LIMIT_BYTES = 64 << 20


class SilentNode(NodeHost):
    """Answers nothing from the moment it is told to."""

    is_silent = False

    async def collect(self) -> list[bytes]:
        while self.is_silent:
            await asyncio.sleep(3600)
        return await super().collect()


async def test_a_node_that_falls_silent_is_lost_and_its_workers_with_it():
    reasons: list[str] = []
    node = SilentNode()
    warden = RemoteWarden(node, {}, reasons.append, silent_s=2.0)
    pool = WorkerPool(place=warden)
    worker = await pool.worker(LIMIT_BYTES)
    node.is_silent = True
    death = await asyncio.wait_for(worker.receive(), 30)
    assert isinstance(death, Death)
    assert death.kind is DeathKind.WARDEN_ENDED
    assert reasons == ["it has not answered for 2 s"]
    assert pool.lost == reasons[0]
    with pytest.raises(WardenLost):
        await pool.worker(LIMIT_BYTES)
    await asyncio.sleep(0.1)
    left = [task for task in asyncio.all_tasks() if "RemoteWarden" in repr(task)]
    assert left == []  # nobody is left who would end them
    await warden.close()
    await node.leave()


async def test_a_large_message_crosses_in_pieces_and_comes_back():
    node = NodeHost()
    warden = RemoteWarden(node, {}, lambda reason: None)
    async with WorkerPool(place=warden) as pool:
        worker = await pool.worker(LIMIT_BYTES)
        payload = bytes(range(256)) * 20_000  # five times what may be on its way
        worker.start(refer_to(entries.echo), payload)
        ended = await asyncio.wait_for(worker.receive(), 30)
        assert isinstance(ended, TaskDone)
        assert ended.payload == payload
    await warden.close()


async def test_a_warden_that_ended_on_its_node_is_followed_by_another():
    node = NodeHost()
    warden = RemoteWarden(node, {}, lambda reason: None)
    async with WorkerPool(place=warden) as pool:
        first = await pool.worker(LIMIT_BYTES)
        assert node._warden is not None
        assert node._warden.pid is not None
        os.kill(node._warden.pid, signal.SIGKILL)
        assert isinstance(await asyncio.wait_for(first.receive(), 30), Death)
        second = await pool.worker(LIMIT_BYTES)
        second.start(refer_to(entries.echo), b"again")
        ended = await asyncio.wait_for(second.receive(), 30)
        assert isinstance(ended, TaskDone)
        assert ended.payload == b"again"
    await warden.close()


def _channel(posted: list[Any], taken: list[Any], ends: list[str]) -> RemoteChannel:
    return RemoteChannel(1, posted.append, lambda link: None, FromWorker, taken.append, ends.append)


def test_a_channel_sends_no_more_than_it_has_credit_for():
    posted: list[Any] = []
    channel = _channel(posted, [], [])
    channel.send(TaskMessage(1, b"x" * 3 * CREDIT_BYTES))
    sent = sum(len(message.data) for message in posted)
    assert sent == CREDIT_BYTES
    channel.credit(CREDIT_BYTES)
    assert sum(len(message.data) for message in posted) == 2 * CREDIT_BYTES
    assert all(isinstance(message, LinkData) for message in posted)


def test_a_paused_channel_gives_no_credit_back_and_loses_nothing():
    posted: list[Any] = []
    taken: list[Any] = []
    ends: list[str] = []
    channel = _channel(posted, taken, ends)
    channel.pause(True)
    message = frame(TaskMessage(1, b"y" * CREDIT_BYTES))
    channel.arrived(bytes(message))
    channel.ended()
    assert (posted, taken, ends) == ([], [], [])
    channel.pause(False)
    assert [each.payload for each in taken] == [b"y" * CREDIT_BYTES]
    assert [type(each) for each in posted] == [LinkTaken]
    assert ends == ["it closed its channel"]


async def test_messages_gather_longer_while_they_go_on_coming():
    gathering = Gathering(lambda: 0.1)
    assert [gathering.after(3_000) for _ in range(6)] == [0.01, 0.02, 0.04, 0.08, 0.1, 0.1]
    assert gathering.after(80_000) == 0.0  # more waits already
    assert gathering.after(3_000) == 0.1
    assert gathering.after(20) == 0.05
    assert gathering.after(3_000) == 0.1
    assert [gathering.after(20) for _ in range(6)][-1] == GATHER_S  # hardly anything comes: it is not kept waiting
    assert gathering.after(3_000) == 0.01


async def test_what_a_node_answers_gathers_until_it_fills_all_parts():
    gathering = Gathering(lambda: 0.1, PARTS * PAYLOAD_BYTES)
    assert [gathering.after(PAYLOAD_BYTES) for _ in range(2)] == [0.01, 0.02]
    assert gathering.after(PARTS * PAYLOAD_BYTES - 10_000) == 0.0


async def test_messages_that_may_not_wait_gather_as_briefly_as_ever():
    gathering = Gathering(lambda: GATHER_S)
    assert {gathering.after(3_000) for _ in range(6)} == {GATHER_S}


async def test_a_payload_is_as_full_as_it_may_be_and_keeps_the_order():
    outgoing = OutgoingMessages()
    sizes = [PIECE_BYTES, 20_000, PIECE_BYTES, 10_000, PIECE_BYTES, PIECE_BYTES, 5]
    for number, size in enumerate(sizes):
        outgoing.post(LinkData(number, bytes(size)))
    payloads = [outgoing.payload() for _ in range(3)]
    assert all(60_000 < len(payload) < 91_000 for payload in payloads[:2])
    assert [message.link for payload in payloads for message in decode_from_node(payload)] == list(range(7))  # pyright: ignore[reportAttributeAccessIssue]


async def test_what_a_node_answers_is_several_payloads_in_parts_that_stay_out_of_the_object_store():
    outgoing = OutgoingMessages()
    for number in range(50):
        outgoing.post(LinkData(number, bytes(PIECE_BYTES)))
    first, second, third = (outgoing.payload_in_parts() for _ in range(3))
    assert all(len(part) < 91_000 for part in first + second + third)
    assert sum(map(len, first)) > PARTS * PAYLOAD_BYTES - PIECE_BYTES
    answered = [message for parts in (first, second, third) for message in decode_from_node(b"".join(parts))]
    assert [message.link for message in answered] == list(range(50))  # pyright: ignore[reportAttributeAccessIssue]
