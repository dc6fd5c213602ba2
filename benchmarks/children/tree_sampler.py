"""Watches workers' trees from outside, a reading each millisecond: `tree_sampler CONTROLLER WARDEN [WORKER...]`.

Prints "ready"; when its input ends, the highest of the workers together and of the whole tree, how many readings there
were, and the longest time between two. Counts what each process holds, memfds, and what /dev/shm has grown by; takes
off what a worker was forked with, as the warden has it, and from a fork of a worker what it shares with it. Shares no
code with what it checks.

Without workers it watches whatever the warden forks, and itself as one more process of the tree. It then prints the one
that came furthest beyond its limit as well, with the limit that it had at that moment, and how much more was allowed.
Files in /dev/shm, which nothing leads back from, count in the whole only.
"""

import json
import os
import resource
import select
import sys
import time
from contextlib import suppress

_EVERY_S = 0.001
_ALLOWED_SHARE, _ALLOWED_BYTES = 1.1, 32 << 20  # beyond a limit: the larger one
_START_OF_STACK = 25  # of /proc/PID/stat, counted from behind the name: the same for a fork, another after exec
_inherited: dict[int, int] = {}
_stacks: dict[int, bytes] = {}


def main(controller: int, warden: int, given: list[int]) -> None:
    with suppress(OSError):  # one that waits behind those it watches sees less; not everybody may
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    base_bytes, files_bytes = sum(_held(warden)), _in_files()
    others = [controller, warden, *([] if given else [os.getpid()])]
    furthest = _Furthest(_data_bytes(warden))
    peak = whole = readings = host_shared = 0
    host_before = _host_shared_bytes()
    longest_s, before = 0.0, time.perf_counter()
    print("ready", flush=True)
    while not select.select([0], [], [], _EVERY_S)[0]:
        trees = _in_files() - files_bytes
        for worker in given or _children(warden):
            limit_bytes = furthest.limit_of(worker)
            used_bytes = max(0, _tree_bytes(worker) - base_bytes)
            furthest.saw(used_bytes, max(limit_bytes, furthest.limit_of(worker)))  # it may have been moved meanwhile
            trees += used_bytes
        peak = max(peak, trees)
        whole = max(whole, trees + sum(map(resident_bytes, others)))
        readings += 1
        host_shared = max(host_shared, _host_shared_bytes() - host_before)
        now = time.perf_counter()
        longest_s, before = max(longest_s, now - before), now
    figures = {"peak_bytes": peak, "whole_bytes": whole, "readings": readings, "longest_ms": longest_s * 1000}
    figures["host_shared_bytes"] = host_shared
    print(json.dumps({**figures, **furthest.figures()}), flush=True)


class _Furthest:
    """The reading that was furthest beyond what its limit allows, or nearest to it."""

    def __init__(self, base_data_bytes: int) -> None:
        self._base_data_bytes = base_data_bytes
        self._beyond_bytes = -sys.maxsize
        self._used_bytes = self._limit_bytes = 0

    def limit_of(self, worker: int) -> int:
        """As the operating system has it: above what was reserved when the worker was forked. 0 where it has ended."""
        try:
            soft = resource.prlimit(worker, resource.RLIMIT_DATA)[0]
        except OSError:
            return 0
        return soft - self._base_data_bytes if soft != resource.RLIM_INFINITY else sys.maxsize

    def saw(self, used_bytes: int, limit_bytes: int) -> None:
        beyond_bytes = used_bytes - _allowed_bytes(limit_bytes)
        if limit_bytes > 0 and beyond_bytes > self._beyond_bytes:
            self._beyond_bytes, self._used_bytes, self._limit_bytes = beyond_bytes, used_bytes, limit_bytes

    def figures(self) -> dict[str, int]:
        allowed = _allowed_bytes(self._limit_bytes)
        return {"used_bytes": self._used_bytes, "limit_bytes": self._limit_bytes, "allowed_bytes": allowed}


def _allowed_bytes(limit_bytes: int) -> int:
    return max(int(limit_bytes * _ALLOWED_SHARE), limit_bytes + _ALLOWED_BYTES)


def _tree_bytes(root: int) -> int:
    family = _descendants(root)
    own, mapped = _held(root)
    # Its forks may outlive it for a moment; what they had from it does not become theirs.
    inherited = _inherited[root] = max(own, _inherited.get(root, 0))
    stack = _stacks.setdefault(root, _start_of_stack(root))
    files = _memfds(root)
    for pid in family[1:]:
        anonymous, shared = _held(pid)
        own += max(0, anonymous - (inherited if _start_of_stack(pid) == stack else 0))
        mapped = max(mapped, shared) if _start_of_stack(pid) == stack else mapped + shared
        files |= _memfds(pid)
    return own + max(mapped, sum(files.values()))


def _descendants(root: int) -> list[int]:
    """The root first."""
    found: list[int] = [root]
    for pid in found:
        found += _children(pid)
    return found


def _children(pid: int) -> list[int]:
    lists = [_contents(f"/proc/{pid}/task/{task}/children") for task in _names(f"/proc/{pid}/task")]
    return [int(child) for told in lists for child in told.split()]


def _held(pid: int) -> tuple[int, int]:
    told = _contents(f"/proc/{pid}/status")
    return _kilobytes(told, b"RssAnon:") << 10, _kilobytes(told, b"RssShmem:") << 10


def resident_bytes(pid: int) -> int:
    return _kilobytes(_contents(f"/proc/{pid}/status"), b"VmRSS:") << 10


def _data_bytes(pid: int) -> int:
    return _kilobytes(_contents(f"/proc/{pid}/status"), b"VmData:") << 10


def _start_of_stack(pid: int) -> bytes:
    fields = _contents(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return fields[_START_OF_STACK] if len(fields) > _START_OF_STACK else b""


def _memfds(pid: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for name in _names(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        try:
            if os.readlink(path).startswith("/memfd:"):  # noqa: PTH115 - pathlib would take half the millisecond
                told = os.stat(path)  # noqa: PTH116
                found[told.st_ino] = told.st_blocks * 512
        except OSError:
            continue
    return found


def _in_files() -> int:
    told = os.statvfs("/dev/shm")
    return (told.f_blocks - told.f_bfree) * told.f_frsize


def _host_shared_bytes() -> int:
    """Of all processes: also what none of them shows."""
    return _kilobytes(_contents("/proc/meminfo"), b"Shmem:") << 10


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)  # noqa: PTH208
    except OSError:
        return []


def _contents(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read(65_536)
    except OSError:
        return b""


def _kilobytes(told: bytes, field: bytes) -> int:
    at = told.find(field)
    return int(told[at + len(field) :].split(None, 1)[0]) if at >= 0 else 0


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), [int(pid) for pid in sys.argv[3:]])
