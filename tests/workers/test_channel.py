import asyncio
import socket
import sys

import msgspec
import pytest

from headrace.workers.channel import Channel
from headrace.workers.wire import BadFrame, Done, Frames, FromWorker, Message, frame

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="isolated workers are not on Windows")
MESSAGES = [Message(1, 1, b""), Done(2, 1, b"tide" * 100), Message(3, 1, b"x" * 3_000_000), Done(4, 1)]


def frames() -> Frames:
    return Frames(msgspec.msgpack.Decoder(FromWorker))


@pytest.mark.parametrize("piece", [1, 3, 37, 4096, 1 << 16])
def test_messages_are_the_same_however_their_bytes_arrive(piece):
    reader, sent = frames(), b"".join(map(frame, [*MESSAGES[:2], MESSAGES[3], *MESSAGES[:2]]))
    pieces = [sent[start : start + piece] for start in range(0, len(sent), piece)]
    assert [message for one in pieces for message in reader.feed(one)] == [*MESSAGES[:2], MESSAGES[3], *MESSAGES[:2]]


@pytest.mark.parametrize(
    "sent", [b"\x02\x00\x00\x00no", frame(MESSAGES[0]) + b"\x02\x00\x00\x00no", b"\xff\xff\xff\xff"]
)
def test_what_is_no_message_is_refused(sent):
    with pytest.raises(BadFrame):
        list(frames().feed(sent))


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
