"""A connection that brings no progress is bounded in bytes and time, and the loop turns meanwhile."""

import asyncio
import resource
import time

import pytest
import uvloop

from headrace import Model
from headrace.errors import ProviderError, ProviderTimeout, ProviderUnavailable
from headrace.models.provider import Reply
from tests.models.asking import a_request, opened, outcome
from tests.models.raw_server import Handler, RawCall, RawServer, ok

TIMEOUT_S = 1.5
PATIENT_S = 30.0
LONGEST_TURN_S = 5.0  # generous: beside twenty busy processes 1.4 s were seen; unbounded, it was 40 s
MOST_MORE_BYTES = 60_000_000
STREAM = b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


async def continues(call: RawCall) -> None:
    await call.flood(b"HTTP/1.1 100 Continue\r\n\r\n" * 500)


async def hints(call: RawCall) -> None:
    await call.flood(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 500)


async def slow_continues(call: RawCall) -> None:
    while True:
        call.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await asyncio.sleep(0.01)


async def headers(call: RawCall) -> None:
    call.write(b"HTTP/1.1 200 X\r\n")
    await call.flood(b"X-More: and more\r\n" * 500)


async def one_header(call: RawCall) -> None:
    call.write(b"HTTP/1.1 200 X\r\nX-Long: ")
    await call.flood(b"x" * 10_000)


async def trailers(call: RawCall) -> None:
    call.write(STREAM + b"0\r\n")
    await call.flood(b"X-More: and more\r\n" * 500)


async def chunk_extension(call: RawCall) -> None:
    call.write(STREAM + b"5;")
    await call.flood(b"x" * 10_000)


async def comments(call: RawCall) -> None:
    call.write(STREAM)
    await call.flood(b"258\r\n" + b": hi\n\n" * 100 + b"\r\n")


async def slow_comments(call: RawCall) -> None:
    call.write(STREAM)
    while True:
        call.write(b"6\r\n: hi\n\n\r\n")
        await asyncio.sleep(0.02)


async def trickle(call: RawCall) -> None:
    for byte in ok(call.prompt * 1_000):
        call.write(bytes([byte]))
        await asyncio.sleep(0.01)


BYTES_WITHOUT_END = [continues, hints, slow_continues, headers, one_header, trailers, chunk_extension, comments]
TOO_SLOW = [slow_comments, trickle]


async def watched_call(model: Model) -> tuple[Reply | ProviderError, float]:
    """What a call came to, and the longest turn of the loop while it lasted."""
    longest_s, ended = 0.0, asyncio.Event()

    async def watch() -> None:
        nonlocal longest_s
        while not ended.is_set():
            before_s = time.monotonic()
            await asyncio.sleep(0.005)
            longest_s = max(longest_s, time.monotonic() - before_s)

    async with opened(model) as provider:
        watching = asyncio.ensure_future(watch())
        found = await outcome(provider, a_request("question"))
        ended.set()
        await watching
    return found, longest_s


def met(handle: Handler, *, timeout_s: float, runner=asyncio.run) -> tuple[Reply | ProviderError, float, float]:
    with RawServer(handle) as server:
        parameters = {"timeout_s": timeout_s, "max_response_bytes": 2_000_000, "stream": True}
        model = Model("m", service_name="openai_compatible", base_url=server.url, **parameters)
        began_s = time.monotonic()
        found, longest_s = runner(watched_call(model))
        return found, longest_s, time.monotonic() - began_s


@pytest.mark.parametrize("handle", BYTES_WITHOUT_END, ids=lambda handle: handle.__name__)
@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_bytes_without_end_end_the_call_while_the_loop_turns(handle, runner):
    before_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found, longest_s, _ = met(handle, timeout_s=PATIENT_S, runner=runner)
    assert isinstance(found, ProviderUnavailable)
    assert not isinstance(found, ProviderTimeout), found  # by their number: time alone would let memory go
    assert longest_s < LONGEST_TURN_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before_bytes < MOST_MORE_BYTES


@pytest.mark.parametrize("handle", TOO_SLOW, ids=lambda handle: handle.__name__)
def test_bytes_that_trickle_for_ever_end_with_the_call_s_time(handle):
    found, longest_s, lasted_s = met(handle, timeout_s=TIMEOUT_S)
    assert isinstance(found, ProviderTimeout)
    assert longest_s < LONGEST_TURN_S
    assert lasted_s < TIMEOUT_S + 5
