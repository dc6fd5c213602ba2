"""Reads what one process uses from /proc. Covers: its sizes and its children, by id or through kept descriptors, and
whether it was forked from another.

Without pathlib and large buffers: a new worker would have to touch the one, and one at its limit may not get the other.
Does not cover: adding up a tree (measure.own_tree for this process's, measure.tree for a worker's).
"""

from __future__ import annotations

import os
from typing import NamedTuple

_FIELDS = (b"\nVmData:", b"\nRssAnon:", b"\nRssShmem:", b"\nThreads:")
_FAULTS, _START_OF_STACK = 7, 25  # of /proc/PID/stat, counted from behind the name
_READ_ANYWAY = 16  # sizes that stay the same are one short read; being stopped does not show in them
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def contents(path: str, most_bytes: int = 4096) -> bytes:
    """The beginning of a small file; empty where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, most_bytes)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def sizes_of(pid: int) -> tuple[int, int]:
    """Bytes of a process's address space and of its resident memory; 0 where it has ended."""
    fields = contents(f"/proc/{pid}/statm").split()
    return (int(fields[0]) * _PAGE_BYTES, int(fields[1]) * _PAGE_BYTES) if fields else (0, 0)


def proportional_bytes_of(pid: int) -> int:
    """Resident memory of a process, a page that n processes map counting 1/n (PSS): 20 us for each megabyte."""
    return _number(contents(f"/proc/{pid}/smaps_rollup"), b"\nPss:") << 10


def children_of(pid: int) -> list[int]:
    """Process ids of the children of all its threads; bounded by the processes it has started."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names are enough
            found += map(int, _listed(f"/proc/{pid}/task/{thread}/children"))
    except OSError:
        pass  # the process or the thread ended meanwhile
    return found


def own_data_bytes() -> tuple[int, int]:
    """Read the most that was ever resident of this process, and what RLIMIT_DATA counts now."""
    status = contents("/proc/self/status")
    return _number(status, b"\nVmHWM:") << 10, _number(status, b"\nVmData:") << 10


def own_resident_bytes() -> int:
    """Resident memory of this process; 0 where there is no /proc."""
    return sizes_of(os.getpid())[1]


class Sample(NamedTuple):
    """Sizes of one process. `data_bytes` is what RLIMIT_DATA counts."""

    anonymous_bytes: int
    shared_bytes: int
    data_bytes: int
    threads: int
    is_stopped: bool

    @property
    def used_bytes(self) -> int:
        return self.anonymous_bytes + self.shared_bytes


class Process:
    """A process read through kept descriptors, which name this very one: after its end it reads as gone, even if its
    number is in use again.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._sizes, self._status, self._children = _opened(
            f"/proc/{pid}/statm", f"/proc/{pid}/status", f"/proc/{pid}/task/{pid}/children"
        )
        self._seen = b""
        self._reads = 0
        self.sample: Sample | None = None
        self.first: Sample | None = None

    def read(self) -> Sample | None:
        """Read the sizes of the process; None once it has ended, also as a zombie, which holds no memory."""
        try:
            sizes = os.pread(self._sizes, 128, 0)
            self._reads += 1
            if sizes != self._seen or not self._reads % _READ_ANYWAY:
                self._seen = sizes
                self.sample = _sample(os.pread(self._status, 4096, 0))
                self.first = self.first or self.sample
        except ProcessLookupError:
            return None
        return self.sample

    def grown_bytes(self) -> int:
        """Private memory taken since it was first seen, which only children that were forked later share."""
        if self.sample is None or self.first is None:
            return 0
        return max(0, self.sample.anonymous_bytes - self.first.anonymous_bytes)

    def has_no_children(self) -> bool:
        """Whether its first thread has none."""
        try:
            return not os.pread(self._children, 8, 0)
        except OSError:
            return True

    def children(self, threads: int) -> list[int]:
        """Bounded by the processes it has started."""
        if threads > 1:
            return children_of(self.pid)
        try:
            return [int(pid) for pid in os.pread(self._children, 1 << 16, 0).split()]
        except OSError:
            return []

    def origin(self) -> tuple[bytes, int]:
        """Where its stack starts, and how often it has touched a page anew since it was forked. The first is the same
        for a fork, another after exec: only forks share private memory.
        """
        fields = contents(f"/proc/{self.pid}/stat").rpartition(b")")[2].split()
        return (fields[_START_OF_STACK], int(fields[_FAULTS])) if len(fields) > _START_OF_STACK else (b"", 0)

    def proportional_bytes(self) -> int:
        """Its private memory, and its part of shared memory, without the files it maps: exact, and 20 us per MB."""
        rollup = contents(f"/proc/{self.pid}/smaps_rollup")
        return (_number(rollup, b"\nPss_Anon:") + _number(rollup, b"\nPss_Shmem:")) << 10

    def close(self) -> None:
        for descriptor in self.descriptors():
            os.close(descriptor)

    def descriptors(self) -> tuple[int, int, int]:
        return self._sizes, self._status, self._children


def _opened(*paths: str) -> list[int]:
    """Descriptors of all of them, or of none."""
    opened: list[int] = []
    try:
        for path in paths:
            opened.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))  # noqa: PERF401 - those before a failure are closed
    except OSError:
        for descriptor in opened:
            os.close(descriptor)
        raise
    return opened


def _listed(path: str) -> list[bytes]:
    """The words of a whole file: the kernel lists children a page at a time."""
    descriptor, read = os.open(path, os.O_RDONLY | os.O_CLOEXEC), b""
    try:
        while part := os.read(descriptor, 4096):
            read += part
    finally:
        os.close(descriptor)
    return read.split()


def _sample(status: bytes) -> Sample | None:
    if _FIELDS[0] not in status:
        return None  # a zombie; one that is about to become another program has the line, with 0 kB in it
    data, anonymous, shared, threads = (_number(status, field) for field in _FIELDS)
    state = status[status.find(b"\nState:") + 8 :][:1]
    return Sample(anonymous << 10, shared << 10, data << 10, threads, state == b"T")


def _number(text: bytes, field: bytes) -> int:
    at = text.find(field)
    return int(text[at + len(field) :].split(None, 1)[0]) if at >= 0 else 0
