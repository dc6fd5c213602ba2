import asyncio
import socket
import sys

import pytest

from headrace.workers.channel import Channel
from headrace.workers.wire import FromWorker, TaskDone, TaskMessage

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
