"""How far a worker gets beyond its limit by each way of taking memory, and whether the whole tree keeps to a budget."""

from benchmarks.bench import Bench
from benchmarks.processes import run_child
from benchmarks.report import Line, Table, megabytes

_LIMITS_MB = (100, 400)


def measure(bench: Bench) -> Table:
    f = run_child("overshoot", bench.sizes.overshoot_repeats, *_LIMITS_MB).figures
    lines: list[Line] = []
    for one in f["overshoot"]:
        limit, peak = one["limit_bytes"], one["peak_bytes"]
        allowed = max(limit * 1.1, limit + (32 << 20))
        name = f"{one['allocator'].replace('_', ' ')}, limit {megabytes(limit)}: {one['ended']}"
        lines.append(Line(name, megabytes(peak), f"<= {megabytes(allowed)}", peak <= allowed))
    budget = f["budget_bytes"]
    for one in f["whole"]:
        name = f"whole tree, two at once: {one['allocator'].replace('_', ' ')}"
        lines.append(Line(name, megabytes(one["whole_bytes"]), f"<= {megabytes(budget)}", one["whole_bytes"] <= budget))
    longest_ms = max(one["longest_ms"] for one in f["overshoot"])
    return Table(
        "overshoot of workers",
        lines,
        [
            f"highest of {bench.sizes.overshoot_repeats} times, above what the worker was forked with",
            "allowed: the larger of 110 % and 32 MiB more",
            f"sampled from another process each millisecond; at worst {longest_ms:.0f} ms lay between two samples",
            f"two at once: limits are what controller and warden leave, less {megabytes(f['reserve_bytes'])} for each",
        ],
    )
