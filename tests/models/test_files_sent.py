"""What services are sent of files in prompts, as a real server gets it."""

import asyncio
import base64
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from headrace import FileStore, Model
from headrace.errors import FileUnusable, ProviderBusy, ProviderError, ProviderRefused
from headrace.models.calls import ServiceCalls
from headrace.models.provider import Reply, Request
from headrace.survey.files.file_contents import BLOCK_BYTES
from headrace.survey.files.marks import mark_of, split
from tests.models.asking import CHOICE, TEXT, ask, opened, outcome
from tests.models.server import HostileServer
from tests.pictures import pdf, png, wav


def a_request(*parts: str | FileStore, schema: dict[str, Any] = TEXT, system: str = "") -> Request:
    prompt, files = split("".join(part if isinstance(part, str) else str(mark_of(part)) for part in parts))
    return Request("q", system, prompt, schema, {}, {}, 0, 1, files=files)


def a_model(service: str, server: HostileServer, **parameters: Any) -> Model:
    return Model("m", service_name=service, base_url=server.url, timeout_s=20.0, **parameters)


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


@pytest.fixture
def server():
    with HostileServer() as running:
        yield running


def test_chat_completions_get_content_parts(server: HostileServer, tmp_path: Path):
    photo, report, sound = png(tmp_path / "a.png"), pdf(tmp_path / 'b"ü.pdf', "Hello"), wav(tmp_path / "c.wav")
    request = a_request(
        "Look: ", FileStore(photo), FileStore(report), " and hear ", FileStore(sound), system="Be kind."
    )
    (reply,) = ask(a_model("openai_compatible", server), request)
    assert isinstance(reply, Reply)
    assert server.last.body["messages"][0] == {"role": "system", "content": "Be kind."}
    assert server.last.content == [
        {"type": "text", "text": "Look: "},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded(photo)}"}},
        {
            "type": "file",
            "file": {"filename": 'b"ü.pdf', "file_data": f"data:application/pdf;base64,{encoded(report)}"},
        },
        {"type": "text", "text": " and hear "},
        {"type": "input_audio", "input_audio": {"data": encoded(sound), "format": "wav"}},
    ]


def test_messages_get_blocks(server: HostileServer, tmp_path: Path):
    photo, report = png(tmp_path / "a.png"), pdf(tmp_path / "b.pdf", "Hello")
    request = a_request(FileStore(photo), "What is it? ", FileStore(report), schema=CHOICE, system="Be kind.")
    ask(a_model("anthropic", server), request)
    assert server.last.body["system"] == "Be kind."
    assert server.last.is_structured
    assert server.last.content == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded(photo)}},
        {"type": "text", "text": "What is it? "},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": encoded(report)}},
    ]


@pytest.mark.parametrize("service", ["openai_compatible", "anthropic"])
@pytest.mark.parametrize("size", [1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 2])
def test_a_body_has_its_length_and_every_byte(server: HostileServer, tmp_path: Path, service: str, size: int):
    path = tmp_path / "a.png"
    begun = png(path).read_bytes()[:33]  # with its width and height
    path.write_bytes((begun + os.urandom(size))[: max(size, 33)])
    ask(a_model(service, server), a_request("See ", FileStore(path), schema=CHOICE))
    assert "content-length" in server.last.headers
    sent = server.last.content[1]
    data = sent["source"]["data"] if service == "anthropic" else sent["image_url"]["url"].partition(",")[2]
    assert data == encoded(path)


def test_a_schema_that_is_not_taken_is_sent_in_words_and_the_file_again(server: HostileServer, tmp_path: Path):
    photo = png(tmp_path / "a.png", filler_bytes=BLOCK_BYTES)
    server.behave("no-schema")
    (reply,) = ask(a_model("openai_compatible", server), a_request("See ", FileStore(photo), schema=CHOICE))
    assert isinstance(reply, Reply)
    assert [part["type"] for part in server.last.content] == ["text", "image_url", "text"]
    assert "JSON schema" in server.last.content[2]["text"]


def test_a_retry_reads_the_file_again(server: HostileServer, tmp_path: Path):
    photo = png(tmp_path / "a.png", filler_bytes=BLOCK_BYTES)
    server.behave(["reset", "500", "ok"])
    request = a_request("See ", FileStore(photo))
    replies = ask(a_model("openai_compatible", server), request, request, request)
    assert isinstance(replies[2], Reply)
    assert server.last.content[1]["image_url"]["url"].endswith(encoded(photo))


