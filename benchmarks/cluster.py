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


def measure(bench: Bench) -> Table:
    from tests.cluster.real_cluster import RealCluster

    count = bench.sizes.worker_interviews
    calls = bench.sizes.services_to
    with RealCluster(nodes=2) as cluster:
        place = (cluster.address, cluster.pid)
        few = _run(bench, count // 10, _IN_FLIGHT, "-", *place)
        many = _run(bench, count, _IN_FLIGHT, "-", *place)
        with model_server(latency_s=0.05) as server:
            here = _run(bench, calls, _CALLS_IN_FLIGHT, server.url, "inline", 0)
            before = server.seen().calls
            there = _run(bench, calls, _CALLS_IN_FLIGHT, server.url, *place)
            requests = server.seen().calls - before
    workers = _run(bench, count, _IN_FLIGHT, "-", "workers", 0)
    canned, call = many["cpu_us"] / workers["cpu_us"], there["cpu_us"] / here["cpu_us"]
    growth = many["resident_bytes"] - few["resident_bytes"]
    store = max(each["store_bytes"] for each in (few, many, there))
    driver = max(each["resident_bytes"] for each in (few, many, there))
    return Table(
        f"a Ray cluster of two nodes: {count:,} canned interviews, {calls:,} calls",
        [
            Line(
                "CPU per canned interview", f"{many['cpu_us']:.0f} us", f"<= {_MOST_CANNED_TIMES:g} x",
                canned <= _MOST_CANNED_TIMES, f"{workers['cpu_us']:.0f} us in 2 workers",
            ),
            Line("of it the driver's", f"{many['own_us']:.0f} us", peer=f"{workers['own_us']:.0f} us"),
            Line("interviews/s", f"{count / many['seconds']:,.0f}", peer=f"{count / workers['seconds']:,.0f}"),
            Line("driver, peak RSS", megabytes(driver), "<= 200 MB", driver <= _MOST_DRIVER_BYTES),
            Line(f"its growth from {count // 10:,} on", megabytes(growth), "flat", growth <= _MOST_GROWTH_BYTES),
            Line("most in the object store", megabytes(store), "<= 50 MB", store <= _MOST_STORE_BYTES),
            Line(
                f"CPU per call, {_CALLS_IN_FLIGHT:,} in flight", f"{there['cpu_us']:.0f} us",
                f"<= {_MOST_CALL_TIMES:g} x", call <= _MOST_CALL_TIMES, f"{here['cpu_us']:.0f} us in one process",
            ),
            Line("requests", f"{requests:,}", f"{calls:,}", requests == calls),
            Line("wall", f"{there['took_s']:.1f} s", peer=f"{here['took_s']:.1f} s in one process"),
        ],
        ["CPU of Ray's own idle processes counts for as long as a run takes"],
    )  # fmt: skip


def _run(bench: Bench, interviews: int, in_flight: int, url: str, where: str, cluster: int) -> dict[str, Any]:
    path = bench.directory / "cluster.run"
    path.unlink(missing_ok=True)
    try:
        return run_child("survey_on_ray", path, interviews, in_flight, url, where, cluster).figures
    finally:
        path.unlink(missing_ok=True)
