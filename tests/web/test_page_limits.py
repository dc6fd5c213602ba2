"""What a client may take: connections, time for headers and forms; and the token in no log."""

import asyncio
import http.client
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headrace.web import page_server
from headrace.web.reads import Reads, TooBusy
from tests.trouble.children import until
from tests.web.event_client import followed
from tests.web.running_page import TOKEN, RunningPage


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningPage]:
    monkeypatch.setattr(page_server, "HEADERS_WITHIN_S", 1.0)
    monkeypatch.setattr(page_server, "_BODY_WITHIN_S", 1.0)
    monkeypatch.setattr(page_server, "MOST_CONNECTIONS", 20)
    with RunningPage(tmp_path) as page:
        yield page


def connected(page: RunningPage) -> socket.socket:
    return socket.create_connection(("127.0.0.1", page.port), timeout=30)


def test_headers_that_never_end_are_dropped(page: RunningPage):
    with connected(page) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ")
        began_s = time.monotonic()
        assert slow.recv(1_000) == b""
        assert time.monotonic() - began_s < 20


def test_a_connection_that_says_nothing_is_dropped(page: RunningPage):
    with connected(page) as silent:
        assert silent.recv(1_000) == b""


def test_a_form_that_never_ends_is_dropped(page: RunningPage):
    head = (
        f"POST /api/v1/runs/0011223344556677/pause HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: 100\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    )
    with connected(page) as slow:
        slow.sendall(head.encode() + b"a=")
        assert b" 408 " in slow.recv(10_000).split(b"\r\n")[0]


def test_so_many_connections_are_held_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page_server, "MOST_CONNECTIONS", 20)
    with RunningPage(tmp_path) as page, ExitStack() as opened:
        silent = [opened.enter_context(connected(page)) for _ in range(40)]
        until(lambda: [is_open(each) for each in silent] == [False] * 20 + [True] * 20, "the end of the first ones")
        assert page_answers(page)


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


@pytest.mark.parametrize(
    "said", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", b"GET /assets/page.css HTTP/1.1\r\nHost: {}\r\n\r\n"]
)
def test_connections_without_a_token_keep_nobody_out_who_has_it(tmp_path: Path, said: bytes):
    """Nobody waits until the silent ones have used up their time, and who is in already stays."""
    with RunningPage(tmp_path) as page, followed(page.port, "/events") as stream, ExitStack() as strangers:
        assert stream.next() is not None
        kept = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
        strangers.callback(kept.close)
        assert status_over(kept) == 200
        began_s = time.monotonic()
        for _ in range(page_server.MOST_CONNECTIONS + 50):
            strangers.enter_context(connected(page)).sendall(said.replace(b"{}", b"127.0.0.1:%d" % page.port))
        assert page.get("/").status == 200
        assert status_over(kept) == 200
        assert time.monotonic() - began_s < page_server.HEADERS_WITHIN_S
        (tmp_path / "new.run").write_bytes(b"")
        told = stream.next()
        assert told is not None
        assert [file["name"] for file in told.data["files"]] == ["new.run"]


def status_over(connection: http.client.HTTPConnection) -> int:
    connection.request("GET", "/api/v1/runs", headers={"Authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def test_where_all_who_are_in_stay_another_one_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page_server, "MOST_CONNECTIONS", 20)
    with RunningPage(tmp_path) as page, ExitStack() as opened:
        known = [http.client.HTTPConnection("127.0.0.1", page.port, timeout=30) for _ in range(20)]
        for each in known:
            opened.callback(each.close)
            assert status_over(each) == 200
        assert not page_answers(page)
        known[0].close()
        until(lambda: page_answers(page), "room again", every_s=0.1)


def page_answers(page: RunningPage) -> bool:
    try:
        return page.get("/").status == 200
    except OSError:
        return False


def test_the_token_is_in_no_log(page: RunningPage, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    for path in (f"/?token={TOKEN}", f"/nowhere?token={TOKEN}", f"/runs/%ff?token={TOKEN}", "/api/v1/runs"):
        page.get(path)
    with connected(page) as odd:
        odd.sendall(f"GET /?token={TOKEN} HTTP/9.9\r\nAuthorization: Bearer {TOKEN}\r\n: bad\r\n\r\n".encode())
        odd.recv(10_000)
    assert "HTTP/9.9" in caplog.text
    assert TOKEN not in caplog.text
    assert page.access.cookie not in caplog.text


async def test_one_client_leaves_room_for_another():
    reads, is_over = Reads(), threading.Event()
    try:
        many = [asyncio.create_task(reads.run(is_over.wait, "one")) for _ in range(60)]
        other = asyncio.create_task(reads.run(is_over.wait, "another"))
        await asyncio.sleep(0)
        refused = [task for task in many if task.done()]
        assert 0 < len(refused) < len(many)
        assert all(isinstance(task.exception(), TooBusy) for task in refused)
        assert not other.done()
        is_over.set()
        assert await other is True
        assert await reads.run(lambda: "later", "one") == "later"
    finally:
        is_over.set()
        await asyncio.gather(*many, return_exceptions=True)
        reads.close()
