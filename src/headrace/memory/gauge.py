"""How much memory the process tree uses and may use: the one place where memory is read.

Covers: readings, what the host or container has, and what a written budget means here.
Does not cover: what follows from a reading (memory.governor).
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

from headrace.errors import BudgetTooSmall, spelled
from headrace.limits import MemoryLimits
from headrace.memory.reclaiming import drop_caches
from headrace.units import BudgetKind, format_bytes, parse_budget

_DEFAULT_MOST_BYTES = 512_000_000
_DEFAULT_SHARE = 0.25
_UNLIMITED_BYTES = 1 << 60


def tree_bytes() -> int:
    """Resident memory of this process and all its descendants."""
    if not sys.platform.startswith("linux"):
        return _tree_bytes_by_psutil()
    return _resident_tree_bytes(_tree())


class TreeGauge:
    """The tree as the budget counts it, where processes share memory. `shared_bytes` tells how much of what its members
    report is counted more than once; `correct` finds out what that leaves out, at the price of a few milliseconds.
    `file_bytes` are memory that no process shows: files on tmpfs that ended ones have left.

    `tells_apart`: whether runs have processes of their own, whose executor reads them one by one.
    """

    def __init__(
        self,
        shared_bytes: Callable[[], int] = lambda: 0,
        file_bytes: Callable[[], int] = lambda: 0,
        *,
        tells_apart: bool = False,
    ) -> None:
        self._shared_bytes = shared_bytes
        self._file_bytes = file_bytes
        self.correction_bytes = 0
        self.tells_apart = tells_apart

    def read(self) -> int:
        return max(0, self._quick() + self.correction_bytes) + self._file_bytes()

    def read_without(self, pids: set[int]) -> int:
        """The same without these and their children, and uncorrected: they may come to own what they share now."""
        return _resident_tree_bytes(_tree(pids)) if sys.platform.startswith("linux") else tree_bytes()

    def correct(self) -> None:
        """From any thread; needed only where there are forks."""
        if not self.tells_apart or not sys.platform.startswith("linux"):
            return
        quick, proportional = self._quick(), sum(map(_proportional_bytes, _tree()))
        self.correction_bytes = proportional - quick

    def _quick(self) -> int:
        return tree_bytes() - self._shared_bytes()


def resident_bytes(pid: int) -> int:
    """Of one process; 0 where it has ended."""
    if sys.platform.startswith("linux"):
        return _resident_bytes(pid)
    import psutil  # pyright: ignore[reportMissingModuleSource]  # only where /proc is missing

    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return 0


def memory_limits(written: str | int | None) -> MemoryLimits:
    """The budget in bytes, as far as the host or container allows it; refused where it is exceeded already."""
    used, free = tree_bytes(), available_bytes()
    if written is None:
        return MemoryLimits(budget_bytes=used + int(min(_DEFAULT_MOST_BYTES, free * _DEFAULT_SHARE)))
    budget = parse_budget(written)
    match budget.kind:
        case BudgetKind.TOTAL:
            asked = int(budget.amount)
        case BudgetKind.EXTRA:
            asked = used + int(budget.amount)
        case BudgetKind.SHARE:
            asked = int(total_bytes() * budget.amount)
    if asked <= used:
        raise BudgetTooSmall(
            spelled(
                f"{{memory}} is {format_bytes(asked)}, and the process already uses {format_bytes(used)}.",
                memory=written,
            ),
            budget_bytes=asked,
            used_bytes=used,
            fix=spelled(
                'Give more, write {memory} for that much on top of what is in use, or "none" for the default.',
                memory="+256MB",
            ),
        )
    return MemoryLimits(budget_bytes=min(asked, used + free))


def available_bytes() -> int:
    """What the container or host has left, whichever is less."""
    host = _meminfo().get("MemAvailable", _UNLIMITED_BYTES)
    return max(0, min(host, *(limit - used for limit, used in _container_limits()), _UNLIMITED_BYTES))


def total_bytes() -> int:
    """What the container or host has in all, whichever is less."""
    host = _meminfo().get("MemTotal", _UNLIMITED_BYTES)
    return min(host, *(limit for limit, _ in _container_limits()), _UNLIMITED_BYTES)


def host_bytes() -> tuple[int, int]:
    """What the host has in all, and what of it is free."""
    memory = _meminfo()
    return memory.get("MemTotal", _UNLIMITED_BYTES), memory.get("MemAvailable", _UNLIMITED_BYTES)


def container_bytes() -> tuple[int, int] | None:
    """What the container may use, and what of it is in use; None where it has no limit of its own."""
    return min(_container_limits(), default=None, key=lambda group: group[0] - group[1])


def give_back() -> None:
    """Drop caches, collect garbage and hand free heap back to the system; sure only for large blocks."""
    drop_caches()
    gc.collect()
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)


def _tree(without: set[int] | frozenset[int] = frozenset()) -> list[int]:
    found, waiting = [os.getpid()], [os.getpid()]
    while waiting:
        children = [child for child in _children(waiting.pop()) if child not in without]
        found += children
        waiting += children
    return found


def _proportional_bytes(pid: int) -> int:
    """Memory that several processes map counts in parts."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
    except OSError:
        return 0  # it ended meanwhile
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:")), 0)


