"""Hungry agents, a survey and heartbeats in one budget, watched from outside and drawn. Covers: running it once."""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.processes import ChildFailed, start_python
from headrace.charts.chart_data import MemoryChart, MemoryEvent, MemoryMark
from headrace.charts.memory_svg import memory_svg

BUDGET_BYTES = 512_000_000
BEST_PEAK_BYTES = 428_000_000
DESIGNS_PEAK = "978 / 428 / 628 MB"
DESIGNS_STEADY = "528 / 278 / 378 MB"
_SAMPLE_EVERY_S = 0.01
_LEVELS = ((0.70, "skip LOW"), (0.85, "preempt"), (0.95, "kill"))
_DRAWN_EVENTS = ("heartbeat skipped", "preempted", "killed", "out of memory")


def run_mix(bench: Bench, slots: int, isolation: str, read_bytes: Callable[[int], int], title: str) -> dict[str, Any]:
    """What became of it, with `samples` of what `read_bytes` says of its process, and the `picture`."""
    path = bench.directory / f"{isolation}-{slots}.run"
    sizes = (bench.sizes.mixed_agents, bench.sizes.mixed_interviews)
    child = start_python("-m", "benchmarks.children.engine_mix", path, *sizes, BUDGET_BYTES, slots, isolation)
    samples: list[tuple[float, int]] = []
    while child.poll() is None:
        if used := read_bytes(child.pid):
            samples.append((time.time(), used))
        time.sleep(_SAMPLE_EVERY_S)
    assert child.stdout is not None
    with child.stdout:
        printed = child.stdout.read()
    if child.returncode:
        raise ChildFailed(f"the mix ended with {child.returncode}")
    figures = json.loads(printed)
    picture = Path(tempfile.gettempdir()) / f"headrace-{isolation}-{slots}-slots.svg"
    picture.write_text(memory_svg(_chart(samples, figures["events"], title)), encoding="utf-8")
    return {**figures, "samples": samples, "picture": picture, "slots": slots}


def _chart(samples: list[tuple[float, int]], events: list[list[Any]], title: str) -> MemoryChart:
    """The picture's line, and a row below it for each kind of event."""
    drawn = sorted((_DRAWN_EVENTS.index(what), at) for at, what, _ in events if what in _DRAWN_EVENTS)
    return MemoryChart(
        title=title,
        marks=tuple(MemoryMark(at, used) for at, used in samples),
        budget_bytes=BUDGET_BYTES,
        levels=_LEVELS,
        events=tuple(MemoryEvent(at, _DRAWN_EVENTS[kind]) for kind, at in drawn),
    )


def peak_and_steady(mix: dict[str, Any]) -> tuple[int, int]:
    """The highest of all samples, and the median of those while agents ran."""
    with_agents = sorted(used for at, used in mix["samples"] if at <= mix["agents_ended_at"])
    return max(used for _, used in mix["samples"]), with_agents[len(with_agents) // 2]
