"""The survey language: CPU per question of a survey that uses all of it: twenty questions, rules, memory, piping."""

import statistics

from benchmarks.bench import Bench
from benchmarks.processes import run_child
from benchmarks.report import Line, Table, loops

_MOST_US = 40.0


def measure(bench: Bench) -> Table:
    sizes = bench.sizes
    costs_us: list[float] = []
    loops_ms: list[float] = []
    asked_each: set[float] = set()
    for _ in range(sizes.speed_repeats):
        short, long = (run_child("language_run", bench.directory / "a.run", n) for n in sizes.language)
        asked = long.figures["asked"] - short.figures["asked"]
        costs_us.append((long.cpu_s - short.cpu_s) / asked * 1e6)
        loops_ms += [short.figures["loop_ms"], long.figures["loop_ms"]]
        asked_each.add(round(asked / (sizes.language[1] - sizes.language[0]), 2))
    cost_us = statistics.median(costs_us)
    line = Line("CPU per further question", f"{cost_us:.1f} us", f"<= {_MOST_US:.0f} us", cost_us <= _MOST_US)
    each = ", ".join(f"{asked:g}" for asked in sorted(asked_each))
    notes = [
        f"user + system, from {sizes.language[0]:,} to {sizes.language[1]:,} interviews of twenty questions",
        f"of these an interview is asked {each} on average: rules skip the others; all that is asked is remembered",
        f"median of {', '.join(f'{cost:.1f}' for cost in costs_us)} us",
        loops(loops_ms),
    ]
    return Table("survey language: CPU", [line], notes)
