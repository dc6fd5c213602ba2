"""Hungry agents, a survey and heartbeats in one budget, watched from outside and drawn. Covers: running it once.

Three designs for two agents at once hope for the memory in `DESIGNS_PEAK` and `DESIGNS_STEADY`: a process pool,
streaming, and a priority queue. `SWELLING` has agents of the sizes that these designs assume.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.processes import ChildFailed, start_python
from headrace.charts.chart_data import MemoryChart, MemoryEvent, MemoryMark
from headrace.charts.memory_svg import memory_svg

BUDGET_BYTES = 512_000_000
BEST_PEAK_BYTES = 428_000_000
DESIGN_PEAKS_BYTES = {"process pool": 978_000_000, "streaming": 428_000_000, "priority queue": 628_000_000}
DESIGNS_PEAK = "978 / 428 / 628 MB"
DESIGNS_STEADY = "528 / 278 / 378 MB"
_SAMPLE_EVERY_S = 0.01
_LEVELS = ((0.70, "skip LOW"), (0.85, "preempt"), (0.95, "kill"))
_DRAWN_EVENTS = ("heartbeat skipped", "preempted", "killed", "out of memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What agents do (a kind of children.engine_mix), the largest of them, and the budget of all."""

    kind: str
    largest_bytes: int
    budget_bytes: int


CRUNCHING = Workload(kind="crunch", largest_bytes=150_000_000, budget_bytes=BUDGET_BYTES)
SWELLING = Workload(kind="swell", largest_bytes=390_000_000, budget_bytes=1_000_000_000)
SWELLING_DECLARED = replace(SWELLING, kind="swell_declared")
SWELLING_LENT = replace(SWELLING, kind="swell_lent", budget_bytes=628_000_000)  # two tops do not fit beside each other


def run_mix(
    bench: Bench,
    slots: int,
    isolation: str,
    read_bytes: Callable[[int], int],
    title: str,
    workload: Workload = CRUNCHING,
) -> dict[str, Any]:
    """What became of it, with `samples` of what `read_bytes` says of its process, and the `picture`."""
    name = f"{isolation}-{workload.kind}-{slots}"
    agents = bench.sizes.mixed_agents if workload is CRUNCHING else bench.sizes.swelling_agents
    sizes = (agents, bench.sizes.mixed_interviews, workload.budget_bytes, slots, isolation, workload.kind)
    child = start_python("-m", "benchmarks.children.engine_mix", bench.directory / f"{name}.run", *sizes)
    assert child.stdout is not None
    with child.stdout, ThreadPoolExecutor(1) as reader:  # its events are more than a pipe holds
        printing = reader.submit(child.stdout.read)
        samples = _samples(child, read_bytes)
        printed = printing.result()
    if child.returncode:
        raise ChildFailed(f"the mix ended with {child.returncode}")
    figures = json.loads(printed)
    picture = Path(tempfile.gettempdir()) / f"headrace-{name}-slots.svg"
    drawn = _chart(samples, figures["events"], title, workload.budget_bytes)
    picture.write_text(memory_svg(drawn), encoding="utf-8")
    return {**figures, "samples": samples, "picture": picture, "slots": slots, "agents": agents}


def _samples(child: subprocess.Popen[str], read_bytes: Callable[[int], int]) -> list[tuple[float, int]]:
    """What its process used, and when, until it has ended."""
    samples: list[tuple[float, int]] = []
    while child.poll() is None:
        if used := read_bytes(child.pid):
            samples.append((time.time(), used))
        time.sleep(_SAMPLE_EVERY_S)
    return samples


def _chart(samples: list[tuple[float, int]], events: list[list[Any]], title: str, budget_bytes: int) -> MemoryChart:
    """The picture's line, and a row below it for each kind of event."""
    drawn = sorted((_DRAWN_EVENTS.index(what), at) for at, what, _ in events if what in _DRAWN_EVENTS)
    return MemoryChart(
        title=title,
        marks=tuple(MemoryMark(at, used) for at, used in samples),
        budget_bytes=budget_bytes,
        levels=_LEVELS,
        events=tuple(MemoryEvent(at, _DRAWN_EVENTS[kind]) for kind, at in drawn),
    )


def floor_bytes(mix: dict[str, Any], workload: Workload) -> int:
    """The largest agent, and the tree of processes while nothing was submitted: no less is possible."""
    idle = [used for at, used in mix["samples"] if at <= mix["began_at"]]
    return workload.largest_bytes + idle[-1]


def below_floor(floor: int) -> list[str]:
    """The designs whose peaks cannot hold their own largest agent beside an idle tree."""
    return [name for name, peak_bytes in DESIGN_PEAKS_BYTES.items() if peak_bytes < floor]


def peak_and_steady(mix: dict[str, Any]) -> tuple[int, int]:
    """The highest of all samples, and the median of those while agents ran."""
    with_agents = sorted(used for at, used in mix["samples"] if at <= mix["agents_ended_at"])
    return max(used for _, used in mix["samples"]), with_agents[len(with_agents) // 2]
