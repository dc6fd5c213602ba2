"""Calls over HTTP: CPU of one call through a provider, beside a plain pool of aiohttp workers that does the same."""

import statistics

from benchmarks.bench import Bench
from benchmarks.model_server import ANSWER_LETTERS, model_server
from benchmarks.processes import run_child
from benchmarks.report import Line, Table, loops

_MOST_TIMES = 1.5
_IN_FLIGHT = 64


def measure(bench: Bench) -> Table:
    sizes = bench.sizes
    costs_us: dict[str, list[float]] = {"pool": [], "provider": []}
    loops_ms: list[float] = []
    with model_server() as server:
        for _ in range(sizes.call_repeats):
            for way, found_us in costs_us.items():  # in turn, so that a busy moment of the machine falls on both
                path = bench.directory / f"{way}.jsonl"
                figures = run_child("calls", way, server.url, sizes.calls, _IN_FLIGHT, path).figures
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
            f"{sizes.calls:,} calls, {_IN_FLIGHT} in flight, {ANSWER_LETTERS:,} letters each, appended as JSONL",
            "peer: workers that share one aiohttp session, json in and out; uvloop in both",
            loops(loops_ms),
        ],
    )
