"""Runs with a real model in two workers, beside inline: requests at the server, CPU of the whole tree, wall time.

Part of the measure `services`.
"""

import statistics
from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.model_server import ModelServer, model_server
from benchmarks.processes import Ended
from benchmarks.report import Line
from benchmarks.service_runs import run_service

_IN_FLIGHT = 200
_LATENCY_S = 0.05
_MOST_CPU_TIMES = 2.0  # every call crosses two processes, and its turn is asked for
_ANSWERS = {"2 KB": (), "10 KB": ("--answer", "a river runs through it " * 420)}


def lines(bench: Bench) -> Iterator[Line]:
    for size, options in _ANSWERS.items():
        with model_server(*options, latency_s=_LATENCY_S) as server:
            yield from _lines(bench, server, size)


def _lines(bench: Bench, server: ModelServer, size: str) -> Iterator[Line]:
    rows = bench.sizes.services_to
    turns = [(_ran(bench, server, "run"), _ran(bench, server, "workers")) for _ in range(bench.sizes.service_repeats)]
    inline, isolated = zip(*turns, strict=True)
    requests = [seen for _, seen in isolated]
    cpu_us = [min(ended.cpu_s for ended, _ in ways) / rows * 1e6 for ways in (inline, isolated)]
    wall_s = [statistics.median(ended.wall_s for ended, _ in ways) for ways in (inline, isolated)]
    is_once = set(requests) == {rows}
    most_us = cpu_us[0] * _MOST_CPU_TIMES
    name = f"workers=2, {_IN_FLIGHT} in flight, {size}"
    yield Line(f"requests, {name}", f"{max(requests):,}", f"{rows:,}", is_once, f"{max(seen for _, seen in inline):,}")
    yield Line(
        f"CPU per call, {name}", f"{cpu_us[1]:.0f} us", f"<= {most_us:.0f} us", cpu_us[1] <= most_us,
        f"{cpu_us[0]:.0f} us inline",
    )  # fmt: skip
    yield Line(f"wall, {name}", f"{wall_s[1]:.1f} s", peer=f"{wall_s[0]:.1f} s inline")


def _ran(bench: Bench, server: ModelServer, way: str) -> tuple[Ended, int]:
    """A whole program, and how many requests it has made."""
    before = server.seen().calls
    ended = run_service(bench, server, way, bench.sizes.services_to, _IN_FLIGHT)
    return ended, server.seen().calls - before
