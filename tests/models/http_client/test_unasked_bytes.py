"""Bytes that no request asked for never become an answer: each question gets its own, whatever a server adds."""

import asyncio
import time

import pytest

from headrace import Model
from headrace.errors import ProviderError, ProviderUnavailable
from headrace.models.http_client import kept_connections as connections
from headrace.models.provider import Reply
from tests.models.asking import a_request, ask, opened, outcome
from tests.models.behaviours import http
from tests.models.raw_server import RawCall, RawServer, chat, ok

QUESTIONS = 64


def a_model(server: RawServer, **parameters) -> Model:
    return Model("m", service_name="openai_compatible", base_url=server.url, **parameters)


async def asked_at_once(model: Model, at_once: int, questions: int = QUESTIONS) -> dict[str, Reply | ProviderError]:
    """Every question's answer, so many in flight; a call that failed is made again, as a run would."""
    left, found = [f"question {number}" for number in range(questions)], dict[str, Reply | ProviderError]()

    async def in_turn() -> None:
        while left:
            prompt = left.pop()
            for _ in range(5):
                found[prompt] = await outcome(provider, a_request(prompt))
                if isinstance(found[prompt], Reply):
                    break

    async with opened(model) as provider:
        await asyncio.gather(*(in_turn() for _ in range(at_once)))
    return found


def wrong(found: dict[str, Reply | ProviderError]) -> list[tuple[str, str]]:
    return [(prompt, str(said)) for prompt, said in found.items() if not isinstance(said, Reply) or said.text != prompt]


def unasked(text: str) -> bytes:
    return ok(f"not an answer to {text}")


def chunked(text: str) -> bytes:
    body = chat(text)
    head = b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"


async def in_the_same_segment(call: RawCall) -> None:
    call.write(ok(call.prompt) + unasked(call.prompt))


async def half_in_the_same_segment(call: RawCall) -> None:
    second = unasked(call.prompt)
    call.write(ok(call.prompt) + second[:20])
    await asyncio.sleep(0.002)
    call.write(second[20:])


async def behind_a_chunked_one(call: RawCall) -> None:
    call.write(chunked(call.prompt) + unasked(call.prompt))


async def begun_behind_a_chunked_one(call: RawCall) -> None:
    second = unasked(call.prompt)
    call.write(chunked(call.prompt) + second[:9])
    await asyncio.sleep(0.002)
    call.write(second[9:])


async def at_once_after(call: RawCall) -> None:
    call.write(ok(call.prompt))
    await asyncio.sleep(0)
    call.write(unasked(call.prompt))


async def a_little_later(call: RawCall) -> None:
    call.write(ok(call.prompt))
    await asyncio.sleep(0.005)
    call.write(unasked(call.prompt))


async def much_later(call: RawCall) -> None:
    call.write(ok(call.prompt))
    await asyncio.sleep(0.1)
    call.write(unasked(call.prompt))


async def before_the_next_answer(call: RawCall) -> None:
    """As a proxy does that keeps what it could not deliver until the next request comes."""
    await asyncio.sleep(0.01)
    call.write((unasked("an earlier one") if call.number > 1 else b"") + ok(call.prompt))


TRICKS = [
    in_the_same_segment, half_in_the_same_segment, behind_a_chunked_one, begun_behind_a_chunked_one, at_once_after,
    a_little_later, much_later, before_the_next_answer,
]  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.__name__)
@pytest.mark.parametrize("at_once", [1, 8])
def test_each_of_many_questions_gets_its_own_answer(trick, at_once):
    with RawServer(trick) as server:
        found = asyncio.run(asked_at_once(a_model(server), at_once))
    assert len(found) == QUESTIONS
    assert not wrong(found)


def test_a_response_that_comes_before_any_request_is_no_answer(caplog, monkeypatch):
    begin = connections.Exchanges.begin

    def begin_late(exchanges: connections.Exchanges) -> bool:
        time.sleep(1.0)  # so that the greeting is there, also beside much other work
        return begin(exchanges)

    monkeypatch.setattr(connections.Exchanges, "begin", begin_late)

    async def answer(call: RawCall) -> None:
        call.write(ok(call.prompt))

    with RawServer(answer, greeting=unasked("anything")) as server:
        (found,) = ask(a_model(server), a_request("question"))
    assert isinstance(found, ProviderUnavailable)
    assert "sent bytes before it was asked" in str(found)
    assert caplog.text.count("without a request") == 1


