"""What a survey's worker says to its controller when there is no memory left to say it."""

import asyncio
from typing import Any

import msgspec

from headrace.interviews.workers.interview_wire import CacheReply, ChunkTaken, Pong
from headrace.interviews.workers.interview_worker import CallLink
from headrace.models.provider import Reply
from headrace.workers.hosting import executor_host


class FakePort:
    """Keeps what is posted; the real one is a socket."""

    def __init__(self) -> None:
        self.posted: list[bytes] = []
        self.post = self.send = self.posted.append


def failing(monkeypatch: Any, fails: type) -> None:
    """Encoding meets the memory limit where a message of this kind is among them."""
    whole = executor_host.encode

    def encode(messages: list[Any]) -> bytes:
        if any(isinstance(message, fails) for message in messages):
            raise MemoryError
        return whole(messages)

    monkeypatch.setattr(executor_host, "encode", encode)


def said(port: FakePort) -> list[str]:
    return [message[0] for posted in port.posted for message in msgspec.msgpack.decode(posted)]


async def test_a_reply_too_large_to_send_goes_uncached_and_what_is_waited_for_is_said(monkeypatch):
    failing(monkeypatch, CacheReply)
    link = CallLink(port := FakePort())  # pyright: ignore[reportArgumentType]
    link.post(ChunkTaken(1, 1))
    link.post(CacheReply(b"key", Reply("a large one", raw=b"{}")))
    link.post(Pong())
    await asyncio.sleep(0)
    assert said(port) == ["ChunkTaken", "Pong"]
    assert not link.out_of_memory.done()


async def test_a_worker_that_cannot_say_anything_ends_and_says_it_last(monkeypatch):
    failing(monkeypatch, ChunkTaken)
    link = CallLink(port := FakePort())  # pyright: ignore[reportArgumentType]
    link.post(ChunkTaken(1, 1))
    await asyncio.sleep(0)
    assert isinstance(link.out_of_memory.exception(), MemoryError)
    monkeypatch.undo()  # as `lend_last_words` does
    link.send_last([])
    assert said(port) == ["ChunkTaken"]
