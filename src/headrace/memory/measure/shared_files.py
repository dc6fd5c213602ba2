"""Charges trees with memory that is a file: memfds, and files on tmpfs such as /dev/shm. No limit on a process
counts it.

An open file is charged to the tree that has it open. A file that was written and closed shows no writer, so growth
of a tmpfs is charged to the trees that can have caused most of it, and to none more than that: other processes of the
host write there, too. What a tree that has ended leaves stays, and counts until it is removed. Looks closely only when
the host's shared memory has moved. Does not cover: shared memory that is mapped, which
every process shows (memory.measure.tree).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TypeAlias

from headrace.memory.measure.hidden_shared_memory import HiddenSharedMemory, Inodes
from headrace.memory.measure.measured_tree import MeasuredTree
from headrace.memory.measure.process import contents

Sizes: TypeAlias = dict[tuple[int, int], int]  # by device and inode

_MOVED_BYTES = 1 << 20
_REMEMBER_EVERY = 64  # looks: what was written long ago, to any file, explains nothing
_MEMFD = "/memfd:"
_BLOCK_BYTES = 512  # what st_blocks counts in, everywhere
_SHARED_AT = 6  # of struct sysinfo, in words: uptime, three loads, all and free memory come before


class SharedFiles:
    """`abandoned_bytes` are in files on tmpfs whose writers have ended."""

    def __init__(self) -> None:
        self.abandoned_bytes = 0
        self._mount_points = tuple(tmpfs_mounts())
        # One file system may be mounted at several points, or twice at one; its bytes are there once.
        self._mounts = {os.stat(point).st_dev: point for point in self._mount_points}  # noqa: PTH116
        self._library = ctypes.CDLL(None)
        self._sysinfo = (ctypes.c_ulong * 32)()
        self._seen_bytes = self._host_bytes()
        self._closed_bytes = self._mounted_bytes()
        self._written: dict[int, int] = {}
        self._open: dict[int, int] = {}  # bytes of files on tmpfs, by the root that has them open
        self._looks = 0
        self._mapped: dict[int, int] = {}  # by root
        self._hidden = HiddenSharedMemory(self._seen_bytes - self._closed_bytes)

    def charge(self, watches: Iterable[MeasuredTree]) -> None:
        """Bring every tree's `held_bytes` and `left_bytes` up to date, if the host's shared memory has changed."""
        self._looks += 1
        if self._has_moved():
            self._charge(list(watches))
        elif not self._looks % _REMEMBER_EVERY:
            self._written = _written_by_each(watches)

    def abandon(self, ended: MeasuredTree, others: Iterable[MeasuredTree]) -> None:
        """Every process of a tree has ended: its files are closed, and stay until they are removed."""
        self._hidden.ended(ended)
        open_bytes = self._open.get(ended.pid, 0)
        if not (self._has_moved() or open_bytes or ended.left_bytes):
            return
        ended.left_bytes += open_bytes
        self._closed_bytes += open_bytes
        self._charge([ended, *others])
        self._written.pop(ended.pid, None)
        self.abandoned_bytes += ended.left_bytes

    def _has_moved(self) -> bool:
        now = self._host_bytes()
        if abs(now - self._seen_bytes) < _MOVED_BYTES:
            return False
        self._seen_bytes = now
        return True

    def _charge(self, watches: list[MeasuredTree]) -> None:
        had = {watch.pid: watch.held_bytes for watch in watches}
        self._open.clear()
        inodes: dict[int, Inodes] = {}
        rest_bytes = self._host_bytes() - self._mounted_bytes()
        before, self._mapped = self._mapped, {watch.pid: _mapped_by(watch.tree.pids()) for watch in watches}
        closed_bytes: dict[int, int] = {}
        for watch in watches:
            memfds, files = self._held(watch.tree.pids())
            mapped_bytes, memfd_bytes = self._mapped[watch.pid], sum(memfds.values())
            watch.held_bytes = memfd_bytes + sum(files.values())
            self._open[watch.pid] = sum(files.values())
            inodes[watch.pid] = set(memfds)
            closed_bytes[watch.pid] = max(0, had[watch.pid] - watch.held_bytes) + max(
                0, before.get(watch.pid, 0) - mapped_bytes
            )
            # What is mapped shows in its process; a part of that may be in files, which are taken off already.
            rest_bytes -= memfd_bytes + max(0, mapped_bytes - watch.held_bytes - watch.segment_bytes)
        self._hidden.charge(watches, rest_bytes, inodes, closed_bytes)
        closed = self._mounted_bytes() - sum(self._open.values())
        self._charge_closed(watches, closed - self._closed_bytes, had)
        self._closed_bytes = closed

    def _charge_closed(self, watches: list[MeasuredTree], grown_bytes: int, had: dict[int, int]) -> None:
        """`had` is what each had open before and may have closed since; what is mapped is written without a trace."""
        before, self._written = self._written, _written_by_each(watches)
        if watches and grown_bytes > 0:
            wrote = {pid: max(0, written - before.get(pid, 0)) for pid, written in self._written.items()}
            can_be = {
                watch.pid: min(grown_bytes, wrote[watch.pid] + had[watch.pid] + watch.mapped_bytes) for watch in watches
            }
            for writer in sorted(watches, key=lambda watch: (-can_be[watch.pid], -wrote[watch.pid])):
                charged = min(grown_bytes, can_be[writer.pid])
                writer.left_bytes += charged
                grown_bytes -= charged
        elif grown_bytes < 0:
            self._removed(watches, -grown_bytes)

    def _removed(self, watches: list[MeasuredTree], gone_bytes: int) -> None:
        """The deleted files' owner is unknown: credit live trees first, so that none is killed for another's files."""
        for owner in sorted(watches, key=lambda watch: -watch.left_bytes):
            taken = min(owner.left_bytes, gone_bytes)
            owner.left_bytes -= taken
            gone_bytes -= taken
        self.abandoned_bytes = max(0, self.abandoned_bytes - gone_bytes)

    def _held(self, pids: list[int]) -> tuple[Sizes, Sizes]:
        """Bytes of each memfd and each file on tmpfs that these processes have open."""
        memfds: Sizes = {}
        files: Sizes = {}
        for pid in pids:
            for path, target in _open_files(pid):
                kept = memfds if target.startswith(_MEMFD) else files if target.startswith(self._mount_points) else None
                if kept is not None:
                    _count(path, kept)
        return memfds, files

    def _mounted_bytes(self) -> int:
        total = 0
        for mount in self._mounts.values():
            try:
                status = os.statvfs(mount)
            except OSError:
                continue  # unmounted meanwhile
            total += (status.f_blocks - status.f_bfree) * status.f_frsize
        return total

    def _host_bytes(self) -> int:
        """Read all shared memory of the host; about a microsecond."""
        self._library.sysinfo(self._sysinfo)
        return self._sysinfo[_SHARED_AT]


def tmpfs_mounts() -> list[str]:
    """Each with a slash at its end; those that a worker could write to."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:  # noqa: PTH123 - pathlib is more than this needs
        fields = [line.split() for line in mounts]
    return [f"{where}/" for _, where, kind, *_ in fields if kind == "tmpfs" and os.access(where, os.W_OK)]


