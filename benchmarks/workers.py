"""Isolated workers beside the pools that others use: what one costs, and what becomes of the rest when one dies.

Each pool is given the same tasks: see children/pool_tasks.py. How far a worker gets beyond its limit is `overshoot`.
"""

import sys
from collections.abc import Callable
from typing import Any

from benchmarks.bench import Bench
from benchmarks.children.pool_tasks import BATCH_S, BATCHES, LIMIT_BYTES, RUNAWAY_MB, STEPS, TASKS
from benchmarks.peers import installed
from benchmarks.processes import ROOT, ChildFailed, run_child
from benchmarks.report import Line, Table, megabytes

_MOST_START_MS = 5.0
_MOST_TRIP_US = 60.0
_MOST_TREE_KB = 80_000
_MOST_PEAK_BYTES = LIMIT_BYTES + (32 << 20)
_NOT_INSTALLED = "not installed"
# (as the table calls it, as children/pool_peer.py does, what is to be installed)
_PEERS = (
    ("concurrent.futures, fork", "fork", ""),
    ("concurrent.futures, spawn", "spawn", ""),
    ("concurrent.futures, forkserver, preloaded", "forkserver", ""),
    ("loky", "loky", "loky==3.7.0"),
    ("pebble", "pebble", "pebble==5.2.3"),
)
_SLOW_PEERS = (("Dask LocalCluster", "dask", "distributed==2026.8.0"), ("Ray", "ray", "ray==2.60.0"))

Figures = dict[str, Any]


def measure(bench: Bench) -> Table:
    ours = run_child("isolated_workers").figures
    chosen = (*_PEERS, *(_SLOW_PEERS if bench.sizes.slow_peers else ()))
    peers = {shown: _peer(name, requirement) for shown, name, requirement in chosen}
    there, start, trip, tree = ours["there_ms"], ours["start_ms"], ours["trip_us"], ours["tree_kb"]
    most_start = f"<= {_MOST_START_MS:.0f} ms"
    lines = [
        Line("start of a worker, until it is there", f"{there:.1f} ms", most_start, there <= _MOST_START_MS),
        Line("start of a worker, until its first result", _start(ours), most_start, start <= _MOST_START_MS),
        *_beside(peers, _start),
        Line("round trip of a task", _trip(ours), f"<= {_MOST_TRIP_US:.0f} us", trip <= _MOST_TRIP_US),
        *_beside(peers, _trip),
        Line("idle tree with 2 workers, PSS", _tree(ours), "<= 80 MB", tree <= _MOST_TREE_KB),
        *_beside(peers, _tree),
        Line("tasks lost when another's worker is killed", _lost(ours), "0", not ours["lost"]),
        *_beside(peers, _lost),
        Line("a task that takes 1 GB", _runaway(ours), "held", ours["peak_bytes"] <= _MOST_PEAK_BYTES),
        *_beside(peers, _runaway),
        Line("a task whose worker is killed in step 6 of 10", _steps(ours), "resumed", _resumes(ours)),
        *_beside(peers, _steps),
        Line("the warden's own start, once", f"{ours['cold_ms']:.0f} ms"),
        Line("CPU of the warden alone", f"{ours['alone_percent']:.1f} %"),
        Line("CPU of the warden with 2 idle workers", f"{ours['watching_percent']:.1f} %"),
    ]
    return Table(
        "isolated workers, beside other pools",
        lines,
        [
            "start: median",
            "start: ours, Dask's and Ray's in a pool that is up, the others' with a new pool of one",
            f"round trip: the lowest median of {BATCHES} times {BATCH_S:g} s, one task after another",
            "tree: controller (ours with its providers), everything it started, two workers that have done a task",
            f"lost: of {TASKS - 1} tasks beside one that kills its worker; two workers",
            f"1 GB: {RUNAWAY_MB} bytearrays of 1 MiB; where there is a limit to ask for, it is {LIMIT_BYTES >> 20} MiB",
            "1 GB: growth of the process that grew most, read every millisecond or two",
            f"killed: {STEPS} steps in all is the least, 11 with the one that was cut short again",
        ],
    )


def _peer(name: str, requirement: str) -> Figures | None:
    python = installed(requirement) if requirement else sys.executable
    if python is None:
        return None
    try:
        return run_child("pool_peer", name, python=python, env={"PYTHONPATH": str(ROOT)}).figures
    except ChildFailed as error:
        print(f"{name}: {error}", file=sys.stderr)
        return None


def _beside(peers: dict[str, Figures | None], told: Callable[[Figures], str]) -> list[Line]:
    return [Line(f"  {shown}", "", peer=told(found) if found else _NOT_INSTALLED) for shown, found in peers.items()]


def _start(figures: Figures) -> str:
    return f"{figures['start_ms']:.1f} ms"


def _trip(figures: Figures) -> str:
    return f"{figures['trip_us']:.0f} us"


def _tree(figures: Figures) -> str:
    return f"{figures['tree_kb'] / 1000:.1f} MB"


def _lost(figures: Figures) -> str:
    return str(figures["lost"])


def _runaway(figures: Figures) -> str:
    limit = "" if figures["has_limit"] else "no limit: "
    return f"{limit}{figures['ended']} at {megabytes(figures['peak_bytes'])}"


def _steps(figures: Figures) -> str:
    if figures["steps"] is None:
        return figures["finished"]
    if not figures["finished"]:
        return f"lost after {figures['steps']} steps"
    return f"{'resumed' if _resumes(figures) else 'from the start'}, {figures['steps']} steps in all"


def _resumes(figures: Figures) -> bool | None:
    """Only the step that was cut short is taken twice."""
    return None if figures["steps"] is None else figures["finished"] and figures["steps"] <= STEPS + 1
