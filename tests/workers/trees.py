"""Processes as seen from outside, for the tests of workers."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

MB = 1 << 20
_LOOK_EVERY_S = 0.005


def memory_of(pid: int, parent: tuple[int, int] = (0, 0)) -> int:
    """Private and shared memory of a process and its descendants, each page counted once.

    A child between vfork and exec shares its parent's address space and shows all of its memory, `parent`, as its own.
    """
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text()
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return 0
    fields = {
        name: int(value.split()[0]) << 10 for name, value in (line.split(":", 1) for line in told.splitlines()[1:])
    }
    own = fields["Pss_Anon"] + fields["Pss_Shmem"]
    if all(_nearly(here, there) for here, there in zip((fields["Rss"], own), parent, strict=True)):
        return 0
    return own + sum(memory_of(child, (fields["Rss"], own)) for child in children)


def _nearly(one: int, other: int) -> bool:
    return abs(one - other) < other / 50


def children_of(pid: int) -> list[int]:
    """Of the first thread, and theirs."""
    try:
        found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []  # it has just ended
    return found + [grandchild for child in found for grandchild in children_of(child)]


def descriptors_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def soon(happens: Callable[[], bool], within_s: float = 10) -> bool:
    give_up_at = time.monotonic() + within_s
    while not (happened := happens()) and time.monotonic() < give_up_at:
        await asyncio.sleep(_LOOK_EVERY_S)
    return happened


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


async def highest_until(task: asyncio.Future, pid: int) -> int:
    """The most that the tree of `pid` used at any sample."""
    highest = 0
    while not task.done():
        highest = max(highest, memory_of(pid))
        await asyncio.sleep(0.001)
    return highest


def gone_within(pids: list[int], seconds: float) -> list[int]:
    """Those that still live after that time, counted in looks: on a busy machine they have had less of it, too."""
    looks = int(seconds / _LOOK_EVERY_S)
    while (living := [pid for pid in pids if is_alive(pid)]) and looks:
        time.sleep(_LOOK_EVERY_S)
        looks -= 1
    return living
