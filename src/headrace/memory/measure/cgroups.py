"""A delegated cgroup v2 with the memory controller, where there is one: the kernel's own limit on a worker's tree.

Covers: finding a group that this user may divide, a leaf for each worker, its limit, and whether it met it. Used beside
RLIMIT_DATA and the watchdog, never instead. Does not cover: cgroup v1, and making a group delegated (systemd's
`Delegate=yes`, or a container that owns its groups).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_MOUNTS, _OWN_GROUP = Path("/proc/self/mounts"), Path("/proc/self/cgroup")


class MemoryGroups:
    """Leaves below `parent`, one for each worker; every one is removed when its worker has ended."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._leaves: dict[int, Path] = {}  # of living workers
        self._ending: set[Path] = set()  # with processes in them that are being killed

    @classmethod
    def found(cls, mounts: Path = _MOUNTS, own: Path = _OWN_GROUP) -> MemoryGroups | None:
        """None where there is no group that can be divided."""
        # A group with processes in it cannot be divided; its parent may.
        for parent in own_groups(mounts, own)[:2]:
            if _can_be_divided(parent):
                return cls(parent)
        return None

    def make(self, worker: int, limit_bytes: int) -> Path | None:
        """A leaf for a worker to `join`; None where it cannot be made."""
        self.all_removed()
        leaf = self._parent / f"headrace-{os.getpid()}-{worker}"
        try:
            leaf.mkdir()
        except OSError:
            return None
        self._leaves[worker] = leaf
        try:
            (leaf / "memory.oom.group").write_text("1")
            (leaf / "memory.max").write_text(str(limit_bytes))
        except OSError:
            self.remove(worker)
            return None
        with suppress(OSError):  # a kernel without swap has no such file; what is swapped out would not be counted
            (leaf / "memory.swap.max").write_text("0")
        return leaf

    def set_limit(self, worker: int, limit_bytes: int) -> None:
        leaf = self._leaves.get(worker)
        if leaf is not None:
            with suppress(OSError):  # the group was taken away; the other layers hold
                (leaf / "memory.max").write_text(str(limit_bytes))

    def met_its_limit(self, worker: int) -> bool:
        leaf = self._leaves.get(worker)
        try:
            events = "" if leaf is None else (leaf / "memory.events").read_text("ascii")
        except OSError:
            return False
        counts = dict(line.split() for line in events.splitlines())
        return int(counts.get("oom_kill", "0")) > 0

    def remove(self, worker: int) -> None:
        """Kill every process that is still in the leaf, also one that has left its worker's process group."""
        leaf = self._leaves.pop(worker, None)
        if leaf is not None:
            with suppress(OSError):  # kernels before 5.14 cannot; the watchdog ends the others
                (leaf / "cgroup.kill").write_text("1")
            self._ending.add(leaf)
            self.all_removed()

    def all_removed(self) -> bool:
        """Whether nothing is left of those that have ended; tries again where something was."""
        for leaf in list(self._ending):
            try:
                leaf.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                continue  # its processes need a moment to end
            self._ending.discard(leaf)
        return not self._ending

    def sweep(self) -> None:
        """Remove what wardens left that were killed. A group with a living process in it cannot be removed."""
        for leaf in self._parent.glob("headrace-*-*"):
            if not _is_alive(leaf.name.split("-")[1]):
                with suppress(OSError):
                    leaf.rmdir()


def join(leaf: Path) -> None:
    """Move this process there. In the child: the kernel may take tens of milliseconds, and the warden has none."""
    with suppress(OSError):  # the other layers hold
        (leaf / "cgroup.procs").write_text("0")


def _is_alive(pid: str) -> bool:
    return Path("/proc", pid).exists()


def own_groups(mounts: Path = _MOUNTS, own: Path = _OWN_GROUP) -> list[Path]:
    """The cgroups v2 that this process is in, innermost first up to the mount; none where v2 is not mounted."""
    try:
        mounted = [line.split()[1] for line in mounts.read_text().splitlines() if line.split()[2:3] == ["cgroup2"]]
        unified = [line[3:].lstrip("/") for line in own.read_text().splitlines() if line.startswith("0::")]
    except OSError:
        return []
    if not mounted or not unified:
        return []
    root = Path(mounted[0])
    group = root / unified[0]
    return [each for each in (group, *group.parents) if each.is_relative_to(root)]


def _can_be_divided(group: Path) -> bool:
    try:
        controllers = (group / "cgroup.subtree_control").read_text("ascii").split()
    except OSError:
        return False
    return "memory" in controllers and os.access(group, os.W_OK) and os.access(group / "cgroup.procs", os.W_OK)
