"""Surveys in workers: how much faster two processes are than one, and what the whole tree takes.

Inline and two workers take turns, so that what else the machine does meets both.
"""

import statistics
from typing import Any

from benchmarks.bench import Bench
from benchmarks.processes import run_child
from benchmarks.report import Line, Table, loops, megabytes

_WORKERS = 2
_LEAST_RATIO = 1.6
_MOST_BYTES = 200_000_000


def measure(bench: Bench) -> Table:
    count = bench.sizes.worker_interviews
    turns = [(_run(bench, 0), _run(bench, _WORKERS)) for _ in range(bench.sizes.worker_repeats)]
    ratios = [inline["seconds"] / isolated["seconds"] for inline, isolated in turns]
    whole = [inline["took_s"] / isolated["took_s"] for inline, isolated in turns]
    by_cpu = [_WORKERS * _cpu_us(inline) / _cpu_us(isolated) for inline, isolated in turns]
    ratio, peak = statistics.median(ratios), max(isolated["peak_kb"] for _, isolated in turns) * 1024
    speeds = [f"{count / inline['seconds']:,.0f} -> {count / isolated['seconds']:,.0f}" for inline, isolated in turns]
    return Table(
        f"surveys in {_WORKERS} workers: {count:,} interviews",
        [
            Line("times the interviews/s of inline", f"{ratio:.2f}", f">= {_LEAST_RATIO}", ratio >= _LEAST_RATIO),
            Line("PSS of controller, warden and workers", megabytes(peak), "<= 200 MB", peak <= _MOST_BYTES),
            Line("interviews/s", "; ".join(speeds)),
            Line("with the file made and workers started", ", ".join(f"{one:.2f}" for one in whole)),
            Line("CPU per interview, inline", _median_us(inline for inline, _ in turns)),
            Line("CPU per interview, the tree", _median_us(isolated for _, isolated in turns)),
            Line("of it the controller's", f"{statistics.median(each['own_us'] for _, each in turns):.1f} us"),
            Line("what that allows on 2 free cores", ", ".join(f"{one:.2f}" for one in by_cpu)),
        ],
        [
            f"median of {', '.join(f'{one:.2f}' for one in ratios)}; inline and workers took turns",
            loops(figures["loop_ms"] for turn in turns for figures in turn),
        ],
    )


def _run(bench: Bench, workers: int) -> dict[str, Any]:
    path = bench.directory / "workers.run"
    path.unlink(missing_ok=True)
    try:
        return run_child("survey_in_workers", path, bench.sizes.worker_interviews, workers).figures
    finally:
        path.unlink(missing_ok=True)


def _cpu_us(figures: dict[str, Any]) -> float:
    return figures["own_us"] + figures["others_us"]


def _median_us(runs: Any) -> str:
    return f"{statistics.median(map(_cpu_us, runs)):.1f} us"
