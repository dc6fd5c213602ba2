"""Memory that is a file: memfds, and files on tmpfs such as /dev/shm. No limit on a process counts it.

Covers: whose it is. An open file is its holder's. What was written and closed leaves no trace of its writer, so growth
of a tmpfs is charged to the trees that wrote most meanwhile, and to none more than it can have written: others on this
host write there too. Looks closely only when the host's shared memory has moved.
Does not cover: shared memory that is mapped, which every process shows (execute.process_tree).
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable

from headrace.execute.warden_watch import Watch

_MOVED_BYTES = 1 << 20
_MEMFD = "/memfd:"
_BLOCK_BYTES = 512  # what st_blocks counts in, everywhere
_FAULTS = slice(7, 9)  # of /proc/PID/stat, counted from behind the name: its own, its children's
_SHARED_AT = 6  # of struct sysinfo, in words: uptime, three loads, all and free memory come before


class SharedFiles:
    def __init__(self) -> None:
        self._places = tuple(_tmpfs_mounts())
        # One file system may be mounted in several places, or twice in one; its bytes are there once.
        self._mounts = {os.stat(place).st_dev: place for place in self._places}  # noqa: PTH116
        self._library = ctypes.CDLL(None)
        self._told = (ctypes.c_ulong * 32)()
        self._seen_bytes = self._host_bytes()
        self._closed_bytes = self._mounted_bytes()
        self._written: dict[int, int] = {}

    def charge(self, watches: Iterable[Watch]) -> None:
        """Bring every watch's `held_bytes` and `left_bytes` up to date, if anything has moved."""
        now = self._host_bytes()
        if abs(now - self._seen_bytes) < _MOVED_BYTES:
            return
        self._seen_bytes = now
        everyone = list(watches)
        open_bytes = 0
        for watch in everyone:
            memfds, files = self._held(watch.tree.pids())
            watch.held_bytes = memfds + files
            open_bytes += files
        closed = self._mounted_bytes() - open_bytes
        self._charge_closed(everyone, closed - self._closed_bytes)
        self._closed_bytes = closed

    def _charge_closed(self, watches: list[Watch], grown_bytes: int) -> None:
        written = {watch.pid: sum(map(_written_by, watch.tree.pids())) for watch in watches}
        if watches and grown_bytes > 0:
            meanwhile = {watch.pid: written[watch.pid] - self._written.get(watch.pid, 0) for watch in watches}
            for watch in sorted(watches, key=lambda watch: -meanwhile[watch.pid]):
                charged = min(grown_bytes, max(0, meanwhile[watch.pid]))
                watch.left_bytes += charged
                grown_bytes -= charged
        elif watches:
            owner = max(watches, key=lambda watch: watch.left_bytes)
            owner.left_bytes = max(0, owner.left_bytes + grown_bytes)
        self._written = written

    def _held(self, pids: list[int]) -> tuple[int, int]:
        """Bytes in memfds and in files on tmpfs that these processes have open, each counted once."""
        memfds: dict[tuple[int, int], int] = {}
        files: dict[tuple[int, int], int] = {}
        for pid in pids:
            for path, target in _open_files(pid):
                kept = memfds if target.startswith(_MEMFD) else files if target.startswith(self._places) else None
                if kept is not None:
                    _count(path, kept)
        return sum(memfds.values()), sum(files.values())

    def _mounted_bytes(self) -> int:
        total = 0
        for mount in self._mounts.values():
            try:
                told = os.statvfs(mount)
            except OSError:
                continue  # unmounted meanwhile
            total += (told.f_blocks - told.f_bfree) * told.f_frsize
        return total

    def _host_bytes(self) -> int:
        """All shared memory of the host; about a microsecond."""
        self._library.sysinfo(self._told)
        return self._told[_SHARED_AT]


def _tmpfs_mounts() -> list[str]:
    """Each with a slash at its end; those that a worker could write to."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:  # noqa: PTH123 - pathlib is more than this needs
        fields = [line.split() for line in mounts]
    return [f"{where}/" for _, where, kind, *_ in fields if kind == "tmpfs" and os.access(where, os.W_OK)]


def _open_files(pid: int) -> list[tuple[str, str]]:
    """(path in /proc, what it leads to) of each; bounded by its limit on open files."""
    found: list[tuple[str, str]] = []
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            path = f"/proc/{pid}/fd/{number}"
            found.append((path, os.readlink(path)))  # noqa: PTH115 - a hundred times a second
    except OSError:
        pass  # the file was closed, or the process ended, meanwhile: the next look is soon
    return found


def _count(path: str, kept: dict[tuple[int, int], int]) -> None:
    try:
        told = os.stat(path)  # noqa: PTH116
    except OSError:
        return
    kept[told.st_dev, told.st_ino] = told.st_blocks * _BLOCK_BYTES


def _written_by(pid: int) -> int:
    """The most it can have written to files, with children that it has waited for: by asking the system to, or page by
    page to those it had mapped.
    """
    try:
        with open(f"/proc/{pid}/io", "rb", buffering=0) as told:  # noqa: PTH123
            asked = int(told.read(512).split()[3])  # rchar: N wchar: N
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as told:  # noqa: PTH123
            faults = sum(map(int, told.read(1024).rpartition(b")")[2].split()[_FAULTS]))
    except (OSError, IndexError):
        return 0
    return asked + faults * mmap.PAGESIZE
