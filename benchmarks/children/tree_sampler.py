"""Watches workers' trees from outside, a reading each millisecond: `tree_sampler CONTROLLER WARDEN WORKER...`.

Prints "ready"; when its input ends, the highest of the workers together and of the whole tree, how many readings there
were, and the longest time between two. Counts what each process holds, memfds, and what /dev/shm has grown by; takes
off what a worker was forked with, as the warden has it, and from a fork of a worker what it shares with it. Shares no
code with what it checks.
"""

import json
import os
import select
import sys
import time

_EVERY_S = 0.001
_START_OF_STACK = 25  # of /proc/PID/stat, counted from behind the name: the same for a fork, another after exec
_inherited: dict[int, int] = {}
_stacks: dict[int, bytes] = {}


def main(controller: int, warden: int, workers: list[int]) -> None:
    base_bytes, files_bytes = sum(_held(warden)), _in_files()
    peak = whole = readings = 0
    longest_s, before = 0.0, time.perf_counter()
    print("ready", flush=True)
    while not select.select([0], [], [], _EVERY_S)[0]:
        trees = sum(max(0, _tree_bytes(worker) - base_bytes) for worker in workers) + _in_files() - files_bytes
        peak = max(peak, trees)
        whole = max(whole, trees + resident_bytes(controller) + resident_bytes(warden))
        readings += 1
        now = time.perf_counter()
        longest_s, before = max(longest_s, now - before), now
    figures = {"peak_bytes": peak, "whole_bytes": whole, "readings": readings, "longest_ms": longest_s * 1000}
    print(json.dumps(figures), flush=True)


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
        for task in _names(f"/proc/{pid}/task"):
            found += map(int, _contents(f"/proc/{pid}/task/{task}/children").split())
    return found


def _held(pid: int) -> tuple[int, int]:
    told = _contents(f"/proc/{pid}/status")
    return _kilobytes(told, b"RssAnon:") << 10, _kilobytes(told, b"RssShmem:") << 10


def resident_bytes(pid: int) -> int:
    return _kilobytes(_contents(f"/proc/{pid}/status"), b"VmRSS:") << 10


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