def _resident_tree_bytes(pids: list[int]) -> int:
    own = _sizes(os.getpid())[1]
    others = (_sizes(pid) for pid in pids if pid != os.getpid())
    return own + sum(resident for size, resident in others if not _is_own_memory(size, resident))


def _is_own_memory(size: int, resident: int) -> bool:
    """Whether a child shows this process's memory: one about to start a program shares all of it."""
    own_size, own_resident = _sizes(os.getpid())  # now: other threads go on
    return size == own_size and abs(resident - own_resident) < own_resident / 50


def _resident_bytes(pid: int) -> int:
    return _sizes(pid)[1]


def _sizes(pid: int) -> tuple[int, int]:
    """Of address space and of resident memory, in bytes; 0 where the process has ended."""
    try:
        size, resident, *_ = Path(f"/proc/{pid}/statm").read_bytes().split()
    except (OSError, ValueError):
        return 0, 0
    return int(size) * _PAGE_BYTES, int(resident) * _PAGE_BYTES


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_bytes().split())
    except OSError:
        pass  # the process or the thread ended meanwhile
    return found


def _tree_bytes_by_psutil() -> int:
    import psutil  # pyright: ignore[reportMissingModuleSource]  # only where /proc is missing

    me = psutil.Process()
    return sum(process.memory_info().rss for process in (me, *me.children(recursive=True)))


def _meminfo() -> dict[str, int]:
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return _memory_by_psutil()
    return {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}


def _memory_by_psutil() -> dict[str, int]:
    import psutil  # pyright: ignore[reportMissingModuleSource]

    memory = psutil.virtual_memory()
    return {"MemAvailable": memory.available, "MemTotal": memory.total}


def _container_limits() -> list[tuple[int, int]]:
    """(limit, used) of each memory cgroup that has a limit; bounded by the depth of the hierarchy."""
    found: list[tuple[int, int]] = []
    for limit_file, used_file in _cgroup_files():
        try:
            limit, used = int(limit_file.read_text("ascii")), int(used_file.read_text("ascii"))
        except (OSError, ValueError):
            continue  # not there, or "max"
        if limit < _UNLIMITED_BYTES:
            found.append((limit, used - _reclaimable_bytes(limit_file.parent)))
    return found


def _reclaimable_bytes(group: Path) -> int:
    """File cache that a cgroup counts as used and the kernel gives back when asked."""
    try:
        lines = (group / "memory.stat").read_text("ascii").splitlines()
    except OSError:
        return 0
    stat = dict(line.split(" ", 1) for line in lines)
    return int(stat.get("total_inactive_file", stat.get("inactive_file", "0")))


def _cgroup_files() -> list[tuple[Path, Path]]:
    root, v1 = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
    files = [(v1 / "memory.limit_in_bytes", v1 / "memory.usage_in_bytes")]
    try:
        line = Path("/proc/self/cgroup").read_text("ascii").strip().rpartition("\n")[2]
    except OSError:
        return files
    group = root / line.rpartition(":")[2].lstrip("/")
    while group.is_relative_to(root):
        files.append((group / "memory.max", group / "memory.current"))
        if group == root:
            break
        group = group.parent
    return files


_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
