"""How far a worker gets beyond its limit by each way of taking memory, and whether the whole tree keeps to a budget.

First workers of a pool with fixed limits; then two agents at once of a real engine, whose limits are lent and move.
"""

from collections.abc import Iterator
from typing import Any

from benchmarks.bench import Bench
from benchmarks.processes import run_child
from benchmarks.report import Line, Table, megabytes

_LIMITS_MB = (100, 400)
_ENGINE_MEMORY = "512MB"


def measure(bench: Bench) -> Table:
    pool = run_child("overshoot", bench.sizes.overshoot_repeats, *_LIMITS_MB).figures
    agents = run_child("engine_overshoot", bench.directory, _ENGINE_MEMORY).figures["engine"]
    longest_ms = max(one["longest_ms"] for one in (*pool["overshoot"], *agents))
    return Table(
        "overshoot of workers",
        [*_pool_lines(pool), *_engine_lines(agents)],
        [
            f"highest of {bench.sizes.overshoot_repeats} times, above what the worker was forked with",
            "allowed: the larger of 110 % and 32 MiB more",
            f"sampled from another process each millisecond; at worst {longest_ms:.0f} ms lay between two samples",
            f"two at once: limits are what the others leave, less {megabytes(pool['reserve_bytes'])} for each",
            f'engine: two agents at once, memory="{_ENGINE_MEMORY}"; each is tried again alone, and set aside',
            "engine: what the worker that came furthest used, of the limit that it was lent at that moment",
        ],
    )


def _pool_lines(figures: dict[str, Any]) -> Iterator[Line]:
    for one in figures["overshoot"]:
        limit, peak = one["limit_bytes"], one["peak_bytes"]
        allowed = max(limit * 1.1, limit + (32 << 20))
        name = f"{_named(one)}, limit {megabytes(limit)}: {one['ended']}"
        yield Line(name, megabytes(peak), f"<= {megabytes(allowed)}", peak <= allowed)
    budget = figures["budget_bytes"]
    for one in figures["whole"]:
        yield _whole_line(f"whole tree, two at once: {_named(one)}", one, budget)


def _engine_lines(agents: list[dict[str, Any]]) -> Iterator[Line]:
    for one in agents:
        yield _whole_line(f"engine, whole tree: {_named(one)}", one, one["budget_bytes"])
        if one["allocator"] == "small_files":
            continue  # nothing leads from a file to the worker that wrote it
        used, limit, allowed = one["used_bytes"], one["limit_bytes"], one["allowed_bytes"]
        told = f"{megabytes(used)} of {megabytes(limit)}"
        yield Line(f"engine, a worker: {_named(one)}", told, f"<= {megabytes(allowed)}", used <= allowed)


def _whole_line(name: str, one: dict[str, Any], budget: int) -> Line:
    return Line(name, megabytes(one["whole_bytes"]), f"<= {megabytes(budget)}", one["whole_bytes"] <= budget)


def _named(one: dict[str, Any]) -> str:
    return one["allocator"].replace("_", " ")
