import asyncio
import socket

import pytest

from headrace.framing import BadFrame, Frames, framed, receive, receive_async
from headrace.workers.wire import FromWorker, TaskDone, TaskMessage, decoder_of, frame

BODIES = [b"", b"tide" * 100, b"x" * 3_000_000, b"last"]


@pytest.mark.parametrize("part", [1, 3, 37, 4096, 1 << 16])
def test_messages_are_the_same_however_their_bytes_arrive(part: int):
    frames, bodies = Frames(bytes), [*BODIES[:2], BODIES[3], *BODIES[:2]]
    sent = b"".join(map(framed, bodies))
    parts = [sent[start : start + part] for start in range(0, len(sent), part)]
    assert [body for one in parts for body in frames.feed(one)] == bodies


async def test_who_waits_in_a_thread_and_who_waits_on_a_loop_read_the_same():
    sent = b"".join(map(framed, BODIES))
    for is_on_loop in (False, True):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            sending = asyncio.create_task(asyncio.to_thread(_send_and_leave, theirs, sent))
            if is_on_loop:
                ours.setblocking(False)
                assert [await receive_async(ours) for _ in BODIES] == BODIES
                with pytest.raises(ConnectionResetError):
                    await receive_async(ours)
            else:
                assert [await asyncio.to_thread(receive, ours) for _ in BODIES] == BODIES
                with pytest.raises(ConnectionResetError):
                    receive(ours)
            await sending


def _send_and_leave(connection: socket.socket, data: bytes) -> None:
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


async def test_a_message_above_what_the_reader_takes_is_refused_before_its_body_is_read():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(framed(b"12345") * 2)
        with pytest.raises(BadFrame, match="5 bytes; the most is 4"):
            receive(ours, most_bytes=4)
        assert ours.recv(5) == b"12345"
        ours.setblocking(False)
        with pytest.raises(BadFrame):
            await receive_async(ours, most_bytes=4)


@pytest.mark.parametrize("sent", [b"\x00\x00\x00\x02no", framed(b"") + b"\xff\xff\xff\xff", b"\xff\xff\xff\xff"])
def test_what_is_no_message_is_refused(sent: bytes):
    with pytest.raises(BadFrame):
        list(Frames(decoder_of(FromWorker)).feed(sent))


def test_a_message_that_is_encoded_in_place_reads_like_any_other():
    messages = [TaskMessage(1, b""), TaskDone(2, b"tide" * 100)]
    assert list(Frames(decoder_of(FromWorker)).feed(b"".join(map(frame, messages)))) == messages