@pytest.mark.parametrize("size", [100, 4 * BLOCK_BYTES])
def test_of_a_file_that_changed_no_service_gets_a_whole_request(server: HostileServer, tmp_path: Path, size: int):
    path = png(tmp_path / "a.png", filler_bytes=size)
    request = a_request("See ", FileStore(path))
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    first, second = ask(a_model("openai_compatible", server), request, a_request("Hello"))
    assert isinstance(first, FileUnusable)
    assert str(path) in first.message
    assert isinstance(second, Reply)  # and the next call is none the worse
    assert server.calls == 1


def test_a_file_that_no_model_of_a_service_takes_is_refused_before_it_is_sent(server: HostileServer, tmp_path: Path):
    (tmp_path / "a.zip").write_bytes(b"PK\3\4\0\0")
    for service, path in (("anthropic", wav(tmp_path / "a.wav")), ("openai_compatible", tmp_path / "a.zip")):
        (refused,) = ask(a_model(service, server), a_request("Hear ", FileStore(path)))
        assert isinstance(refused, FileUnusable)
        assert "take no" in refused.message
    assert server.calls == 0


def test_the_cache_knows_a_file_by_its_content(tmp_path: Path):
    calls = ServiceCalls(Model("m", service_name="openai"), None, None, None, None)  # pyright: ignore[reportArgumentType]
    one, same = FileStore(png(tmp_path / "a.png")), FileStore(png(tmp_path / "b.png"))
    other = FileStore(png(tmp_path / "c.png", shade=9))
    assert calls._key(a_request("See ", one)) == calls._key(a_request("See ", same))
    assert calls._key(a_request("See ", one)) != calls._key(a_request("See ", other))
    words = a_request("See ", one).user_prompt
    assert calls._key(a_request(words)) != calls._key(a_request("See ", one))


def test_many_large_files_in_flight_cost_a_block_each(tmp_path: Path):
    """A server that reads nothing: what is not sent yet must not be in memory."""
    photo = FileStore(png(tmp_path / "a.png", filler_bytes=20_000_000))

    async def ask_all(url: str) -> int:
        model = Model("m", service_name="openai_compatible", base_url=url, timeout_s=60.0)
        async with opened(model) as provider:
            calls = [asyncio.create_task(outcome(provider, a_request("See ", photo))) for _ in range(200)]
            await asyncio.sleep(1.0)
            grown = _resident_bytes() - before
            for call in calls:
                call.cancel()
            ended = await asyncio.gather(*calls, return_exceptions=True)
            assert not [each for each in ended if isinstance(each, ProviderError)]
            return grown

    with socket.create_server(("127.0.0.1", 0), backlog=512) as silent:
        before = _resident_bytes()
        assert asyncio.run(ask_all(f"http://127.0.0.1:{silent.getsockname()[1]}/v1")) < 80_000_000


@pytest.mark.parametrize("ending", ["stays open", "closes"])
@pytest.mark.parametrize(("status", "error"), [("413 Too Large", ProviderRefused), ("429 Busy", ProviderBusy)])
def test_a_service_that_answers_before_it_has_read_the_body_is_heard_at_once(
    tmp_path: Path, ending: str, status: str, error: type[ProviderError]
):
    photo = FileStore(png(tmp_path / "a.png", filler_bytes=20_000_000))

    async def answer_early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        await writer.drain()
        if ending == "stays open":
            await asyncio.wait_for(stopped.wait(), 30)
        writer.transport.abort()

    stopped = asyncio.Event()

    async def asked() -> Any:
        server = await asyncio.start_server(answer_early, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with opened(Model("m", service_name="openai_compatible", base_url=url, timeout_s=25.0)) as provider:
            started_s = time.monotonic()
            found = await outcome(provider, a_request("See ", photo))
            took_s = time.monotonic() - started_s
        stopped.set()
        server.close()
        await asyncio.sleep(0.05)
        return found, took_s

    found, took_s = asyncio.run(asked())
    assert took_s < 15
    if ending == "stays open":  # a connection that is closed at once may take the answer with it
        assert isinstance(found, error), found
    assert isinstance(found, ProviderError)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
