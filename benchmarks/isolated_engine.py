"""The engine with agents in worker processes: the same mix as inline in one budget, and what a death costs.

Memory is what all processes hold together (PSS), read from outside as often as every 10 ms; drawn like inline.
"""

from typing import Any

from benchmarks.bench import Bench
from benchmarks.engine_mixes import (
    BEST_PEAK_BYTES,
    BUDGET_BYTES,
    DESIGNS_PEAK,
    DESIGNS_STEADY,
    peak_and_steady,
    run_mix,
)
from benchmarks.process_memory import proportional_bytes, tree_of
from benchmarks.processes import loop_ms, run_child
from benchmarks.report import Line, Table, loops, megabytes

_MOST_RECOVERY_MS = 100.0
_DRAWN = "memory of controller, warden and workers together (PSS)"
_DEATHS = 20


def measure(bench: Bench) -> Table:
    recovery = run_child("engine_recovery", bench.directory / "recovery.run", _DEATHS).figures
    mix, two_slots = [run_mix(bench, slots, "process", _tree_bytes, _DRAWN) for slots in (4, 2)]
    return Table(
        "the engine, agents in processes",
        [_recovery_line(recovery), *_mix_lines(bench, "mix", mix), *_mix_lines(bench, "mix, two slots", two_slots)],
        [
            "peers of two slots: what a process pool, streaming, and a priority queue aim at, peak and steady",
            "steady is the median while agents run; memory is PSS of controller, warden and workers",
            f"drawn in {mix['picture']} and {two_slots['picture']}",
            loops([loop_ms()]),
        ],
    )


def _recovery_line(figures: dict[str, Any]) -> Line:
    told = f"{figures['p50_ms']:.0f} ms, most {figures['most_ms']:.0f} ms of {figures['deaths']}"
    is_met = figures["p50_ms"] <= _MOST_RECOVERY_MS
    return Line("out-of-memory death to the next step, p50", told, f"<= {_MOST_RECOVERY_MS:.0f} ms", is_met)


def _mix_lines(bench: Bench, name: str, mix: dict[str, Any]) -> list[Line]:
    agents, interviews = bench.sizes.mixed_agents, bench.sizes.mixed_interviews
    peak, steady = peak_and_steady(mix)
    is_two = mix["slots"] == 2
    most = BEST_PEAK_BYTES if is_two else BUDGET_BYTES
    stopped = f"{mix['preemptions']}, {mix['kills']}, {mix['shortages']}"
    return [
        Line(f"{name}: peak", megabytes(peak), f"< {megabytes(most)}", peak < most, DESIGNS_PEAK if is_two else ""),
        Line(f"{name}: steady state", megabytes(steady), "", None, DESIGNS_STEADY if is_two else ""),
        Line(f"{name}: agents with the right result", f"{mix['right']} of {agents}", "all", mix["right"] == agents),
        Line(f"{name}: interviews", f"{mix['answered']:,}", f"{interviews:,}", mix["answered"] == interviews),
        Line(f"{name}: preempted, killed, out of memory", stopped),
        Line(f"{name}: heartbeats run, skipped", f"{mix['beats']}, {mix['skips']}"),
        Line(f"{name}: seconds, samples", f"{mix['seconds']:.1f}, {len(mix['samples']):,}"),
    ]


def _tree_bytes(root: int) -> int:
    return proportional_bytes(tree_of(root))
