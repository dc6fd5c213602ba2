import asyncio
import socket
import sys

import pytest

from headrace.workers.channel import Channel
from headrace.workers.wire import FromWorker, TaskDone, TaskMessage, frame

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="isolated workers are not on Windows")
MESSAGES = [TaskMessage(1, b""), TaskDone(2, b"tide" * 100), TaskMessage(3, b"x" * 3_000_000), TaskDone(4)]


async def test_what_does_not_leave_at_once_follows_in_order():
    ours, theirs = socket.socketpair()
    arrived: list[FromWorker] = []
    ends: list[str] = []
    sender = Channel(ours, FromWorker, arrived.append, ends.append)
    receiver = Channel(theirs, FromWorker, arrived.append, ends.append)
    for message in MESSAGES * 3:
        sender.send(message)
    await sender.drain()
    sender.close()
    while not ends:
        await asyncio.sleep(0)
    assert arrived == MESSAGES * 3
    assert not receiver.is_open


async def test_what_was_written_before_an_end_arrives_though_a_message_to_it_fails_first():
    ours, theirs = socket.socketpair()
    arrived: list[FromWorker] = []
    ends: list[str] = []
    channel = Channel(ours, FromWorker, arrived.append, ends.append)
    for message in MESSAGES[:2]:
        theirs.sendall(frame(message))
    theirs.close()
    channel.send(TaskDone(5))  # fails: nobody can read it any more
    await asyncio.wait_for(channel.drain(), 10)
    while not ends:
        await asyncio.sleep(0)
    assert arrived == MESSAGES[:2]
    assert ends == ["it closed its channel"]
    assert not channel.is_open
