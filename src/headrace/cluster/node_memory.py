"""Reads the memory of a node for its controller: what everything of ours uses there, and what of it is not workers'.

Does not cover: how a tree is measured (memory.gauge), or what follows from a reading (agents.scheduler).
"""

from __future__ import annotations

import time

from headrace.cluster.tunnel_wire import NodeReading
from headrace.limits import MemoryLimits
from headrace.memory.gauge import BudgetReadings, TreeGauge
from headrace.memory.measure.own_tree import tree_bytes
from headrace.workers.wire import FromWarden, Readings, WorkerStarted


class NodeMemory:
    """`limits` are of this node: this process, its warden, workers and programs share the budget."""

    def __init__(self, limits: MemoryLimits) -> None:
        self._workers: dict[int, WorkerStarted] = {}  # and programs, as they were started
        self._abandoned_bytes = 0
        gauge = TreeGauge(self._shared_bytes, lambda: self._abandoned_bytes, has_workers=True)
        self._readings = BudgetReadings(gauge, limits)

    @property
    def pids(self) -> list[int]:
        return [started.pid for started in self._workers.values()]

    def take(self, report: FromWarden) -> None:
        """Note what a warden's report says of memory."""
        match report:
            case WorkerStarted():
                self._workers[report.worker] = report
            case Readings():
                self._abandoned_bytes = report.abandoned_bytes
            case _:
                pass

    def ended(self, worker: int) -> None:
        self._workers.pop(worker, None)

    def all_ended(self) -> None:
        self._workers.clear()

    def read(self) -> NodeReading:
        now_s, readings = time.monotonic(), self._readings
        used_bytes = readings.read(now_s)
        readings.looks_at_host(now_s)
        return NodeReading(used_bytes, tree_bytes(without=self.pids), readings.budget_bytes)

    def _shared_bytes(self) -> int:
        return sum(started.base_bytes for started in self._workers.values())
