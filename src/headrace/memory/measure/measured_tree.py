"""The figures that a process tree is charged with, beyond the memory that its processes show: files, hidden memory,
buffers.

Covers: the figures. Does not cover: finding them (shared_files, hidden_shared_memory, socket_buffers).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from headrace.memory.measure.tree import Tree


@dataclass(slots=True, kw_only=True)
class MeasuredTree:
    pid: int
    tree: Tree
    held_bytes: int = 0  # memfds and files on tmpfs that are open
    left_bytes: int = 0  # files on tmpfs that were written and closed
    hidden_bytes: int = 0  # memfds that are mapped or in flight, and not open
    segment_bytes: int = 0  # SysV shared memory
    buffered_bytes: int = 0  # in pipes and sockets
    buffers_seen: int = 0  # descriptors, when buffers were last looked at, and how long that took
    buffers_looked_at: float = 0.0
    buffers_took_s: float = 0.0
    connections: AbstractSet[str] = frozenset()  # TCP sockets that were open then, if all together held little
    mapped_bytes: int = 0  # shared memory, files among it
