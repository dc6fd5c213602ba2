"""Calls over HTTP: CPU of one call through a provider, beside a plain pool of aiohttp workers that does the same."""

import statistics
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.bench import Bench
from benchmarks.processes import ChildFailed, run_child, start_python
from benchmarks.report import Line, Table, loops

_MOST_TIMES = 1.5
_ANSWER = "x" * 2000
_IN_FLIGHT = 64


def measure(bench: Bench) -> Table:
    sizes = bench.sizes
    costs_us: dict[str, list[float]] = {"pool": [], "provider": []}
    loops_ms: list[float] = []
    with _server() as url:
        for _ in range(sizes.call_repeats):
            for way, found_us in costs_us.items():  # in turn, so that a busy moment of the machine falls on both
                path = bench.directory / f"{way}.jsonl"
                figures = run_child("calls", way, url, sizes.calls, _IN_FLIGHT, path).figures
                found_us.append(figures["cpu_us"])
                loops_ms.append(figures["loop_ms"])
    pool_us, provider_us = (statistics.median(found_us) for found_us in costs_us.values())
    times = provider_us / pool_us
    return Table(
        "calls over HTTP",
        [
            Line("CPU per call, provider", f"{provider_us:.0f} us", peer=f"{pool_us:.0f} us"),
            Line("times the plain pool's", f"{times:.2f}", f"<= {_MOST_TIMES}", times <= _MOST_TIMES),
        ],
        [
            f"{sizes.calls:,} calls, {_IN_FLIGHT} in flight, {len(_ANSWER):,} letters each, appended as JSONL",
            "peer: workers that share one aiohttp session, json in and out; uvloop in both",
            loops(loops_ms),
        ],
    )


@contextmanager
def _server() -> Iterator[str]:
    process = start_python("-m", "tests.providers.server", "--answer", _ANSWER)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            raise ChildFailed("the local model server did not start")
        yield url
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
