"""Counts memory that the processes of one tree share once.

Covers: forks, which share private memory until they write to it, and shared mappings. Exact sizes are slow to read, and
wait for a process that is just mapping memory, tens of milliseconds on a busy host; bounds cost a few microseconds. So
the exact ones are read where the bounds leave it open, and now and then. Does not cover: plain sizes
(memory.measure.tree), memory in files (memory.measure.shared_files).
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from headrace.memory.measure.process import Process, Sample

_SHARES_BYTES = 1 << 20
_EXACT_EVERY_S = 1.0


class SharedPages:
    """`base_bytes` is taken off the plain sum already, `base_anonymous_bytes` the private part of it."""

    def __init__(self, root: Process, base_bytes: int, base_anonymous_bytes: int) -> None:
        self._root = root
        self._base_bytes = base_bytes
        self._base_anonymous_bytes = base_anonymous_bytes
        self._last = Sample(0, 0, 0, 0, is_stopped=False)
        self._layout = b""
        self._exact_bytes = 0
        self._most_bytes = 0
        self._exact_until = 0.0

    def counted_once(
        self, used_bytes: int, walked: Sequence[tuple[Process, Sample]], enough_bytes: int, too_much_bytes: int
    ) -> int:
        """The bytes in use, where plain sizes add up to `used_bytes`; up to `enough_bytes` that sum is exact enough."""
        if used_bytes <= enough_bytes:
            return used_bytes
        least, most = self._bounds(walked)
        if least > too_much_bytes:
            return least
        guess = min(most, self._exact_bytes + max(0, most - self._most_bytes))
        if guess > too_much_bytes or time.monotonic() > self._exact_until:
            with _stopped([process.pid for process, sample in walked if not sample.is_stopped]):
                guess = self._exact_bytes = max(least, used_bytes - self._counted_twice(walked))
            self._most_bytes = most
            self._exact_until = time.monotonic() + _EXACT_EVERY_S
        return guess

    def _bounds(self, walked: Sequence[tuple[Process, Sample]]) -> tuple[int, int]:
        """Bound what the tree uses, by sizes read anew. A fork owns what it took since it was seen, and no more pages
        than it had faults.
        """
        if (now := self._root.read()) is not None:
            self._last, self._layout = now, self._root.origin()[0]  # kept: its forks may outlive it for a moment
        inherited = self._last.anonymous_bytes
        least = most = max(0, inherited - self._base_anonymous_bytes)
        shared = [self._last.shared_bytes]
        for process, _ in walked:
            if process is self._root or (sample := process.read()) is None:
                continue
            own, grown = sample.anonymous_bytes, process.grown_bytes()
            its_layout, faults = process.origin()
            is_fork = its_layout == self._layout
            least += grown
            most += min(own, max(grown, own - inherited, faults * mmap.PAGESIZE)) if is_fork else own
            shared.append(sample.shared_bytes)
        return least + max(shared), most + sum(shared)

    def _counted_twice(self, walked: Sequence[tuple[Process, Sample]]) -> int:
        layouts = [process.origin()[0] for process, _ in walked]
        twice = 0
        for (process, sample), layout in zip(walked, layouts, strict=True):
            if layouts.count(layout) > 1 or sample.shared_bytes > _SHARES_BYTES:
                twice += max(0, sample.used_bytes - process.proportional_bytes())
        forks = layouts.count(self._layout)
        # They have the base in common with the warden, too; the plain sum has it off once already.
        return max(0, twice - (self._base_bytes // (forks + 1) if forks > 1 else 0))


@contextmanager
def _stopped(pids: Sequence[int]) -> Generator[None]:
    """While they are measured, which takes a while, they cannot take more."""
    for pid in pids:
        _signal(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: int) -> None:
    with suppress(OSError):
        os.kill(pid, number)
