"""Memory in pipes and sockets, as the kernel counts it."""

import os
import select
import socket
import sys

import pytest

from headrace.memory.measure.socket_buffers import SocketBuffers, can_read_buffers

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not can_read_buffers(), reason="descriptors cannot be copied here"
)

WRITTEN = 40_000


def buffered_bytes() -> int:
    return SocketBuffers().of([os.getpid()])


def test_what_waits_in_a_pipe_is_counted_once():
    reader, writer = os.pipe()
    before = buffered_bytes()
    os.write(writer, bytes(WRITTEN))
    assert buffered_bytes() - before == WRITTEN
    os.close(reader)
    os.close(writer)


def test_what_waits_in_a_local_socket_is_counted_once():
    ours, others = socket.socketpair()
    with ours, others:
        before = buffered_bytes()
        ours.sendall(bytes(WRITTEN))
        assert WRITTEN <= buffered_bytes() - before < 2 * WRITTEN
        others.recv(WRITTEN, socket.MSG_WAITALL)
        assert buffered_bytes() == before


def test_what_a_connection_has_not_read_or_not_sent_is_counted():
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        others, _ = server.accept()
    with ours, others:
        before = buffered_bytes()
        ours.sendall(bytes(WRITTEN))
        others.recv(1, socket.MSG_PEEK)  # it has arrived
        assert buffered_bytes() - before >= WRITTEN
        others.setblocking(False)
        while select.select([], [others], [], 0.1)[1]:
            others.send(bytes(1 << 20))
        assert buffered_bytes() - before > 1 << 20
