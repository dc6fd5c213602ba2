"""Memory in pipes and sockets, as the kernel counts it."""

import math
import os
import select
import socket
import sys
from collections.abc import Iterator

import pytest

from headrace.memory.measure import socket_buffers
from headrace.memory.measure.measured_tree import MeasuredTree
from headrace.memory.measure.socket_buffers import SocketBuffers, can_read_buffers
from headrace.memory.measure.tree import new_tree

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not can_read_buffers(), reason="descriptors cannot be copied here"
)

WRITTEN = 40_000


def buffered_bytes() -> int:
    """Of this process, which has some kilobytes more or less in the pipes that it reports its tests through."""
    return SocketBuffers().look([os.getpid()]).size_bytes


def test_what_waits_in_a_pipe_is_counted_once():
    reader, writer = os.pipe()
    before = buffered_bytes()
    os.write(writer, bytes(WRITTEN))
    assert WRITTEN / 2 < buffered_bytes() - before < 1.5 * WRITTEN
    os.close(reader)
    os.close(writer)


def test_what_waits_in_a_local_socket_is_counted_once():
    ours, others = socket.socketpair()
    with ours, others:
        before = buffered_bytes()
        ours.sendall(bytes(WRITTEN))
        assert WRITTEN / 2 < buffered_bytes() - before < 1.8 * WRITTEN
        others.recv(WRITTEN, socket.MSG_WAITALL)
        assert buffered_bytes() - before < WRITTEN / 2


def test_what_a_connection_has_not_read_or_not_sent_is_counted():
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        others, _ = server.accept()
    with ours, others:
        before = buffered_bytes()
        ours.sendall(bytes(WRITTEN))
        others.recv(1, socket.MSG_PEEK)  # it has arrived
        assert buffered_bytes() - before > WRITTEN / 2
        others.setblocking(False)
        while select.select([], [others], [], 0.1)[1]:
            others.send(bytes(1 << 20))
        assert buffered_bytes() - before > 1 << 20


@pytest.fixture
def connections() -> Iterator[list[socket.socket]]:
    """Both ends of as many as are looked at."""
    ends: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(40):
            ends += [socket.create_connection(server.getsockname()), server.accept()[0]]
    yield ends
    for end in ends:
        end.close()


def watched() -> MeasuredTree:
    return MeasuredTree(pid=os.getpid(), tree=new_tree(os.getpid(), has_base=False))


def test_connections_are_asked_again_once_all_of_them_together_hold_much(connections, monkeypatch):
    buffers, tree = SocketBuffers(), watched()
    ours, others = connections[:2]
    monkeypatch.setattr(socket_buffers, "tcp_bytes", lambda: 0)
    buffers.charge(tree, 0.0, is_hot=False)
    assert len(tree.connections) >= len(connections)
    ours.sendall(bytes(WRITTEN))
    others.recv(1, socket.MSG_PEEK)
    buffers.charge(tree, 1e9, is_hot=False)
    assert tree.buffered_bytes < WRITTEN / 2
    monkeypatch.setattr(socket_buffers, "tcp_bytes", lambda: 1e9)
    buffers.charge(tree, 2e9, is_hot=False)
    assert tree.buffered_bytes > WRITTEN / 2
    tree.tree.close()


@pytest.mark.skipif(socket_buffers.tcp_bytes() == math.inf, reason="not told here")
def test_the_kernel_tells_what_all_connections_hold(connections):
    before = socket_buffers.tcp_bytes()
    for ours in connections[::2]:
        ours.setblocking(False)
        while select.select([], [ours], [], 0)[1]:
            ours.send(bytes(1 << 20))
    assert socket_buffers.tcp_bytes() - before > 16 << 20


def test_one_connection_among_many_pipes_makes_no_look_rarer(connections, monkeypatch):
    monkeypatch.setattr(socket_buffers, "tcp_bytes", lambda: 0)
    buffers, tree = SocketBuffers(), watched()
    pipes = [end for _ in range(300) for end in os.pipe()]
    buffers.charge(tree, 0.0, is_hot=False)
    tree.buffers_took_s = 0.01
    assert tree.connections
    os.write(pipes[1], bytes(WRITTEN))
    before = tree.buffered_bytes
    buffers.charge(tree, 0.5, is_hot=False)
    assert tree.buffered_bytes - before > WRITTEN / 2
    for end in pipes:
        os.close(end)
    tree.tree.close()


def test_pipes_are_asked_whatever_connections_hold(connections, monkeypatch):
    monkeypatch.setattr(socket_buffers, "tcp_bytes", lambda: 0)
    buffers, tree = SocketBuffers(), watched()
    buffers.charge(tree, 0.0, is_hot=False)
    before = tree.buffered_bytes
    reader, writer = os.pipe()
    os.write(writer, bytes(WRITTEN))
    buffers.charge(tree, 1e9, is_hot=False)
    assert WRITTEN / 2 < tree.buffered_bytes - before < 1.5 * WRITTEN
    os.close(reader)
    os.close(writer)
    tree.tree.close()
