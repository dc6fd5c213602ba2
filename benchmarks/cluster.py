"""Surveys on a Ray cluster of two nodes on this machine, beside two workers and one process.

CPU counts everything: the driver, our actors, wardens and workers, and Ray's own processes for as long as a run takes.
"""

from typing import Any

from benchmarks.bench import Bench
from benchmarks.model_server import model_server
from benchmarks.processes import run_child
from benchmarks.report import Line, Table, megabytes

_MOST_CANNED_TIMES, _MOST_CALL_TIMES = 2.0, 1.5
_MOST_DRIVER_BYTES, _MOST_STORE_BYTES = 200_000_000, 50_000_000
_MOST_GROWTH_BYTES = 20_000_000
_IN_FLIGHT, _CALLS_IN_FLIGHT = 200, 1_000
_LATENCY_S = 0.05


def measure(bench: Bench) -> Table:
    from tests.cluster.real_cluster import RealCluster

    counts = bench.sizes.worker_interviews // 10, bench.sizes.worker_interviews
    calls = bench.sizes.services_from, bench.sizes.services_to
    with RealCluster(nodes=2) as cluster, model_server(latency_s=_LATENCY_S) as server:
        place = (cluster.address, cluster.pid)
        canned = _Growth(bench, counts, _IN_FLIGHT, "-", *place)
        before = server.seen().calls
        called = _Growth(bench, calls, _CALLS_IN_FLIGHT, server.url, *place)
        requests = server.seen().calls - before
        called_here = _Growth(bench, calls, _CALLS_IN_FLIGHT, server.url, "inline", 0)
    in_workers = _Growth(bench, counts, _IN_FLIGHT, "-", "workers", 0)
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
            Line("of it the driver's", f"{canned.own_us:.0f} us", peer=f"{in_workers.own_us:.0f} us"),
            Line("interviews/s", f"{canned.per_s:,.0f}", peer=f"{in_workers.per_s:,.0f} in 2 workers"),
            Line("driver, peak RSS", megabytes(driver), "<= 200 MB", driver <= _MOST_DRIVER_BYTES),
            Line(f"its growth from {counts[0]:,} on", megabytes(growth), "flat", growth <= _MOST_GROWTH_BYTES),
            Line("most in the object store", megabytes(store), "<= 50 MB", store <= _MOST_STORE_BYTES),
            Line(
                f"CPU per call, {_CALLS_IN_FLIGHT:,} in flight", f"{called.cpu_us:.0f} us",
                f"<= {_MOST_CALL_TIMES:g} x", call_times <= _MOST_CALL_TIMES,
                f"{called_here.cpu_us:.0f} us in one process",
            ),
            Line("requests", f"{requests:,}", f"{sum(calls):,}", requests == sum(calls)),
            Line("calls/s", f"{called.per_s:,.0f}", peer=f"{called_here.per_s:,.0f} in one process"),
        ],
        [
            "CPU is what more interviews take more, in all processes: also Ray's own, idle ones as long as it takes",
            f"the fixed part: {canned.fixed_s:.1f} s of CPU, {in_workers.fixed_s:.1f} s with workers",
        ],
    )  # fmt: skip


class _Growth:
    """A small run and a large one; what the difference takes for each interview."""

    def __init__(
        self, bench: Bench, counts: tuple[int, int], in_flight: int, url: str, where: str, cluster: int
    ) -> None:
        self.few, self.many = (_run(bench, count, in_flight, url, where, cluster) for count in counts)
        self._more = counts[1] - counts[0]
        self._first = counts[0]

    def _each_us(self, name: str) -> float:
        return (self.many[name] - self.few[name]) / self._more * 1e6

    @property
    def cpu_us(self) -> float:
        return self._each_us("cpu_s")

    @property
    def own_us(self) -> float:
        return self._each_us("own_s")

    @property
    def per_s(self) -> float:
        return self._more / (self.many["seconds"] - self.few["seconds"])

    @property
    def fixed_s(self) -> float:
        return self.few["cpu_s"] - self._first * self.cpu_us / 1e6


def _run(bench: Bench, interviews: int, in_flight: int, url: str, where: str, cluster: int) -> dict[str, Any]:
    path = bench.directory / "cluster.run"
    path.unlink(missing_ok=True)
    try:
        return run_child("survey_on_ray", path, interviews, in_flight, url, where, cluster).figures
    finally:
        path.unlink(missing_ok=True)
