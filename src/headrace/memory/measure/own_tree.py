"""Reads how much memory this process and its descendants use: resident and proportional sizes of the whole tree.

Each reading opens and closes what it reads: a program may have hundreds of children, and their descriptors would count
against its own limit. The warden, which reads a hundred times a second, keeps its descriptors (measure.tree).
Does not cover: what processes share (memory.gauge takes it off), or which level follows (memory.governor).
"""

from __future__ import annotations

import os
from collections.abc import Collection

from headrace.memory.measure.os_limits import ON_LINUX
from headrace.memory.measure.process import children_of, proportional_bytes_of, sizes_of


def tree_bytes(without: Collection[int] = ()) -> int:
    """Resident memory of this process and its descendants, except those `without` and below them."""
    if not ON_LINUX:
        from headrace.memory.measure.portable import portable_tree_bytes

        return portable_tree_bytes()
    me = os.getpid()
    others = (sizes_of(pid) for pid in _tree(without) if pid != me)
    return resident_bytes(me) + sum(resident for size, resident in others if not _is_own_memory(size, resident))


def proportional_tree_bytes() -> int:
    """The same with shared pages counted once (PSS), exact, at 20 us for each megabyte; 0 where there is no /proc."""
    return sum(map(proportional_bytes_of, _tree())) if ON_LINUX else 0


def resident_bytes(pid: int) -> int:
    """Resident memory of one process; 0 where it has ended."""
    if ON_LINUX:
        return sizes_of(pid)[1]
    from headrace.memory.measure.portable import portable_resident_bytes

    return portable_resident_bytes(pid)


def _tree(without: Collection[int] = ()) -> list[int]:
    """Process ids, this one first; bounded by what the program has started."""
    found, waiting = [os.getpid()], [os.getpid()]
    while waiting:
        children = [child for child in children_of(waiting.pop()) if child not in without]
        found += children
        waiting += children
    return found


def _is_own_memory(size: int, resident: int) -> bool:
    """Whether a child shows this process's memory: between vfork and exec it shares all of it."""
    own_size, own_resident = sizes_of(os.getpid())  # now: other threads go on
    return size == own_size and abs(resident - own_resident) < own_resident / 50
