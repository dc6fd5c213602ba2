"""What this process and its descendants use, read from /proc; for programs that also run in a peer's environment."""

import os
import threading
import time
from pathlib import Path
from typing import Self

_EVERY_S = 0.001


def descendants(root: int) -> list[int]:
    """The root first."""
    found = [root]
    for pid in found:
        try:
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
            found += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def proportional_kb(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        total += next(int(line.split()[1]) for line in told if line.startswith("Pss:"))
    return total


def resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


class LargestGrowth:
    """How much the one descendant that grew most has grown by, read each millisecond or two from a thread."""

    def __enter__(self) -> Self:
        self._before = {pid: resident_bytes(pid) for pid in descendants(os.getpid())}
        self._is_over = threading.Event()
        self.bytes = 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.is_set():
            for pid in descendants(os.getpid())[1:]:
                self.bytes = max(self.bytes, resident_bytes(pid) - self._before.get(pid, 0))
            time.sleep(_EVERY_S)
