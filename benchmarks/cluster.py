"""Surveys on a Ray cluster of two nodes on this machine, beside two workers, one process, and Ray Data.

CPU counts everything: the driver, our actors, wardens and workers, and Ray's own processes for as long as a run takes.
What Ray's own take while nobody uses the cluster is told beside it: on a busy machine a run takes longer, and they with
it. The same holds for wardens, which look at the memory of their workers a hundred times a second.
"""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.bench import Bench
from benchmarks.cluster_cpu import idle_share
from benchmarks.model_server import ModelServer, model_server
from benchmarks.processes import ChildFailed, loop_ms, run_child, start_python
from benchmarks.report import NOT_MEASURED, Line, Table, loops, megabytes
from headrace.interviews.steering.client import state_of

if TYPE_CHECKING:
    from tests.cluster.real_cluster import RealCluster

_MOST_CANNED_TIMES, _MOST_CALL_TIMES = 2.0, 1.5
_MOST_DRIVER_BYTES, _MOST_STORE_BYTES = 200_000_000, 50_000_000
_MOST_GROWTH_BYTES = 20_000_000
_IN_FLIGHT, _CALLS_IN_FLIGHT = 200, 1_000
_LATENCY_S = 0.05
_CALLS_TIMES = 3  # of what is enough in one process: with fewer, how a run begins decides the figures
_IDLE_S = 5.0
_LOOK_AGAIN_S = 0.02


def measure(bench: Bench) -> Table:
    from tests.cluster.real_cluster import RealCluster

    counts = bench.sizes.worker_interviews // 10, bench.sizes.worker_interviews
    calls = _CALLS_TIMES * bench.sizes.services_from, _CALLS_TIMES * bench.sizes.services_to
    busy_ms = [loop_ms()]
    with RealCluster(nodes=2) as cluster, model_server(latency_s=_LATENCY_S) as server:
        idle = idle_share(cluster.pid, _IDLE_S)
        on_ray = _survey(bench, cluster.address, cluster.pid)
        canned = _Growth(counts, lambda count: on_ray(count, _IN_FLIGHT, "-"))
        before = server.seen().calls
        called = _Growth(calls, lambda count: on_ray(count, _CALLS_IN_FLIGHT, server.url))
        requests = server.seen().calls - before
        inline = _survey(bench, "inline", 0)
        called_here = _Growth(calls, lambda count: inline(count, _CALLS_IN_FLIGHT, server.url))
        by_ray_data = _by_ray_data(bench, calls, server, cluster)
        busy_ms.append(loop_ms())
        killed = _Killed(bench, calls[1], server, cluster)
    in_workers = _Growth(counts, lambda count: _survey(bench, "workers", 0)(count, _IN_FLIGHT, "-"))
    busy_ms.append(loop_ms())
    canned_times, call_times = canned.cpu_us / in_workers.cpu_us, called.cpu_us / called_here.cpu_us
    runs = (canned.few, canned.many, called.few, called.many)
    growth = canned.many["resident_bytes"] - canned.few["resident_bytes"]
    store, driver = (max(each[name] for each in runs) for name in ("store_bytes", "resident_bytes"))
    return Table(
        f"a Ray cluster of two nodes: {counts[1]:,} canned interviews, {calls[1]:,} calls",
        [
            Line(
                "CPU per canned interview", f"{canned.cpu_us:.0f} us", f"<= {_MOST_CANNED_TIMES:g} x",
                canned_times <= _MOST_CANNED_TIMES, f"{in_workers.cpu_us:.0f} us in 2 workers",
            ),
            *canned.parts(idle),
            Line("interviews/s", f"{canned.per_s:,.0f}", peer=f"{in_workers.per_s:,.0f} in 2 workers"),
            Line("driver, peak RSS", megabytes(driver), "<= 200 MB", driver <= _MOST_DRIVER_BYTES),
            Line(f"its growth from {counts[0]:,} on", megabytes(growth), "flat", growth <= _MOST_GROWTH_BYTES),
            Line("most in the object store", megabytes(store), "<= 50 MB", store <= _MOST_STORE_BYTES),
            Line(
                f"CPU per call, {_CALLS_IN_FLIGHT:,} in flight", f"{called.cpu_us:.0f} us",
                f"<= {_MOST_CALL_TIMES:g} x", call_times <= _MOST_CALL_TIMES,
                f"{called_here.cpu_us:.0f} us in one process",
            ),
            *called.parts(idle),
            _beside_ray_data("the same", called, by_ray_data, lambda each: f"{each.cpu_us:.0f} us"),
            _beside_ray_data("CPU before the first call", called, by_ray_data, lambda each: f"{each.fixed_s:.1f} s"),
            Line("requests", f"{requests:,}", f"{sum(calls):,}", requests == sum(calls)),
            Line("calls/s", f"{called.per_s:,.0f}", peer=f"{called_here.per_s:,.0f} in one process"),
            Line(
                "calls made again after a node's SIGKILL", f"{killed.again:,}", f"<= {killed.most_there:,} there",
                killed.again <= killed.most_there, f"of {calls[1]:,}",
            ),
        ],
        [
            "CPU is what more interviews take more, in all processes: also Ray's own, idle ones as long as it takes",
            f"the fixed part: {canned.fixed_s:.1f} s of CPU, {in_workers.fixed_s:.1f} s with workers",
            "Ray Data asks batches by aiohttp in an actor for each CPU, as many calls in flight, and writes Parquet",
            loops(busy_ms),
        ],
    )  # fmt: skip


