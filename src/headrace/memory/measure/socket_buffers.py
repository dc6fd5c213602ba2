"""Charges trees with memory in pipes and sockets: what was written into them and not yet read. No process shows it.

Covers: the buffers that a tree has open, each counted once. A tree with few descriptors cannot hold much there and is
passed by after one short look. Buffers are asked for their fill through a copy of the descriptor, for a microsecond.
TCP connections, of which a worker may have hundreds, are not asked while all of this machine together hold little:
finding out that they are still the same takes a third of the time.
Does not cover: descriptors in flight (memory.measure.hidden_shared_memory).
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import re
import time
from collections.abc import Generator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.memory.measure.measured_tree import MeasuredTree

_FEW = 32  # of a whole tree: two hold a pipe, of 1 MB at most
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438  # the same on every architecture
_SOL_SOCKET, _SO_PROTOCOL, _SO_MEMINFO, _TCP, _UNREAD = 1, 38, 55, 6, 0x541B
_RECEIVED, _SENT, _QUEUED, _FIGURES = 0, 2, 5, 9  # of SO_MEMINFO
# One of so many seconds may go into looking: more where connections hold much, and more still where the limit is near,
# or many descriptors are new.
_SHARE_OF_TIME, _SHARE_WHEN_MUCH, _SHARE_WHEN_FILLING = 100, 28, 3
_MORE = 16
_LITTLE_BYTES = 8 << 20  # in all TCP connections of this machine
_PAGES_OF_TCP = re.compile(rb"^TCP: .* mem (\d+)$", re.MULTILINE)


class _OpenBuffers:
    """What one look has found: pipes and sockets by their names in /proc, as many as its processes may open."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self.seen: set[str] = set()
        self.connections: set[str] = set()


class SocketBuffers:
    """`charge` brings a tree's `buffered_bytes` up to date."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._number, self._figures, self._size = ctypes.c_int(), (ctypes.c_uint32 * _FIGURES)(), ctypes.c_uint()

    def charge(self, watch: MeasuredTree, now: float, *, is_hot: bool) -> None:
        pids = watch.tree.pids()
        descriptors = sum(map(_descriptors, pids))
        if descriptors <= _FEW:
            watch.buffered_bytes = watch.buffers_seen = 0
            return
        is_mostly_known = 2 * len(watch.connections) > watch.buffers_seen
        share = _SHARE_OF_TIME if is_mostly_known else _SHARE_WHEN_MUCH
        if is_hot or descriptors >= watch.buffers_seen + _MORE:
            share = _SHARE_WHEN_FILLING
        if now < watch.buffers_looked_at + watch.buffers_took_s * share:
            return
        began_at = time.monotonic()
        is_little = tcp_bytes() < _LITTLE_BYTES
        found = self.look(pids, watch.connections if is_little else frozenset())
        watch.connections = found.connections if is_little else frozenset()
        watch.buffered_bytes, watch.buffers_seen = found.size_bytes, descriptors
        watch.buffers_looked_at, watch.buffers_took_s = now, time.monotonic() - began_at

    def look(self, pids: list[int], known: AbstractSet[str] = frozenset()) -> _OpenBuffers:
        """What is in the pipes and sockets that these processes have open; those that are `known` are passed by."""
        found = _OpenBuffers()
        for pid in pids:
            process = self._library.syscall(_PIDFD_OPEN, pid, 0)
            if process >= 0:
                try:
                    self._add(pid, process, found, known)
                finally:
                    os.close(process)
        return found

    def _add(self, pid: int, process: int, found: _OpenBuffers, known: AbstractSet[str]) -> None:
        with suppress(OSError), _open_directory(f"/proc/{pid}/fd") as directory:  # it may have ended meanwhile
            for number in os.listdir(directory):  # noqa: PTH208
                try:
                    target = os.readlink(number, dir_fd=directory)
                except OSError:
                    continue  # closed meanwhile
                if target in known:
                    found.connections.add(target)
                elif target not in found.seen and target.startswith(("pipe:", "socket:")):
                    found.seen.add(target)
                    self._add_one(process, int(number), target, found)

    def _add_one(self, process: int, number: int, target: str, found: _OpenBuffers) -> None:
        copy = self._library.syscall(_PIDFD_GETFD, process, number, 0)
        if copy < 0:
            return  # closed meanwhile, or a sandbox forbids it
        try:
            if target.startswith("pipe:"):
                found.size_bytes += self._in_pipe(copy)
                return
            found.size_bytes += self._in_socket(copy)
            if self._option(copy, _SO_PROTOCOL, self._number) and self._number.value == _TCP:
                found.connections.add(target)
        finally:
            os.close(copy)

    def _in_pipe(self, pipe: int) -> int:
        is_known = self._library.ioctl(pipe, _UNREAD, ctypes.byref(self._number)) == 0
        return max(0, self._number.value) if is_known else 0

    def _in_socket(self, connection: int) -> int:
        """What the kernel charges it with. What one end of a local socket has not read, it charges to the other."""
        figures = self._figures
        is_known = self._option(connection, _SO_MEMINFO, figures)
        return figures[_RECEIVED] + max(figures[_SENT], figures[_QUEUED]) if is_known else 0

    def _option(self, connection: int, option: int, value: ctypes.c_int | ctypes.Array[ctypes.c_uint32]) -> bool:
        """Whether a socket has told this option."""
        self._size.value = ctypes.sizeof(value)
        arguments = (connection, _SOL_SOCKET, option, ctypes.byref(value), ctypes.byref(self._size))
        return self._library.getsockopt(*arguments) == 0


def can_read_buffers() -> bool:
    """Whether descriptors may be copied from a process of ours."""
    reader, writer = os.pipe()
    try:
        os.write(writer, b"tide")
        return SocketBuffers().look([os.getpid()]).size_bytes >= len(b"tide")
    finally:
        os.close(reader)
        os.close(writer)


def tcp_bytes() -> float:
    """What all TCP connections of this machine hold together, in whole pages; infinite where that is not told. Linux
    leaves out what it sets aside for each core, since 6.0: 1 MB at most.
    """
    try:
        found = _PAGES_OF_TCP.search(Path("/proc/net/sockstat").read_bytes())
    except OSError:
        return math.inf
    return int(found[1]) * mmap.PAGESIZE if found else math.inf


@contextmanager
def _open_directory(path: str) -> Generator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _descriptors(pid: int) -> int:
    try:
        # Since Linux 6.2 the directory's size is their number.
        return os.stat(f"/proc/{pid}/fd").st_size or len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH116, PTH208
    except OSError:
        return 0
