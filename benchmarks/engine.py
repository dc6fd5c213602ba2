"""The engine: what a no-op agent run costs, and a mix of hungry agents, a survey and heartbeats in one budget.

The mix is drawn: its memory, read from outside every 10 ms, with the levels and what the engine did on it.
"""

import sys
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
from benchmarks.peers import installed
from benchmarks.process_memory import resident_bytes
from benchmarks.processes import ChildFailed, run_child
from benchmarks.report import NOT_MEASURED, Line, Table, loops, megabytes

_DBOS, _DBOS_RUNS = "dbos==3.3.0", 500
_MOST_CPU_US = 300.0
_MOST_EVENT_US = 10.0
_WAITING = 10_000
_MOST_P50_MS = 3.0
_MOST_P99_MS = 50.0
_MOST_STOP_MS = 500.0
_DRAWN = "resident memory of the engine's process, every 10 ms"


def measure(bench: Bench) -> Table:
    noops = run_child("engine_noops", bench.directory / "noops.run", bench.sizes.agent_runs).figures
    peer = _dbos(bench)
    stops = run_child("engine_preempted", bench.directory / "stops.run", bench.sizes.kills).figures
    blocks, objects = (_given_back(bench, what) for what in ("blocks", "objects"))
    events = run_child("scheduler_events", _WAITING).figures
    mix, two_slots = [run_mix(bench, slots, "inline", resident_bytes, _DRAWN) for slots in (4, 2)]
    return Table(
        "the engine, inline",
        [
            *_noop_lines(noops, peer),
            _scheduler_line(events),
            _stop_line(stops),
            blocks,
            objects,
            *_mix_lines(bench, mix),
            *_two_slot_lines(two_slots),
        ],
        [
            "scheduler: the mean of all kinds of events, and the costliest: a run that ends and the start of the next",
            "given back: inline, by an agent told to stop beside another that took memory in turns with it",
            f"no-op: one journaled step each; peer: {_DBOS} on SQLite, one workflow at a time, its cheapest",
            "mix: four slots; steady is the median while agents run",
            "two slots: the peers are what a process pool, streaming, and a priority queue aim at",
            f"the mix is drawn in {mix['picture']}",
            loops([noops["loop_ms"]]),
        ],
    )


def _dbos(bench: Bench) -> dict[str, Any] | None:
    """What DBOS takes for the same, in an environment of its own; None where it cannot be had."""
    python = installed(_DBOS)
    if python is None:
        return None
    try:
        return run_child("dbos_noops", bench.directory / "dbos.sqlite", _DBOS_RUNS, python=python).figures
    except ChildFailed as error:
        print(f"DBOS: {error}", file=sys.stderr)
        return None


def _noop_lines(figures: dict[str, Any], peer: dict[str, Any] | None) -> list[Line]:
    cpu_us, p50_ms, p99_ms = figures["cpu_us"], figures["p50_ms"], figures["p99_ms"]
    run, step = (f"{peer[name]:,.0f} us" if peer else NOT_MEASURED for name in ("cpu_us", "step_us"))
    return [
        Line("no-op agent run, CPU", f"{cpu_us:.0f} us", f"<= {_MOST_CPU_US:.0f} us", cpu_us <= _MOST_CPU_US, run),
        Line("the peer's further step, CPU", "", peer=step),
        Line("journaling a step, p50", f"{p50_ms:.2f} ms", f"<= {_MOST_P50_MS:.0f} ms", p50_ms <= _MOST_P50_MS),
        Line("journaling a step, p99", f"{p99_ms:.2f} ms", f"<= {_MOST_P99_MS:.0f} ms", p99_ms <= _MOST_P99_MS),
    ]


def _scheduler_line(figures: dict[str, Any]) -> Line:
    took_us = figures["mean_us"]
    mean_us, (costliest, most_us) = sum(took_us.values()) / len(took_us), max(took_us.items(), key=lambda each: each[1])
    told = f"{mean_us:.1f} us, {costliest} {most_us:.1f} us"
    name = f"scheduler, an event with {_WAITING:,} waiting"
    return Line(name, told, f"<= {_MOST_EVENT_US:.0f} us", most_us <= _MOST_EVENT_US)


def _stop_line(figures: dict[str, Any]) -> Line:
    p95_ms = figures["p95_ms"]
    told = f"{p95_ms:.0f} ms of {figures['stops']} (p50 {figures['p50_ms']:.0f} ms)"
    return Line("told to stop until memory is free, p95", told, f"<= {_MOST_STOP_MS:.0f} ms", p95_ms <= _MOST_STOP_MS)


def _given_back(bench: Bench, what: str) -> Line:
    figures = run_child("engine_reclaimed", bench.directory / f"{what}.run", what).figures
    held, given_back = figures["held_bytes"], figures["given_back_bytes"]
    told = f"{megabytes(given_back)} of {megabytes(held)}"
    if what == "objects":  # Python keeps what lies between objects that live: measured, not promised
        return Line("given back, of small objects", told)
    return Line("given back, of large blocks", told, "all", given_back >= 0.95 * held)


def _mix_lines(bench: Bench, mix: dict[str, Any]) -> list[Line]:
    peak, steady = peak_and_steady(mix)
    agents, interviews = bench.sizes.mixed_agents, bench.sizes.mixed_interviews
    return [
        Line("mix: peak of every 10 ms", megabytes(peak), "< 512 MB", peak < BUDGET_BYTES),
        Line("mix: steady state", megabytes(steady)),
        Line("mix: agents with the right result", f"{mix['right']} of {agents}", "all", mix["right"] == agents),
        Line("mix: interviews", f"{mix['answered']:,}", f"{interviews:,}", mix["answered"] == interviews),
        Line("mix: preempted, killed", f"{mix['preemptions']}, {mix['kills']}"),
        Line("mix: heartbeats run, skipped", f"{mix['beats']}, {mix['skips']}"),
        Line("mix: seconds", f"{mix['seconds']:.1f}"),
    ]


def _two_slot_lines(mix: dict[str, Any]) -> list[Line]:
    peak, steady = peak_and_steady(mix)
    return [
        Line("mix with two slots: peak", megabytes(peak), "< 428 MB", peak < BEST_PEAK_BYTES, DESIGNS_PEAK),
        Line("mix with two slots: steady state", megabytes(steady), "", None, DESIGNS_STEADY),
    ]
