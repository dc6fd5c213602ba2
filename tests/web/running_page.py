"""A page that answers over HTTP on loopback, in a thread of the test's own process."""

import asyncio
import http.client
import json
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

from headrace.web.access import Access
from headrace.web.page_server import PageServer
from headrace.web.shown_files import ShownFiles

TOKEN = "a-token-for-the-tests"
_PATIENCE_S = 30


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str

    def json(self) -> Any:
        return json.loads(self.body)


class RunningPage:
    """`get` and `post` send what a program with the token sends, unless headers are given."""

    def __init__(self, *places: Path, can_steer: bool = True) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.access = Access("127.0.0.1", self.port, TOKEN)
        self._server = PageServer(ShownFiles(list(places)), self.access, can_steer=can_steer)
        self._ready, self._loop, self._over = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="page under test")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(_PATIENCE_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(_PATIENCE_S)
        self._listener.close()
        assert not self._thread.is_alive()

    def get(self, path: str, **headers: str) -> Answer:
        return self._send("GET", path, None, headers or {"Authorization": f"Bearer {TOKEN}"})

    def post(self, path: str, fields: dict[str, str], **headers: str) -> Answer:
        sent = headers or {"Authorization": f"Bearer {TOKEN}"}
        sent["Content-Type"] = "application/x-www-form-urlencoded"
        return self._send("POST", path, urlencode(fields), sent)

    def post_body(self, path: str, body: str, content_type: str) -> Answer:
        sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type}
        return self._send("POST", path, body, sent)

    def api(self, path: str) -> Any:
        answer = self.get(f"/api/v1{path}")
        assert answer.status == 200, answer.body
        return answer.json()

    def _send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_S)
        try:
            connection.request(method, path, body, headers)
            found = connection.getresponse()
            return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read().decode())
        finally:
            connection.close()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # what asyncio.run does, with this loop
            runner.run(self._answer())

    async def _answer(self) -> None:
        async with self._server.running(self._listener):
            self._ready.set()
            await self._over.wait()