class _Growth:
    """A small run and a large one; what the difference takes for each interview."""

    def __init__(self, counts: tuple[int, int], run: Callable[[int], dict[str, Any]]) -> None:
        self.few, self.many = map(run, counts)
        self._more = counts[1] - counts[0]
        self._first = counts[0]

    def each_us(self, name: str) -> float:
        return (self.many[name] - self.few[name]) / self._more * 1e6

    @property
    def cpu_us(self) -> float:
        return self.each_us("cpu_s")

    @property
    def per_s(self) -> float:
        return self._more / (self.many["seconds"] - self.few["seconds"])

    @property
    def fixed_s(self) -> float:
        return self.few["cpu_s"] - self._first * self.cpu_us / 1e6

    def parts(self, idle: float) -> list[Line]:
        """Whose CPU it is. `idle` is what Ray's processes take of each second in which nobody uses them."""
        driver, actors, workers, ray = map(self.each_us, ("own_s", "actors_s", "workers_s", "ray_s"))
        parts = f"{driver:.0f} + {actors:.0f} + {workers:.0f} us"
        idle_us = idle * self.each_us("took_s")
        return [
            Line("  driver + actors + workers and wardens", parts),
            Line("  Ray's own processes", f"{ray:.0f} us", peer=f"{idle_us:.0f} us idle as long"),
        ]


def _survey(bench: Bench, where: str, cluster: int) -> Callable[[int, int, str], dict[str, Any]]:
    path = bench.directory / "cluster.run"

    def run(interviews: int, in_flight: int, url: str) -> dict[str, Any]:
        path.unlink(missing_ok=True)
        try:
            return run_child("survey_on_ray", path, interviews, in_flight, url, where, cluster).figures
        finally:
            path.unlink(missing_ok=True)

    return run


def _by_ray_data(bench: Bench, calls: tuple[int, int], server: ModelServer, cluster: "RealCluster") -> _Growth | None:
    """None where Ray Data cannot be loaded: it needs pyarrow and pandas."""
    directory = bench.directory / "ray-data"

    def run(count: int) -> dict[str, Any]:
        place = (server.url, cluster.address, cluster.pid)
        try:
            return run_child("ray_data_calls", directory, count, _CALLS_IN_FLIGHT, *place).figures
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    try:
        return _Growth(calls, run)
    except ChildFailed:
        return None


def _beside_ray_data(name: str, ours: _Growth, theirs: _Growth | None, figure: Callable[[_Growth], str]) -> Line:
    return Line(name, figure(ours), peer=f"Ray Data: {NOT_MEASURED if theirs is None else figure(theirs)}")


class _Killed:
    """A run that loses one of its nodes by SIGKILL when a third of its calls were made: how many were made `again`, and
    the most interviews that a node had then.
    """

    def __init__(self, bench: Bench, calls: int, server: ModelServer, cluster: "RealCluster") -> None:
        path = bench.directory / "killed.run"
        first = server.seen().calls
        process = start_python(
            "-m", "benchmarks.children.survey_on_ray", path, calls, _CALLS_IN_FLIGHT, server.url, cluster.address, 0
        )  # fmt: skip
        assert process.stdout is not None
        with process.stdout:
            while server.seen().calls - first < calls // 3 and process.poll() is None:
                time.sleep(_LOOK_AGAIN_S)
            self.most_there = _most_at_a_node(path)
            cluster.kill(0)
            process.stdout.read()
        if process.wait():
            raise ChildFailed(f"a run that lost a node ended with {process.returncode}")
        path.unlink()
        self.again = server.seen().calls - first - calls


def _most_at_a_node(path: Path) -> int:
    state = state_of(path)
    return max((node.in_flight for node in state.nodes), default=0) if state is not None else 0
