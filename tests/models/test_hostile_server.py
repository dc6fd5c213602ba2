"""The server that plays a bad day ends as a killed program does: no connection stays open."""

import socket
import threading
import time
from contextlib import suppress

from tests.models.server import HostileServer

_BODY = b'{"messages":[{"content":"?"}]}'
_REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)


def test_a_server_that_ends_closes_also_the_connection_that_it_has_just_accepted():
    is_busy = threading.Event()

    def keep_busy(_: object) -> str:
        is_busy.set()
        time.sleep(0.5)
        return "reset"

    server = HostileServer().__enter__()
    server.behave(keep_busy)
    address = ("127.0.0.1", server.port)
    with socket.create_connection(address) as asking:
        asking.sendall(_REQUEST)
        assert is_busy.wait(20)
        with socket.create_connection(address, timeout=20) as late:
            server.__exit__()  # its loop sees both in one turn
            with suppress(ConnectionError):
                assert late.recv(1) == b""
