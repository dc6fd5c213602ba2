"""Finds out which mechanisms hold workers to their memory limits on this platform and host.

Covers: trying each one out, and its state in words, for `headrace doctor` and for the engine's status. Does not cover:
the mechanisms themselves (memory.measure, workers.warden).
"""

from __future__ import annotations

import os
import sys

from headrace.memory.measure.cgroups import MemoryGroups
from headrace.memory.measure.hidden_shared_memory import shows_in_flight
from headrace.memory.measure.os_limits import ON_LINUX, resource
from headrace.memory.measure.socket_buffers import can_read_buffers

ACTIVE = "active"
UNPROVEN = "unproven"
HARD_LIMIT = "RLIMIT_DATA"
GROUP = "cgroup v2"


def can_isolate() -> bool:
    """Return whether this platform can run workers in processes of their own."""
    return hasattr(os, "fork") and resource is not None


def enforcement_layers() -> list[tuple[str, str]]:
    """Return each mechanism's name with its state: `active`, `unproven` where it could not be tried, or why not."""
    if not can_isolate():
        return [("isolation", f"inline only: {sys.platform} has no process groups and limits that this needs")]
    return [
        (HARD_LIMIT, ACTIVE if ON_LINUX else f"not on {sys.platform}: it does not hold anonymous memory there"),
        ("watchdog", _watchdog()),
        ("prewarmed forks", ACTIVE if ON_LINUX else f"not on {sys.platform}: workers are started from nothing"),
        ("shared memory", _shared_memory()),
        ("pipes and sockets", _buffers()),
        (GROUP, _group()),
    ]


def _watchdog() -> str:
    if not ON_LINUX:
        return f"{ACTIVE}, through psutil"
    if not os.path.exists("/proc/self/smaps_rollup"):  # noqa: PTH110 - quick start
        return "no /proc here"
    return ACTIVE if os.path.exists("/proc/thread-self/children") else "/proc lists no children here"  # noqa: PTH110


def _shared_memory() -> str:
    """Memory that no process shows as its own: memfds in flight are counted only where the kernel shows them."""
    if not ON_LINUX:
        return f"not on {sys.platform}: only what is mapped counts"
    return ACTIVE if shows_in_flight() else f"{ACTIVE}, but for memfds in flight: this kernel does not tell of them"


def _buffers() -> str:
    if not ON_LINUX:
        return f"not on {sys.platform}"
    return ACTIVE if can_read_buffers() else "not counted: this system forbids pidfd_getfd"


def _group() -> str:
    if not ON_LINUX:
        return f"not on {sys.platform}"
    if MemoryGroups.found() is None:
        return f"{UNPROVEN}: no delegated group with a memory controller here"
    return ACTIVE
