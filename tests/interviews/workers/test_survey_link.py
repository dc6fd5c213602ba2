"""What a survey's worker says to its controller when there is no memory left to say it."""

import asyncio
from typing import Any

import msgspec

from headrace.interviews.workers import interview_worker as survey_worker
from headrace.interviews.workers.interview_wire import Paid, Pong, Taken
from headrace.interviews.workers.interview_worker import Link
from headrace.models.provider import Reply


class FakePort:
    """Keeps what is posted; the real one is a socket."""

    def __init__(self) -> None:
        self.posted: list[bytes] = []
        self.post = self.send = self.posted.append


def failing(monkeypatch: Any, fails: type) -> None:
    """Encoding meets the memory limit where a message of this kind is among them."""
    whole = survey_worker.encode

    def encode(messages: list[Any]) -> bytes:
        if any(isinstance(message, fails) for message in messages):
            raise MemoryError
        return whole(messages)

    monkeypatch.setattr(survey_worker, "encode", encode)


def said(port: FakePort) -> list[str]:
    return [message[0] for posted in port.posted for message in msgspec.msgpack.decode(posted)]


async def test_a_reply_too_large_to_send_goes_uncached_and_what_is_waited_for_is_said(monkeypatch):
    failing(monkeypatch, Paid)
    link = Link(port := FakePort())  # pyright: ignore[reportArgumentType]
    link.post(Taken(1))
    link.post(Paid(b"key", Reply("a large one", raw=b"{}")))
    link.post(Pong())
    await asyncio.sleep(0)
    assert said(port) == ["Taken", "Pong"]
    assert not link.out_of_memory.done()


async def test_a_worker_that_cannot_say_anything_ends_and_says_it_last(monkeypatch):
    failing(monkeypatch, Taken)
    link = Link(port := FakePort())  # pyright: ignore[reportArgumentType]
    link.post(Taken(1))
    await asyncio.sleep(0)
    assert isinstance(link.out_of_memory.exception(), MemoryError)
    monkeypatch.undo()  # as `lend_last_words` does
    link.say_last([])
    assert said(port) == ["Taken"]
