"""Fails a test that leaves behind a live thread, a child process or an open file descriptor.

Covers: Python threads, children (zombies too: nobody waited for them) and descriptors; on Linux, from /proc.
Does not cover: native threads, memory, and what fixtures of a wider scope hold, which are set up earlier.
"""

import gc
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import uvloop

# libuv keeps one pipe for the life of a process, from its first loop on.
uvloop.new_event_loop().close()

GRACE_S = 10.0  # costs nothing where nothing is left; on a busy machine a thread takes seconds to end
_PROC = Path("/proc/self")


class Held(NamedTuple):
    threads: frozenset[threading.Thread]
    children: frozenset[int]
    descriptors: frozenset[tuple[int, str]]

    def beyond(self, earlier: "Held") -> list[str]:
        return [
            *(f"thread {thread.name}" for thread in self.threads - earlier.threads),
            *(f"child process {pid}: {_command(pid)}" for pid in self.children - earlier.children),
            *(f"descriptor {fd}: {target}" for fd, target in sorted(self.descriptors - earlier.descriptors)),
        ]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip() or "a zombie"
    except OSError:
        return "gone by now"


def _children() -> frozenset[int]:
    found: set[int] = set()
    for task in (_PROC / "task").iterdir():
        try:
            found.update(map(int, (task / "children").read_text().split()))
        except OSError:  # the thread ended meanwhile
            continue
    return frozenset(found)


def _descriptors() -> frozenset[tuple[int, str]]:
    found: set[tuple[int, str]] = set()
    for entry in list((_PROC / "fd").iterdir()):
        try:
            if int(entry.name) > 2:  # pytest points the standard streams elsewhere as it likes
                found.add((int(entry.name), str(entry.readlink())))
        except OSError:  # the one this listing used
            continue
    return frozenset(found)


def held() -> Held:
    """What this process holds now. Not multiprocessing's tracker: it is shared and lives as long as we do."""
    tracker = getattr(sys.modules.get("multiprocessing.resource_tracker"), "_resource_tracker", None)
    pid, fd = getattr(tracker, "_pid", None), getattr(tracker, "_fd", None)
    return Held(
        threads=frozenset(thread for thread in threading.enumerate() if thread.is_alive()),
        children=frozenset(child for child in _children() if child != pid),
        descriptors=frozenset(open_one for open_one in _descriptors() if open_one[0] != fd),
    )


def left_behind(before: Held) -> list[str]:
    leaks = held().beyond(before)
    if leaks:
        gc.collect()  # only now: a full collection costs more than most tests
    give_up_at = time.monotonic() + GRACE_S
    while (leaks := leaks and held().beyond(before)) and time.monotonic() < give_up_at:
        time.sleep(0.01)
    return leaks


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    if sys.platform != "linux":
        yield
        return
    before = held()
    yield
    if leaks := left_behind(before):
        pytest.fail("left behind: " + "; ".join(leaks), pytrace=False)
