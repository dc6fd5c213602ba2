"""Runs the workload with so many workers: `survey_in_workers PATH INTERVIEWS WORKERS`. 0 workers is inline.

Tells how long the run took, from the first interview's admission on and in all, what each process of the tree used of
CPU, and the most memory that the tree had, each page counted once.
"""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Self

import headrace
from benchmarks import workload
from benchmarks.processes import loop_ms, print_figures

_LOOK_EVERY_S = 0.1


class Tree:
    """This process, others and their descendants, looked at from a thread."""

    def __init__(self, *others: int) -> None:
        self._roots = (os.getpid(), *others)
        self.peak_kb = 0
        self.cpu_s: dict[int, float] = {}  # the latest look at each
        self._first_s: dict[int, float] = {}  # of those that were there before
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        for root in self._roots:
            for pid in _family(root):
                self._look(pid)
        self._first_s = dict(self.cpu_s)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def grown_s(self) -> dict[int, float]:
        """The CPU of each since the beginning."""
        return {pid: seconds - self._first_s.get(pid, 0.0) for pid, seconds in self.cpu_s.items()}

    def _watch(self) -> None:
        while not self._is_over.wait(_LOOK_EVERY_S):
            self.peak_kb = max(self.peak_kb, sum(self._look(pid) for root in self._roots for pid in _family(root)))

    def _look(self, pid: int) -> int:
        try:
            told = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            return 0  # it ended meanwhile
        self.cpu_s[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return next(int(line.split()[1]) for line in told.splitlines() if line.startswith("Pss:"))


def _family(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text("ascii").split()]
    except OSError:
        return [pid]
    return [pid, *(member for child in children for member in _family(child))]


def main(path: str, interviews: int, workers: int) -> None:
    agents = headrace.AgentList(workload.each_agent(headrace, interviews))
    job = workload.job(headrace, agents)
    cpu_s, began_s = time.process_time(), time.perf_counter()
    with Tree() as tree:
        results = job.run(path, workers=workers)
    took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    stats = results.stats()
    assert (stats.interviews, stats.failed) == (interviews, 0)
    others_s = sum(seconds for pid, seconds in tree.cpu_s.items() if pid != os.getpid())
    print_figures(
        seconds=stats.seconds,
        took_s=took_s,
        own_us=cpu_s / interviews * 1e6,
        others_us=others_s / interviews * 1e6,
        peak_kb=tree.peak_kb,
        loop_ms=loop_ms(),
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