def _open_files(pid: int) -> list[tuple[str, str]]:
    """(path in /proc, what it leads to) of each; bounded by its limit on open files."""
    found: list[tuple[str, str]] = []
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
    except OSError:
        return found  # it has ended meanwhile
    for number in numbers:
        path = f"/proc/{pid}/fd/{number}"
        with suppress(OSError):  # closed meanwhile; those behind it are not
            found.append((path, os.readlink(path)))  # noqa: PTH115 - a hundred times a second
    return found


def _count(path: str, kept: Sizes) -> None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return
    kept[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK_BYTES


def _mapped_by(pids: Iterable[int]) -> int:
    """Shared pages that these processes have touched; those of forks as often as they have."""
    texts = (contents(f"/proc/{pid}/status") for pid in pids)
    return sum(int(each.partition(b"RssShmem:")[2].split(None, 1)[0]) << 10 for each in texts if b"RssShmem:" in each)


def _written_by_each(watches: Iterable[MeasuredTree]) -> dict[int, int]:
    return {watch.pid: sum(map(_written_by, watch.tree.pids())) for watch in watches}


def _written_by(pid: int) -> int:
    """Without what has gone to a disk's file system, which tmpfs is not: pages are counted there when they are filled.
    Pages that are filled again, and what goes into a pipe or a socket, cannot be distinguished from tmpfs.
    """
    try:
        with open(f"/proc/{pid}/io", "rb", buffering=0) as counters:  # noqa: PTH123
            numbers = counters.read(512).split()[1::2]  # rchar, wchar, syscr, syscw, read_bytes, write_bytes
            return int(numbers[1]) - int(numbers[5])
    except (OSError, IndexError):
        return 0
