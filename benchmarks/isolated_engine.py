"""The engine with agents in worker processes: the same mix as inline in one budget, and what a death costs.

Memory is what all processes hold together (PSS), read from outside as often as every 10 ms; drawn like inline.
"""

from typing import Any

from benchmarks.bench import Bench
from benchmarks.engine_mixes import (
    BEST_PEAK_BYTES,
    BUDGET_BYTES,
    CRUNCHING,
    DESIGNS_PEAK,
    DESIGNS_STEADY,
    SWELLING,
    SWELLING_DECLARED,
    SWELLING_LENT,
    Workload,
    below_floor,
    floor_bytes,
    peak_and_steady,
    run_mix,
)
from benchmarks.process_memory import proportional_bytes, tree_of
from benchmarks.processes import loop_ms, run_child
from benchmarks.report import Line, Table, loops, megabytes

_MOST_RECOVERY_MS = 100.0
_DRAWN = "memory of controller, warden and workers together (PSS)"
_DEATHS = 20
_MOST_OF_FLOOR = 1.1


def measure(bench: Bench) -> Table:
    recovery = run_child("engine_recovery", bench.directory / "recovery.run", _DEATHS).figures
    mix = run_mix(bench, 4, "process", _tree_bytes, _DRAWN)
    two_slots = run_mix(bench, 2, "process", _tree_bytes, _DRAWN)
    return Table(
        "the engine, agents in processes",
        [
            _recovery_line(recovery),
            *_mix_lines(bench, "mix", mix),
            *_mix_lines(bench, "mix, two slots", two_slots),
            *_designs_lines(bench, "50-150 MB", CRUNCHING, two_slots),
            *_designs_lines(bench, "200-390 MB, most declared", SWELLING_DECLARED),
            *_designs_lines(bench, "200-390 MB, average declared, in 628 MB", SWELLING_LENT),
            *_designs_lines(bench, "200-390 MB, undeclared", SWELLING),
        ],
        [
            "peers of two slots: what a process pool, streaming, and a priority queue aim at, peak and steady",
            "steady is the median while agents run; memory is PSS of controller, warden and workers",
            "50-150 MB in a budget of 512 MB; 200 MB on average and 390 MB at the most in 1,000 MB, the designs' sizes",
            "all of these swell at the same step: two that begin together reach their tops together, unless staggered",
            "floor: the largest agent and the idle tree of processes; one: slots=1; both: slots=2",
            f"drawn in {mix['picture']} and {two_slots['picture']}",
            loops([loop_ms()]),
        ],
    )


def _designs_lines(bench: Bench, name: str, workload: Workload, both: dict[str, Any] | None = None) -> list[Line]:
    """One agent at a time and two, beside what the three designs hope for."""
    one = run_mix(bench, 1, "process", _tree_bytes, _DRAWN, workload)
    both = both or run_mix(bench, 2, "process", _tree_bytes, _DRAWN, workload)
    floor = floor_bytes(one, workload)
    (one_peak, one_steady), (both_peak, both_steady) = peak_and_steady(one), peak_and_steady(both)
    most = floor * _MOST_OF_FLOOR
    hopeless = below_floor(floor)
    right = f"{one['right']}, {both['right']} of {one['agents']}"
    return [
        Line(f"{name}: floor", megabytes(floor), peer=f"below it: {', '.join(hopeless) or 'none'}"),
        Line(f"{name}, one: peak", megabytes(one_peak), f"<= {megabytes(most)}", one_peak <= most, DESIGNS_PEAK),
        Line(
            f"{name}, both: peak",
            f"{megabytes(both_peak)}, {both_peak / one_peak:.2f} of one",
            f"< {megabytes(workload.budget_bytes)}",
            both_peak < workload.budget_bytes,
            DESIGNS_PEAK,
        ),
        Line(
            f"{name}, one and both: steady", f"{megabytes(one_steady)}, {megabytes(both_steady)}", peer=DESIGNS_STEADY
        ),
        Line(f"{name}, one and both: until all agents ended", f"{_agents_s(one):.1f} s, {_agents_s(both):.1f} s"),
        Line(f"{name}, one and both: right", right, "all", one["right"] == both["right"] == one["agents"]),
        Line(f"{name}, one and both: preempted, out of memory", f"{_stopped(one)}; {_stopped(both)}"),
    ]


def _stopped(mix: dict[str, Any]) -> str:
    return f"{mix['preemptions']}, {mix['shortages']}"


def _agents_s(mix: dict[str, Any]) -> float:
    return mix["agents_ended_at"] - mix["began_at"]


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
