"""Reads process trees and the host's memory where there is no /proc: through psutil, by resident memory.

Covers: macOS, where workers are started from nothing and share nothing with the warden. Slower than measure.tree, and
blind to files in memory. Does not cover: orphans that left their worker's tree before they were seen.
"""

from __future__ import annotations

from contextlib import suppress

from headrace.memory.measure.tree import TreeReading


class PortableTree:
    base_bytes = 0
    base_data_bytes = 0

    def __init__(self, root: int) -> None:
        import psutil  # pyright: ignore[reportMissingModuleSource]

        self._gone = psutil.Error
        try:
            self._root = psutil.Process(root)
        except psutil.Error as error:
            raise ProcessLookupError(root) from error
        self._known = {root: self._root}

    @property
    def is_alone(self) -> bool:
        return False  # workers are started anew here, and do not share their counters

    def read(self, limit_bytes: int) -> TreeReading:
        """`limit_bytes` is nothing to this one: it has no closer way to look."""
        used, is_stopped = 0, False
        for pid in self.living():
            with suppress(self._gone):
                used += self._known[pid].memory_info().rss
        with suppress(self._gone):
            is_stopped = self._root.status() == "stopped"
        return TreeReading(used, 0, 0, 0, is_stopped)

    def pids(self) -> list[int]:
        return list(self._known)

    def living(self) -> list[int]:
        """List the tree's processes; one seen before stays in it, as it may have left its parents."""
        with suppress(self._gone):
            self._known |= {child.pid: child for child in self._root.children(recursive=True)}
        self._known = {pid: process for pid, process in self._known.items() if process.is_running()}
        return list(self._known)

    def descriptors(self) -> list[int]:
        return []

    def close(self) -> None:
        self._known.clear()


def portable_tree_bytes() -> int:
    """Resident memory of this process and all its descendants."""
    import psutil  # pyright: ignore[reportMissingModuleSource]

    me = psutil.Process()
    return sum(process.memory_info().rss for process in (me, *me.children(recursive=True)))


def portable_resident_bytes(pid: int) -> int:
    """Resident memory of one process; 0 where it has ended."""
    import psutil  # pyright: ignore[reportMissingModuleSource]

    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return 0


def portable_host_bytes() -> tuple[int, int]:
    """Read how much the host has in all, and how much is free."""
    import psutil  # pyright: ignore[reportMissingModuleSource]

    memory = psutil.virtual_memory()
    return memory.total, memory.available
