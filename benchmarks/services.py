"""Runs with a real model: CPU and memory of a whole run against a local server, beside a plain pool of aiohttp workers.

Everything is on: journaling, retries, limits, adaptive concurrency. Both ways read the same rows and get the same 2 KB;
the pool appends JSONL, and would lose and repeat whatever goes wrong.
"""

from dataclasses import dataclass, field

from benchmarks import service_workers
from benchmarks.bench import Bench, Sizes
from benchmarks.model_server import ANSWER_LETTERS, ModelServer, model_server
from benchmarks.processes import ChildFailed, Ended
from benchmarks.report import Line, Table, loops, megabytes
from benchmarks.service_runs import run_service

_MOST_TIMES = 1.5
_MOST_PEAK_BYTES = 100_000_000
_MOST_GROWTH_BYTES = 10_000_000
_MOST_HIT_US = 100.0
_WAYS = ("pool", "tuned", "run", "cached")
# So long that this many in flight keep neither side from answering as fast as it can.
_LATENCIES_S = {64: 0.05, 1_000: 0.5}


@dataclass(slots=True)
class _Costs:
    """CPU of one way, at both sizes. The least of each is the one that others on the machine disturbed least."""

    short_s: list[float] = field(default_factory=list)
    long_s: list[float] = field(default_factory=list)

    def us(self, sizes: Sizes) -> float:
        """Of one further call."""
        return (min(self.long_s) - min(self.short_s)) / (sizes.services_to - sizes.services_from) * 1e6


def measure(bench: Bench) -> Table:
    sizes, lines, loops_ms = bench.sizes, list[Line](), list[float]()
    for in_flight, latency_s in _LATENCIES_S.items():
        with model_server(latency_s=latency_s) as server:
            costs_us = _costs_us(bench, server, in_flight, loops_ms)
        lines += _lines(in_flight, costs_us)
    lines += [*service_workers.lines(bench), *_memory(bench), _hit(bench, loops_ms)]
    return Table(
        "runs with a real model",
        lines,
        [
            f"Job.map, one prompt a row, {ANSWER_LETTERS:,} letters each, from a server in a process of its own",
            f"user + system, from {sizes.services_from:,} to {sizes.services_to:,} rows",
            f"each way in turn, the least disturbed of {sizes.service_repeats}",
            f"the server takes {', '.join(f'{s:g} s for {n:,} in flight' for n, s in _LATENCIES_S.items())}",
            "peer: workers that share one aiohttp session, json in and out, appending JSONL; uvloop in both",
            "tuned: the same with msgspec, and Python's garbage collector looking as seldom as ours",
            loops(loops_ms),
        ],
    )


def _costs_us(bench: Bench, server: ModelServer, in_flight: int, loops_ms: list[float]) -> dict[str, float]:
    costs = {way: _Costs() for way in _WAYS}
    for _ in range(bench.sizes.service_repeats):
        for way, found in costs.items():  # in turn, so that a busy moment of the machine falls on all
            _measure(bench, server, way, in_flight, found, loops_ms)
    return {way: found.us(bench.sizes) for way, found in costs.items()}


def _measure(
    bench: Bench,
    server: ModelServer,
    way: str,
    in_flight: int,
    costs: _Costs,
    loops_ms: list[float],
    *,
    keeps_cache: bool = False,
) -> Ended:
    sizes = bench.sizes
    short = run_service(bench, server, way, sizes.services_from, in_flight, keeps_cache=keeps_cache)
    long = run_service(bench, server, way, sizes.services_to, in_flight, keeps_cache=keeps_cache)
    costs.short_s.append(short.cpu_s)
    costs.long_s.append(long.cpu_s)
    loops_ms += [short.figures["loop_ms"], long.figures["loop_ms"]]
    return long


def _lines(in_flight: int, costs_us: dict[str, float]) -> list[Line]:
    pool_us, lines = costs_us["pool"], list[Line]()
    for way, shown in (("run", "cache off"), ("cached", "cache on")):
        times = costs_us[way] / pool_us
        name = f"{in_flight:,} in flight, {shown}"
        lines += [
            Line(f"CPU per further call, {name}", f"{costs_us[way]:.0f} us", peer=f"{pool_us:.0f} us"),
            Line(f"times the pool's, {name}", f"{times:.2f}", f"<= {_MOST_TIMES}", times <= _MOST_TIMES),
        ]
    tuned_us = costs_us["tuned"]
    name = f"{in_flight:,} in flight, cache off"
    return [
        *lines,
        Line(f"times a tuned pool's, {name}", f"{costs_us['run'] / tuned_us:.2f}", peer=f"{tuned_us:.0f} us"),
    ]


def _memory(bench: Bench) -> list[Line]:
    few, many = bench.sizes.services_memory
    with model_server(latency_s=_LATENCIES_S[1_000]) as server:
        least, small, large = (run_service(bench, server, "run", rows, 1_000).peak_bytes for rows in (1_000, few, many))
        pool = run_service(bench, server, "pool", few, 1_000).peak_bytes
    growth = f"<= {megabytes(_MOST_GROWTH_BYTES)} more"
    return [
        Line("peak RSS, 1,000 calls, while concurrency still grows", megabytes(least)),
        Line(
            f"peak RSS, {few:,} calls, 1,000 in flight", megabytes(small), f"<= {megabytes(_MOST_PEAK_BYTES)}",
            small <= _MOST_PEAK_BYTES, megabytes(pool),
        ),
        Line(f"peak RSS, {many:,} calls", megabytes(large), growth, large - small <= _MOST_GROWTH_BYTES),
    ]  # fmt: skip


def _hit(bench: Bench, loops_ms: list[float]) -> Line:
    """CPU of an interview that another run has paid for."""
    costs, many = _Costs(), bench.sizes.services_to
    with model_server() as server:
        run_service(bench, server, "cached", many, 64)
        for _ in range(bench.sizes.service_repeats):
            long = _measure(bench, server, "cached", 64, costs, loops_ms, keeps_cache=True)
            if long.figures["hits"] != many:
                raise ChildFailed(f"{long.figures['hits']:,} of {many:,} answers came from the cache")
    hit_us = costs.us(bench.sizes)
    return Line(
        "CPU per interview from the cache", f"{hit_us:.0f} us", f"<= {_MOST_HIT_US:.0f} us", hit_us <= _MOST_HIT_US
    )
