"""What one process uses, read from /proc through descriptors that are kept open.

Covers: its sizes, its children, and whether it was forked from another. Does not cover: adding up a tree
(memory.measure.tree).
"""

from __future__ import annotations

import os
from typing import NamedTuple

from headrace.memory.measure.os_limits import contents

_FIELDS = (b"\nVmData:", b"\nRssAnon:", b"\nRssShmem:", b"\nThreads:")
_FAULTS, _START_OF_STACK = 7, 25  # of /proc/PID/stat, counted from behind the name
_READ_ANYWAY = 16  # sizes that stay the same are one short read; being stopped does not show in them


class Sample(NamedTuple):
    """Of one process. `data_bytes` is what RLIMIT_DATA counts."""

    anonymous_bytes: int
    shared_bytes: int
    data_bytes: int
    threads: int
    is_stopped: bool

    @property
    def used_bytes(self) -> int:
        return self.anonymous_bytes + self.shared_bytes


class Process:
    """Kept descriptors name this very process: after its end it reads as gone, even if its number is in use again."""

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
        """None once it has ended, also as a zombie: that holds no memory."""
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
        """Private memory taken since it was first seen: nobody shares it but children that were forked later."""
        if self.sample is None or self.first is None:
            return 0
        return max(0, self.sample.anonymous_bytes - self.first.anonymous_bytes)

    def has_no_children(self) -> bool:
        """Of its first thread."""
        try:
            return not os.pread(self._children, 8, 0)
        except OSError:
            return True

    def children(self, threads: int) -> list[int]:
        """Bounded by the processes it has started."""
        try:
            found = os.pread(self._children, 1 << 16, 0).split()
            others = os.listdir(f"/proc/{self.pid}/task") if threads > 1 else ()  # noqa: PTH208 - names are enough
        except OSError:
            return []
        for thread in others:
            if thread != str(self.pid):
                found += contents(f"/proc/{self.pid}/task/{thread}/children", 1 << 16).split()
        return [int(pid) for pid in found]

    def origin(self) -> tuple[bytes, int]:
        """Where its stack starts, and how often it has touched a page anew since it was forked. The first is the same
        for a fork, another after exec: only forks share private memory.
        """
        fields = contents(f"/proc/{self.pid}/stat").rpartition(b")")[2].split()
        return (fields[_START_OF_STACK], int(fields[_FAULTS])) if len(fields) > _START_OF_STACK else (b"", 0)

    def proportional_bytes(self) -> int:
        """Its private memory, and its part of what it shares: right, and 20 us per MB."""
        told = contents(f"/proc/{self.pid}/smaps_rollup")
        return (_number(told, b"\nPss_Anon:") + _number(told, b"\nPss_Shmem:")) << 10

    def close(self) -> None:
        for descriptor in self.descriptors():
            os.close(descriptor)

    def descriptors(self) -> tuple[int, int, int]:
        return self._sizes, self._status, self._children


def _opened(*paths: str) -> list[int]:
    """All of them or none."""
    opened: list[int] = []
    try:
        for path in paths:
            opened.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))  # noqa: PERF401 - those before a failure are closed
    except OSError:
        for descriptor in opened:
            os.close(descriptor)
        raise
    return opened


def _sample(told: bytes) -> Sample | None:
    if _FIELDS[0] not in told:
        return None  # a zombie; one that is about to become another program has the line, with 0 kB in it
    data, anonymous, shared, threads = (_number(told, field) for field in _FIELDS)
    state = told[told.find(b"\nState:") + 8 :][:1]
    return Sample(anonymous << 10, shared << 10, data << 10, threads, state == b"T")


def _number(told: bytes, field: bytes) -> int:
    at = told.find(field)
    return int(told[at + len(field) :].split(None, 1)[0]) if at >= 0 else 0
