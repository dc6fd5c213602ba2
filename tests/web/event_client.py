"""A client of server-sent events on loopback, as small as a browser's."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.web.running_page import TOKEN

_PATIENCE_S = 30


class ServerSent(NamedTuple):
    id: str
    name: str
    data: Any


class EventClient:
    def __init__(self, port: int, path: str, last_id: str, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
        headers = {"Authorization": f"Bearer {token}"} | ({"Last-Event-ID": last_id} if last_id else {})
        self._connection.request("GET", f"/api/v1{path}", headers=headers)
        self._answer = self._connection.getresponse()
        self.status = self._answer.status

    @property
    def headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self._answer.getheaders()}

    def body(self) -> str:
        return self._answer.read().decode()

    def next(self) -> ServerSent | None:
        """The next event; None at the end of the stream."""
        fields: dict[str, str] = {}
        while line := self._answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if line != "\n":
                fields[name] = value
            elif "data" in fields:
                return ServerSent(fields["id"], fields["event"], json.loads(fields["data"]))
            else:
                fields.clear()
        return None

    def is_silent(self, for_s: float) -> bool:
        """Whether nothing comes for so long but comments and `retry`."""
        sock = self._answer.fp.raw._sock  # http.client has no other way to change the patience of a response
        sock.settimeout(for_s)
        try:
            while (line := self._answer.readline().decode()).startswith((":", "retry", "\n")):
                pass
            return not line
        except TimeoutError:
            return True

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


@contextmanager
def followed(port: int, path: str, last_id: str = "", token: str = TOKEN) -> Iterator[EventClient]:
    client = EventClient(port, path, last_id, token)
    try:
        yield client
    finally:
        client.close()
