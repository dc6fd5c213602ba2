"""Charges trees with memory in pipes and sockets: what was written into them and not yet read. No process shows it.

Covers: the buffers that a tree has open, each counted once. A tree with few descriptors cannot hold much there and is
passed by after one short look. Buffers are asked for their fill through a copy of the descriptor, for a microsecond.
Does not cover: descriptors in flight (memory.measure.hidden_shared_memory).
"""

from __future__ import annotations

import ctypes
import os
import time
from contextlib import suppress

from headrace.memory.measure.measured_tree import MeasuredTree

_FEW = 32  # of a whole tree: two hold a pipe, of 1 MB at most
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438  # the same on every architecture
_SOL_SOCKET, _SO_MEMINFO, _UNREAD = 1, 55, 0x541B
_RECEIVED, _SENT, _QUEUED, _FIGURES = 0, 2, 5, 9  # of SO_MEMINFO
# One of so many seconds may go into looking: more where the limit is near, or many descriptors are new.
_SHARE_OF_TIME, _SHARE_WHEN_FILLING = 28, 3
_MORE = 16


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
        is_filling = is_hot or descriptors >= watch.buffers_seen + _MORE
        if now < watch.buffers_looked_at + watch.buffers_took_s * (
            _SHARE_WHEN_FILLING if is_filling else _SHARE_OF_TIME
        ):
            return
        began_at = time.monotonic()
        watch.buffered_bytes, watch.buffers_seen = self.of(pids), descriptors
        watch.buffers_looked_at, watch.buffers_took_s = now, time.monotonic() - began_at

    def of(self, pids: list[int]) -> int:
        """Bytes in all pipes and sockets that these processes have open."""
        sizes: dict[str, int] = {}  # by pipe or socket: bounded by what these processes may open
        for pid in pids:
            process = self._library.syscall(_PIDFD_OPEN, pid, 0)
            if process >= 0:
                try:
                    self._add(pid, process, sizes)
                finally:
                    os.close(process)
        return sum(sizes.values())

    def _add(self, pid: int, process: int, sizes: dict[str, int]) -> None:
        with suppress(OSError):  # it has ended meanwhile
            for number in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                try:
                    target = os.readlink(f"/proc/{pid}/fd/{number}")  # noqa: PTH115
                except OSError:
                    continue  # closed meanwhile
                if target not in sizes and target.startswith(("pipe:", "socket:")):
                    sizes[target] = self._bytes_in(process, int(number), is_socket=target.startswith("socket:"))

    def _bytes_in(self, process: int, number: int, *, is_socket: bool) -> int:
        copy = self._library.syscall(_PIDFD_GETFD, process, number, 0)
        if copy < 0:
            return 0  # closed meanwhile, or a sandbox forbids it
        try:
            return self._in_socket(copy) if is_socket else self._in_pipe(copy)
        finally:
            os.close(copy)

    def _in_pipe(self, pipe: int) -> int:
        is_known = self._library.ioctl(pipe, _UNREAD, ctypes.byref(self._number)) == 0
        return max(0, self._number.value) if is_known else 0

    def _in_socket(self, connection: int) -> int:
        """What the kernel charges it with. What one end of a local socket has not read, it charges to the other."""
        figures, self._size.value = self._figures, ctypes.sizeof(self._figures)
        arguments = (connection, _SOL_SOCKET, _SO_MEMINFO, figures, ctypes.byref(self._size))
        is_known = self._library.getsockopt(*arguments) == 0
        return figures[_RECEIVED] + max(figures[_SENT], figures[_QUEUED]) if is_known else 0


def can_read_buffers() -> bool:
    """Whether descriptors may be copied from a process of ours."""
    reader, writer = os.pipe()
    try:
        os.write(writer, b"tide")
        return SocketBuffers().of([os.getpid()]) >= len(b"tide")
    finally:
        os.close(reader)
        os.close(writer)


def _descriptors(pid: int) -> int:
    try:
        # Since Linux 6.2 the directory's size is their number.
        return os.stat(f"/proc/{pid}/fd").st_size or len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH116, PTH208
    except OSError:
        return 0
