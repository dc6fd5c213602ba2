"""A delegated cgroup v2 with the memory controller, where there is one: the kernel's own limit on a worker's tree.

Covers: finding a group that this user may divide, a leaf for each worker, its limit, and whether it met it. Used beside
RLIMIT_DATA and the watchdog, never instead. Does not cover: cgroup v1, and making a group delegated (systemd's
`Delegate=yes`, or a container that owns its groups).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class MemoryGroups:
    """Leaves below `parent`, one for each worker; every one is removed when its worker has ended."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent

    @classmethod
    def found(
        cls, mounts: Path = Path("/proc/self/mounts"), own: Path = Path("/proc/self/cgroup")
    ) -> MemoryGroups | None:
        """None where there is no group that can be divided."""
        for parent in _candidates(mounts, own):
            if _can_be_divided(parent):
                return cls(parent)
        return None

    def enclose(self, worker: int, pid: int, limit_bytes: int) -> bool:
        leaf = self._leaf(worker)
        try:
            leaf.mkdir()
            (leaf / "memory.oom.group").write_text("1")
            (leaf / "memory.max").write_text(str(limit_bytes))
            (leaf / "cgroup.procs").write_text(str(pid))
        except OSError:
            self.remove(worker)
            return False
        return True

    def set_limit(self, worker: int, limit_bytes: int) -> bool:
        try:
            (self._leaf(worker) / "memory.max").write_text(str(limit_bytes))
        except OSError:
            return False  # the group was taken away; the other layers hold
        return True

    def met_its_limit(self, worker: int) -> bool:
        try:
            told = (self._leaf(worker) / "memory.events").read_text("ascii")
        except OSError:
            return False
        counts = dict(line.split() for line in told.splitlines())
        return int(counts.get("oom_kill", "0")) > 0

    def remove(self, worker: int) -> None:
        with suppress(OSError):
            self._leaf(worker).rmdir()

    def _leaf(self, worker: int) -> Path:
        return self._parent / f"headrace-{os.getpid()}-{worker}"


def _candidates(mounts: Path, own: Path) -> list[Path]:
    """This process's own group and the one above: a group with processes in it cannot be divided, its parent may."""
    try:
        mounted = [line.split()[1] for line in mounts.read_text().splitlines() if line.split()[2:3] == ["cgroup2"]]
        unified = [line[3:].lstrip("/") for line in own.read_text().splitlines() if line.startswith("0::")]
    except OSError:
        return []
    if not mounted or not unified:
        return []
    root = Path(mounted[0])
    group = root / unified[0]
    return [group] if group == root else [group, group.parent]


def _can_be_divided(group: Path) -> bool:
    try:
        controllers = (group / "cgroup.subtree_control").read_text("ascii").split()
    except OSError:
        return False
    return "memory" in controllers and os.access(group, os.W_OK) and os.access(group / "cgroup.procs", os.W_OK)