def test_connections_of_a_server_that_behaves_are_used_again(monkeypatch):
    monkeypatch.setattr(connections, "_WATCHED_S", 0.02)

    async def answer(call: RawCall) -> None:
        await asyncio.sleep(0.005)
        call.write(ok(call.prompt) if call.number % 2 else chunked(call.prompt))

    with RawServer(answer) as server:
        found = asyncio.run(asked_at_once(a_model(server), 4, questions=200))
        assert not wrong(found)
        assert server.calls == 200
        assert server.connections < 100


def test_a_server_that_begins_to_misbehave_is_not_trusted_again(monkeypatch, caplog):
    monkeypatch.setattr(connections, "_WATCHED_S", 0.02)
    late = {"question 100"}

    async def answer(call: RawCall) -> None:
        await asyncio.sleep(0.005)
        call.write(ok(call.prompt) + (unasked(call.prompt) if call.prompt in late else b""))

    with RawServer(answer) as server:
        found = asyncio.run(asked_at_once(a_model(server), 4, questions=200))
        assert not wrong(found)
        assert 100 < server.connections < 180  # one each since then
    assert caplog.text.count("without a request") == 1
    assert caplog.records[0].name == "headrace"


def test_calls_on_used_connections_are_made_again_when_their_server_is_caught(monkeypatch):
    """What they would get may be the answer to what was asked there before."""
    monkeypatch.setattr(connections, "_WATCHED_S", 0.01)

    async def answer(call: RawCall) -> None:
        if call.prompt == "slow":
            await asyncio.sleep(0.3)
        call.write(ok(call.prompt) + (unasked("x") if call.prompt == "two" else b""))

    async def calls(model: Model) -> list[Reply | ProviderError]:
        async with opened(model) as provider:
            await provider.ask(a_request("first"))
            await asyncio.sleep(0.05)
            slow = asyncio.ensure_future(outcome(provider, a_request("slow")))  # on the same connection
            await asyncio.sleep(0.05)
            return [await outcome(provider, a_request("two")), await slow]

    with RawServer(answer) as server:
        two, slow = asyncio.run(calls(a_model(server)))
        assert server.connections == 2
    assert isinstance(two, Reply)
    assert isinstance(slow, ProviderUnavailable)


def test_a_connection_that_the_server_has_closed_costs_no_failure(monkeypatch):
    monkeypatch.setattr(connections, "_WATCHED_S", 0.01)

    async def answer(call: RawCall) -> None:
        call.write(ok(call.prompt))
        await asyncio.sleep(0.03)
        call.writer.close()

    async def calls(model: Model) -> list[Reply | ProviderError]:
        async with opened(model) as provider:
            found = [await outcome(provider, a_request("one"))]
            time.sleep(0.1)  # the loop is busy: it cannot have seen the end
            return [*found, await outcome(provider, a_request("two"))]

    with RawServer(answer) as server:
        found = asyncio.run(calls(a_model(server)))
    assert [reply.text for reply in found if isinstance(reply, Reply)] == ["one", "two"]


def test_what_follows_a_response_without_a_body_is_no_answer():
    async def answer(call: RawCall) -> None:
        call.write(http(204, b"") + unasked(call.prompt) if call.prompt == "empty" else ok(call.prompt))

    with RawServer(answer) as server:
        empty, second = ask(a_model(server), a_request("empty"), a_request("second"))
    assert isinstance(empty, ProviderUnavailable)
    assert isinstance(second, Reply)
    assert second.text == "second"


def test_calls_go_through_a_proxy_all_the_same(monkeypatch):
    """Its CONNECT is a request that aiohttp makes itself."""
    seen: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        seen.append(await reader.read(3))
        writer.close()

    async def calls() -> Reply | ProviderError:
        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
        async with opened(Model("m", base_url="https://service.invalid/v1")) as provider:
            found = await outcome(provider, a_request())
        proxy.close()
        return found

    assert isinstance(asyncio.run(calls()), ProviderError)
    assert seen[0].startswith(b"CONNECT service.invalid:443")
    assert seen[1] == b"\x16\x03\x01"  # TLS begins: the proxy's answer was taken
