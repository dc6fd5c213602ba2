"""Reads a worker's tree: how much a process and its descendants use, above the memory that the first had when forked.

Covers: walking the tree and adding up plain sizes. Does not cover: sizes of one process (memory.measure.process), what
several share (memory.measure.shared_pages), what follows from a reading (workers.warden.watch).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from headrace.memory.measure.os_limits import ON_LINUX
from headrace.memory.measure.process import Process, Sample
from headrace.memory.measure.shared_pages import SharedPages

_MATTERS = 0.95  # of a limit: below, memory that processes share may be counted twice
_STACK_BYTES = 2 << 20
_MOST_FILLED_BYTES = 14 << 20


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

    @property
    def is_alone(self) -> bool:
        """Whether by the last reading there was one process, with one thread."""
        ...

    def read(self, limit_bytes: int) -> TreeReading: ...
    def pids(self) -> list[int]: ...
    def living(self) -> list[int]: ...
    def descriptors(self) -> list[int]: ...
    def close(self) -> None: ...


def new_tree(root: int, *, has_base: bool) -> Tree:
    if ON_LINUX:
        return ProcessTree(root, has_base=has_base)
    from headrace.memory.measure.portable import PortableTree

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
        self._shared = SharedPages(self._processes[root], self.base_bytes, self._base_anonymous_bytes)
        self._reading = TreeReading(0, 0, 0, 0, False)

    @property
    def is_alone(self) -> bool:
        sample = self._processes[self._root].sample if len(self._processes) == 1 else None
        return sample is not None and sample.threads == 1

    def read(self, limit_bytes: int) -> TreeReading:
        """Read the tree. Memory that processes share is counted once only near the limit, where it matters."""
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
        if not walked:
            return self._reading  # it has ended and is about to be reaped: its last reading says why
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
        """List the processes of the last reading."""
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
