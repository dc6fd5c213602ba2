"""CPU of a program and of the Ray cluster that it uses, by whose processes they are.

Covers: this process without the thread that looks, our actors, wardens and workers, and all others, which are Ray's.
Does not cover: memory, whose reading would take more CPU than what is measured (children.survey_in_workers).
"""

import os
import threading
import time
from enum import Enum
from pathlib import Path
from typing import Self

_LOOK_EVERY_S = 0.2
_ACTOR = "ray::NodeHost"


class Whose(Enum):
    """The name of each figure."""

    PROGRAM = "own_s"
    ACTORS = "actors_s"
    WORKERS = "workers_s"  # and their wardens
    RAY = "ray_s"


class CpuWatch:
    """From entering to leaving; `cluster` are processes that the cluster's descend from."""

    def __init__(self, *cluster: int) -> None:
        self._cluster = cluster
        self._first_s: dict[int, float] = {}
        self._last_s: dict[int, float] = {}
        self._whose: dict[int, Whose] = {}
        self._looking_s = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._look()
        self._first_s = dict(self._last_s)
        self._began_s, self._began_cpu_s = time.perf_counter(), time.process_time()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.took_s, self._own_s = time.perf_counter() - self._began_s, time.process_time() - self._began_cpu_s
        self._is_over.set()
        self._thread.join()

    def figures(self) -> dict[str, float]:
        used = {whose.value: 0.0 for whose in Whose}
        used[Whose.PROGRAM.value] = self._own_s - self._looking_s
        for pid, seconds in self._last_s.items():
            used[self._whose[pid].value] += seconds - self._first_s.get(pid, 0.0)
        return {**used, "cpu_s": sum(used.values()), "took_s": self.took_s}

    def _watch(self) -> None:
        while not self._is_over.wait(_LOOK_EVERY_S):
            self._look()
            self._looking_s = time.thread_time()

    def _look(self) -> None:
        for child in _children(os.getpid()):
            self._look_at(child, Whose.WORKERS)
        for pid in self._cluster:
            self._look_at(pid, Whose.RAY)

    def _look_at(self, pid: int, whose: Whose) -> None:
        """The process and its descendants: those of an actor are its warden and its workers."""
        try:
            is_actor = Path(f"/proc/{pid}/cmdline").read_bytes().startswith(_ACTOR.encode())
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            return  # it ended meanwhile
        is_actor = is_actor or self._whose.get(pid) is Whose.ACTORS  # its name is gone before it is
        self._whose[pid] = Whose.ACTORS if is_actor else whose
        self._last_s[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        for child in _children(pid):
            self._look_at(child, Whose.WORKERS if is_actor else whose)


def idle_share(cluster: int, watch_s: float) -> float:
    """The CPU that a cluster takes in each second in which nobody uses it."""
    with CpuWatch(cluster) as cpu:
        time.sleep(watch_s)
    return cpu.figures()[Whose.RAY.value] / cpu.took_s


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text("ascii").split()]
    except OSError:
        return []
