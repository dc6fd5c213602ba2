"""Server-sent events in every form that the standard allows, and some that servers have made up."""

import itertools

import pytest

from headrace import Model
from headrace.errors import ProviderUnavailable
from headrace.models.http_client.bodies import EventLines
from headrace.models.http_client.decoding import BadReply
from headrace.models.provider import Reply
from tests.models.asking import ask
from tests.models.behaviours import http
from tests.models.raw_server import RawCall, RawServer

EVENTS = [b'{"a": 1}', b'{\n"a": 2,\n"b": 3\n}', b"", b'{"a": "\xc3\xa9"}', b"[DONE]"]


def written(ending: bytes, *, space: bytes = b" ", extras: bool = False) -> bytes:
    lines = [b"\xef\xbb\xbf: hello"] if extras else []
    for event in EVENTS:
        lines += [b"event: x", b"id: 7"] if extras else []
        lines += [b"data:" + space + line for line in event.split(b"\n")]
        lines += [b": still here", b""] if extras else [b""]
    return ending.join([*lines, b""])


def taken(pieces: list[bytes], *, is_json: bool = True) -> list[bytes]:
    found: list[bytes] = []

    def take(data: bytes) -> bool:
        if is_json and data[:1] == b"{" and data[-1:] != b"}":
            raise BadReply("half")
        found.append(data)
        return data == b"[DONE]"

    lines = EventLines(take)
    if not any(map(lines.feed, pieces)):
        lines.end()
    return found


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("space", [b" ", b""])
@pytest.mark.parametrize("extras", [False, True])
def test_events_are_read_whatever_ends_their_lines_and_wherever_they_are_cut(ending, space, extras):
    whole = written(ending, space=space, extras=extras)
    assert taken([whole]) == EVENTS
    assert taken([bytes([byte]) for byte in whole]) == EVENTS
    for at, further in itertools.product(range(0, len(whole), 3), (1, 2, 50)):
        assert taken([whole[:at], whole[at : at + further], b"", whole[at + further :]]) == EVENTS


def test_endings_may_be_mixed():
    assert taken([b"data: 1\r\rdata: 2\n\ndata: 3\r\n\r\ndata: 4\r\n\rdata: 5\n\r\n"]) == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("stream", [b"data: 1\ndata: 2\ndata: [DONE]\n", b"data: 1\n\ndata: 2\n\ndata: [DONE]"])
def test_events_without_an_empty_line_behind_them_count(stream):
    assert taken([stream]) == [b"1", b"2", b"[DONE]"]


def test_an_event_of_many_lines_without_end_is_refused():
    lines = EventLines(lambda _: (_ for _ in ()).throw(BadReply("half")))
    line = b"data: " + b"x" * 1_000 + b"\n"
    with pytest.raises(BadReply, match="longer than 1 MiB"):
        any(lines.feed(line) for _ in range(2_000))


@pytest.mark.parametrize("ending", ["\r", "\n", "\r\n"])
def test_a_reply_of_events_with_several_lines_is_read(ending):
    events = [
        'data: {"choices": [',
        'data:   {"delta": {"content": "Good"}}',
        "data: ]}",
        "",
        'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}',
        "",
        "data: [DONE]",
        "",
        "",
    ]

    async def answer(call: RawCall) -> None:
        call.write(http(200, ending.join(events).encode(), streamed=True))

    with RawServer(answer) as server:
        (found,) = ask(Model("m", base_url=server.url, stream=True))
    assert isinstance(found, Reply)
    assert found.text == "Good"


def test_an_event_that_makes_no_sense_is_a_failure():
    async def answer(call: RawCall) -> None:
        call.write(http(200, b"data: {\n\ndata: [DONE]\n\n", streamed=True))

    with RawServer(answer) as server:
        (found,) = ask(Model("m", base_url=server.url, stream=True))
    assert isinstance(found, ProviderUnavailable)
