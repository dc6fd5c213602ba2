"""Charges trees with shared memory that no open file leads to: memfds mapped and closed, memfds in flight over a
socket, SysV segments.

SysV segments are listed by the kernel with the process that made them. The other two are seen only in the host's total:
the rest of it, without files on tmpfs, open memfds and segments. Growth of that rest is charged to the trees that show
a trace of hiding memory (a closed memfd in their mappings, descriptors in a socket's queue), and to none more than
its CPU time can have filled: other processes of the host have shared memory, too.
Does not cover: open memfds and files on tmpfs (memory.measure.shared_files), mapped pages (memory.measure.tree).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from typing import NamedTuple

from headrace.memory.measure.measured_tree import MeasuredTree
from headrace.memory.measure.process import contents
from headrace.memory.measure.sysv_segments import Segment, listed_segments, remove_segment

Inodes = set[tuple[int, int]]

_FILLED_BYTES_PER_S = 8_000_000_000  # more than a core can fill
_TICK_S = 1 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01
_USER_TIME, _CHILDRENS_SYSTEM_TIME = 11, 14  # of /proc/PID/stat, counted from behind the name


class CpuTime(NamedTuple):
    """The CPU time of a tree, which bounds the memory it can have filled. The kernel counts `system_s` in ticks."""

    run_s: float = 0.0
    system_s: float = 0.0

    def can_have_filled(self, before: CpuTime, hidden_bytes: int) -> int:
        """The most bytes that it can have filled since `before`, without those that it is charged already."""
        since_then = int((self.run_s - before.run_s) * _FILLED_BYTES_PER_S)
        ever = int((self.system_s + _TICK_S) * _FILLED_BYTES_PER_S) - hidden_bytes
        return max(0, min(since_then, ever))


class HiddenSharedMemory:
    """`charge` brings each watch's `hidden_bytes` and `segment_bytes` up to date."""

    def __init__(self, rest_bytes: int) -> None:
        """`rest_bytes` is the host's shared memory without files on tmpfs."""
        segments = listed_segments()
        self._others = {segment.id for segment in segments}  # made before any worker: never ours to remove
        self._owners: dict[int, int] = {}  # root of the tree that made it, by segment
        self._rest_bytes = rest_bytes - sum(segment.resident_bytes for segment in segments)
        self._cpu: dict[int, CpuTime] = {}  # by root, at the last look

    def charge(
        self, watches: list[MeasuredTree], rest_bytes: int, memfds: dict[int, Inodes], closed_bytes: dict[int, int]
    ) -> None:
        """`rest_bytes` without what these trees show, too; `memfds` are those that each has open, by root,
        `closed_bytes` what it showed before and no longer does.
        """
        segments = self._claimed(watches)
        for watch in watches:
            watch.segment_bytes = sum(
                each.resident_bytes for each in segments if self._owners.get(each.id) == watch.pid
            )
        rest_bytes -= sum(segment.resident_bytes for segment in segments)
        grown_bytes, self._rest_bytes = rest_bytes - self._rest_bytes, rest_bytes
        before, self._cpu = self._cpu, {watch.pid: _cpu(watch.tree.pids()) for watch in watches}
        if grown_bytes < 0:
            _give_back(watches, -grown_bytes)
        elif grown_bytes:
            for watch in sorted(watches, key=lambda each: -each.hidden_bytes):
                filled = self._cpu[watch.pid].can_have_filled(before.get(watch.pid, CpuTime()), watch.hidden_bytes)
                charged = min(grown_bytes, filled + closed_bytes[watch.pid])
                if charged and _hides_memory(watch.tree.pids(), memfds[watch.pid]):
                    watch.hidden_bytes += charged
                    grown_bytes -= charged

    def ended(self, watch: MeasuredTree) -> None:
        """Every process of the tree has ended: its hidden memory is free; its segments are removed unless in use."""
        self._rest_bytes -= watch.hidden_bytes
        watch.hidden_bytes = 0
        self._cpu.pop(watch.pid, None)
        for segment in self._claimed([watch]):
            if self._owners.get(segment.id) == watch.pid:
                del self._owners[segment.id]
                if segment.attached:
                    self._others.add(segment.id)  # a process outside has it in use
                elif remove_segment(segment.id):
                    watch.segment_bytes -= segment.resident_bytes

    def _claimed(self, watches: list[MeasuredTree]) -> list[Segment]:
        """The host's segments. One that a process of these trees has made, or used first, is theirs from now on."""
        segments = listed_segments()
        there = {segment.id for segment in segments}
        self._others &= there
        self._owners = {segment: owner for segment, owner in self._owners.items() if segment in there}
        new = [each for each in segments if each.id not in self._owners and each.id not in self._others]
        if new:
            roots = {pid: watch.pid for watch in watches for pid in (watch.pid, *watch.tree.pids())}
            for segment in new:
                root = roots.get(segment.maker) or roots.get(segment.last_user)
                if root is not None:
                    self._owners[segment.id] = root
        return segments


def _give_back(watches: Iterable[MeasuredTree], gone_bytes: int) -> None:
    for watch in sorted(watches, key=lambda each: -each.hidden_bytes):
        taken = min(watch.hidden_bytes, gone_bytes)
        watch.hidden_bytes -= taken
        gone_bytes -= taken


def _hides_memory(pids: list[int], open_memfds: Inodes) -> bool:
    inodes = {inode for _, inode in open_memfds}
    return any(_maps_closed_memfd(pid, inodes) or _has_in_flight(pid) for pid in pids)


def _maps_closed_memfd(pid: int, open_inodes: set[int]) -> bool:
    try:
        with open(f"/proc/{pid}/maps", "rb") as maps:  # noqa: PTH123 - a hundred times a second
            return any(b" /memfd:" in line and int(line.split(None, 5)[4]) not in open_inodes for line in maps)
    except OSError:
        return False  # it has ended meanwhile


def _has_in_flight(pid: int) -> bool:
    """Whether a queue of one of its Unix sockets holds descriptors; Linux shows it from 5.16 on."""
    try:
        numbers = os.listdir(f"/proc/{pid}/fdinfo")  # noqa: PTH208
    except OSError:
        return False
    infos = (contents(f"/proc/{pid}/fdinfo/{number}") for number in numbers)
    return any(b"scm_fds:" in info and info.rpartition(b"scm_fds:")[2].split()[0] != b"0" for info in infos)


def shows_in_flight() -> bool:
    """Whether this kernel says how many descriptors a socket's queue holds."""
    ends = socket.socketpair()
    try:
        return b"scm_fds:" in contents(f"/proc/self/fdinfo/{ends[0].fileno()}")
    finally:
        for end in ends:
            end.close()


def _cpu(pids: list[int]) -> CpuTime:
    used = [_cpu_of(pid) for pid in pids]
    return CpuTime(sum(each.run_s for each in used), sum(each.system_s for each in used))


def _cpu_of(pid: int) -> CpuTime:
    """CPU time of a process: its threads' to the nanosecond, that of children it has waited for in ticks."""
    fields = contents(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(fields) <= _CHILDRENS_SYSTEM_TIME:
        return CpuTime(0.0, 0.0)
    ticks = [int(each) for each in fields[_USER_TIME : _CHILDRENS_SYSTEM_TIME + 1]]
    return CpuTime(_threads_s(pid) + sum(ticks[2:]) * _TICK_S, (ticks[1] + ticks[3]) * _TICK_S)


def _threads_s(pid: int) -> float:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return 0.0
    times = (contents(f"/proc/{pid}/task/{thread}/schedstat").split() for thread in threads)
    return sum(int(each[0]) for each in times if each) / 1e9
