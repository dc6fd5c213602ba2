"""What a process and its descendants use, read from /proc through descriptors that are kept open.

Covers: private and shared memory of a whole tree, above what its root shared when it was forked. Does not
cover: what follows from a reading (execute.warden_watch).
"""

from __future__ import annotations

import os
from typing import NamedTuple

_FIELDS = (b"\nVmData:", b"\nRssAnon:", b"\nRssShmem:", b"\nThreads:")


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
    """The kept descriptor names this very process: after its end it reads as gone, even if its number is in use."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status = os.open(f"/proc/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> Sample | None:
        """None once it has ended, also as a zombie: that holds no memory."""
        try:
            told = os.pread(self._status, 4096, 0)
        except ProcessLookupError:
            return None
        data, anonymous, shared, threads = (_number(told, field) for field in _FIELDS)
        if not data:
            return None
        state = told[told.find(b"\nState:") + 8 :][:1]
        return Sample(anonymous << 10, shared << 10, data << 10, threads, state == b"T")

    def children(self, threads: int) -> list[int]:
        """Bounded by the processes it has started."""
        try:
            listed = os.listdir(f"/proc/{self.pid}/task") if threads > 1 else (str(self.pid),)
        except OSError:
            return []
        found: list[int] = []
        for thread in listed:
            found += map(int, _contents(f"/proc/{self.pid}/task/{thread}/children").split())
        return found

    def proportional_bytes(self) -> int:
        """Its private memory, and its part of what it shares: right, and 20 us per MB."""
        told = _contents(f"/proc/{self.pid}/smaps_rollup")
        return (_number(told, b"\nPss_Anon:") + _number(told, b"\nPss_Shmem:")) << 10

    def close(self) -> None:
        os.close(self._status)

    @property
    def descriptor(self) -> int:
        return self._status


class TreeReading(NamedTuple):
    """`shared_bytes` are among `used_bytes`."""

    used_bytes: int
    shared_bytes: int
    reserved_bytes: int
    is_stopped: bool


class ProcessTree:
    """`base` is what the root had when it was forked, shared with the warden."""

    def __init__(self, root: int, *, has_base: bool) -> None:
        self._root = root
        self._processes = {root: Process(root)}
        first = self._processes[root].read()
        self.base_bytes = first.used_bytes if has_base and first is not None else 0
        self.base_data_bytes = first.data_bytes if has_base and first is not None else 0
        # Reserved before the fork and not yet used: RLIMIT_DATA lets it be filled beyond the limit.
        self.unused_bytes = max(0, self.base_data_bytes - first.anonymous_bytes) if has_base and first else 0
        self._counted_twice_bytes = 0
        self._corrected_at_bytes = 0

    def read(self, enough_bytes: int) -> TreeReading:
        """What processes share is counted once only where it matters: above `enough_bytes`."""
        used = shared = reserved = 0
        is_stopped = False
        for process, sample in self._walk():
            used += sample.used_bytes
            shared += sample.shared_bytes
            if process.pid == self._root:
                used -= min(used, self.base_bytes)
                reserved = max(0, sample.data_bytes - self.base_data_bytes)
                is_stopped = sample.is_stopped
        if len(self._processes) > 1 and used - self._counted_twice_bytes > enough_bytes:
            self._correct(used, step_bytes=enough_bytes >> 5)
        return TreeReading(max(0, used - self._counted_twice_bytes), shared, reserved, is_stopped)

    def pids(self) -> list[int]:
        """Of the last reading."""
        return list(self._processes)

    def living(self) -> list[int]:
        return [process.pid for process, _ in self._walk()]

    def descriptors(self) -> list[int]:
        return [process.descriptor for process in self._processes.values()]

    def close(self) -> None:
        for process in self._processes.values():
            process.close()
        self._processes.clear()

    def _walk(self) -> list[tuple[Process, Sample]]:
        """Every living process of the tree, newly found ones included."""
        found: list[tuple[Process, Sample]] = []
        waiting = list(self._processes)
        while waiting:
            pid = waiting.pop()
            process = self._processes.get(pid)
            sample = process.read() if process is not None else None
            if process is None or sample is None:
                continue
            found.append((process, sample))
            waiting += [child for child in process.children(sample.threads) if self._is_new(child)]
        self._forget_all_but({process.pid for process, _ in found})
        return found

    def _is_new(self, pid: int) -> bool:
        if pid in self._processes:
            return False
        try:
            self._processes[pid] = Process(pid)
        except OSError:
            return False  # it ended meanwhile
        return True

    def _forget_all_but(self, living: set[int]) -> None:
        for pid in [pid for pid in self._processes if pid not in living and pid != self._root]:
            self._processes.pop(pid).close()

    def _correct(self, used_bytes: int, step_bytes: int) -> None:
        """Reading proportional sizes is slow: again only when the plain sum has moved."""
        if abs(used_bytes - self._corrected_at_bytes) <= step_bytes:
            return
        true_bytes = sum(process.proportional_bytes() for process in self._processes.values())
        self._counted_twice_bytes = max(0, used_bytes - true_bytes)
        self._corrected_at_bytes = used_bytes


def _number(told: bytes, field: bytes) -> int:
    at = told.find(field)
    return int(told[at + len(field) :].split(None, 1)[0]) if at >= 0 else 0


def _contents(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
