"""The pure scheduler with 1, 100 and 1,000 hosts and 100,000 runs: what an event costs."""

from benchmarks.bench import Bench
from benchmarks.processes import run_child
from benchmarks.report import Line, Table, loops

_HOSTS = (1, 100, 1_000)
_MOST_EVENT_US = 20.0
# Events that are about as many runs as a host has slots: their cost is given, the target is for an event of one run.
_OF_MANY_RUNS = ("MemoryMeasured", "HostLost", "HostJoined")


def measure(bench: Bench) -> Table:
    runs, rounds = bench.sizes.scheduled_runs, bench.sizes.scheduled_rounds
    lines: list[Line] = []
    loops_ms: list[float] = []
    for hosts in _HOSTS:
        figures = run_child("scheduler_hosts", runs, hosts, rounds).figures
        all_us, took_us = figures["all_us"], figures["mean_us"]
        of_one = {kind: took for kind, took in took_us.items() if kind not in _OF_MANY_RUNS}
        costliest, most_us = max(of_one.items(), key=lambda each: each[1])
        name, target = f"{hosts:,} hosts, {figures['runs']:,} runs", f"<= {_MOST_EVENT_US:.0f} us"
        many = [f"{kind} {took_us[kind]:.0f} us" for kind in _OF_MANY_RUNS if kind in took_us]
        lines += [
            Line(f"{name}: the mean event", f"{all_us:.1f} us", target, all_us <= _MOST_EVENT_US),
            Line(f"{name}: {costliest}, the costliest", f"{most_us:.1f} us", target, most_us <= _MOST_EVENT_US),
            Line(f"{name}: of sixteen runs", ", ".join(many)),
        ]
        loops_ms.append(figures["loop_ms"])
    notes = [
        "CPU time of Scheduler.handle; sixteen slots a host, the other runs wait",
        "of sixteen runs: a reading of each run of a host, a host that is lost, one that joins and is filled",
        loops(loops_ms),
    ]
    return Table("the scheduler with many hosts", lines, notes)
