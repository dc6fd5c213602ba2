"""What a process and its descendants use, read from /proc through descriptors that are kept open.

Covers: private and shared memory of a whole tree, above what its root shared when it was forked. Does not
cover: what follows from a reading (execute.warden_watch).
"""

from __future__ import annotations

import os
from typing import NamedTuple, Protocol

from headrace.execute.process_limits import ON_LINUX

_FIELDS = (b"\nVmData:", b"\nRssAnon:", b"\nRssShmem:", b"\nThreads:")
_FAULTS, _START_OF_STACK = 7, 25  # of /proc/PID/stat, counted from behind the name
_MATTERS = 0.95  # of a limit: below, memory that processes share may be counted twice
_STACK_BYTES = 2 << 20
_MOST_FILLED_BYTES = 14 << 20
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
                found += _contents(f"/proc/{self.pid}/task/{thread}/children").split()
        return [int(pid) for pid in found]

    def origin(self) -> tuple[bytes, int]:
        """Where its stack starts, and how often it has touched a page anew since it was forked. The first is the same
        for a fork, another after exec: only forks share private memory.
        """
        fields = _contents(f"/proc/{self.pid}/stat").rpartition(b")")[2].split()
        return (fields[_START_OF_STACK], int(fields[_FAULTS])) if len(fields) > _START_OF_STACK else (b"", 0)

    def proportional_bytes(self) -> int:
        """Its private memory, and its part of what it shares: right, and 20 us per MB."""
        told = _contents(f"/proc/{self.pid}/smaps_rollup")
        return (_number(told, b"\nPss_Anon:") + _number(told, b"\nPss_Shmem:")) << 10

    def close(self) -> None:
        for descriptor in self.descriptors():
            os.close(descriptor)

    def descriptors(self) -> tuple[int, int, int]:
        return self._sizes, self._status, self._children


class TreeReading(NamedTuple):
    """`shared_bytes` are among `used_bytes`; so are `filled_bytes`, which were reserved before the fork and are in use
    since: RLIMIT_DATA lets them be filled beyond the limit.
    """

    used_bytes: int
    shared_bytes: int
    reserved_bytes: int
    filled_bytes: int
    is_stopped: bool

    @property
    def slack_bytes(self) -> int:
        """Above a limit that is no reason to kill yet: the hard limit should be met first, since a MemoryError says
        more. It does not count stacks either.
        """
        return min(self.filled_bytes, _MOST_FILLED_BYTES) + _STACK_BYTES


class Tree(Protocol):
    """`base` is what the root had when it was forked."""

    base_bytes: int
    base_data_bytes: int

    def read(self, limit_bytes: int) -> TreeReading: ...
    def pids(self) -> list[int]: ...
    def living(self) -> list[int]: ...
    def descriptors(self) -> list[int]: ...
    def close(self) -> None: ...


def new_tree(root: int, *, has_base: bool) -> Tree:
    if ON_LINUX:
        return ProcessTree(root, has_base=has_base)
    from headrace.execute.portable_tree import PortableTree

    return PortableTree(root)


class ProcessTree:
    """`base` is what the root had when it was forked, shared with the warden."""

    def __init__(self, root: int, *, has_base: bool) -> None:
        self._root = root
        self._processes = {root: Process(root)}
        first = self._processes[root].read()
        self.base_bytes = first.used_bytes if has_base and first is not None else 0
        self.base_data_bytes = first.data_bytes if has_base and first is not None else 0
        self._base_anonymous_bytes = first.anonymous_bytes if has_base and first is not None else 0
        from headrace.execute.shared_pages import SharedPages

        self._shared = SharedPages(self._processes[root], self.base_bytes, self._base_anonymous_bytes)
        self._reading = TreeReading(0, 0, 0, 0, False)

    def read(self, limit_bytes: int) -> TreeReading:
        """What processes share is counted once only where it matters: near the limit."""
        if len(self._processes) == 1 and self._is_as_before():
            return self._reading
        self._reading = self._read(limit_bytes)
        return self._reading

    def _is_as_before(self) -> bool:
        """The short way for a process that waits: most of the warden's looks."""
        root = self._processes[self._root]
        before, now = root.sample, root.read()
        return now is not None and now is before and now.threads == 1 and root.has_no_children()

    def _read(self, limit_bytes: int) -> TreeReading:
        used = shared = reserved = filled = 0
        is_stopped = False
        walked = self._walk()
        for process, sample in walked:
            shared += sample.shared_bytes
            if process.pid != self._root:
                used += sample.used_bytes
            else:
                used += max(0, sample.used_bytes - self.base_bytes)
                reserved = max(0, sample.data_bytes - self.base_data_bytes)
                filled = max(0, sample.anonymous_bytes - self._base_anonymous_bytes - reserved)
                is_stopped = sample.is_stopped
        reading = TreeReading(used, shared, reserved, filled, is_stopped)
        if len(walked) == 1:
            return reading
        enough, too_much = int(limit_bytes * _MATTERS), limit_bytes + reading.slack_bytes
        return reading._replace(used_bytes=self._shared.counted_once(used, walked, enough, too_much))

    def pids(self) -> list[int]:
        """Of the last reading."""
        return list(self._processes)

    def living(self) -> list[int]:
        return [process.pid for process, _ in self._walk()]

    def descriptors(self) -> list[int]:
        return [descriptor for process in self._processes.values() for descriptor in process.descriptors()]

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
    data, anonymous, shared, threads = (_number(told, field) for field in _FIELDS)
    if not data:
        return None
    state = told[told.find(b"\nState:") + 8 :][:1]
    return Sample(anonymous << 10, shared << 10, data << 10, threads, state == b"T")


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
