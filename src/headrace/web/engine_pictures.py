"""Makes the pictures of an engine's pages from what the operations reply: its memory line, and a run's steps.

Does not cover: drawing (charts), or reading (web.api).
"""

from __future__ import annotations

import time
from itertools import pairwise

from headrace.charts.bar_svg import share_text
from headrace.charts.chart_data import LEVELS, LONGEST_LABEL, MemoryChart, MemoryEvent, MemoryMark, memory_levels
from headrace.charts.memory_svg import memory_svg
from headrace.charts.step_svg import CUTS, MOST_STEPS, RunMark, StepBar, StepChart, step_svg
from headrace.display import cell_text, counted
from headrace.units import format_bytes, format_short_duration
from headrace.web.api.agent_runs import AgentRunShown, StepShown
from headrace.web.api.engine_events import EngineMemoryLine, EventShown
from headrace.web.api.engine_summary import EngineSummary

_BEFELL = frozenset(
    {"preempted", "killed", "stopped", "lost", "out of memory", "retried", "undecided", "failed", "steered", "skipped"}
)


def memory_picture(engine: EngineSummary, found: EngineMemoryLine) -> str:
    """The memory line with its events; empty where there is no history yet."""
    chart = engine_memory_chart(engine, found)
    return "" if chart is None else memory_svg(chart)


def engine_memory_chart(engine: EngineSummary, found: EngineMemoryLine) -> MemoryChart | None:
    """What is drawn; None where there is no history yet."""
    points = found.points
    if not points:
        return None
    budget, highest = points[-1].budget_bytes, max(point.memory_bytes for point in points)
    levels = memory_levels(min(point.memory_bytes for point in points), budget)
    if engine.live is not None:
        levels = tuple(zip(engine.live.levels, LEVELS, strict=True))
    end = points[-1].second + points[-1].seconds
    note = f"at most {format_bytes(highest)}, {share_text(highest / max(1, budget))} of {format_bytes(budget)};"
    note += f" opened {counted(len({point.run for point in points}), 'time')}, {format_short_duration(end)} in all"
    cut = (f"of the events, the latest {len(found.events)}",) if found.truncated else ()
    return MemoryChart(
        title=f"memory of {cell_text(engine.name, LONGEST_LABEL)}",
        marks=tuple(MemoryMark(point.second, point.memory_bytes) for point in points),
        budget_bytes=budget,
        levels=levels,
        starts=tuple(float(after.second) for before, after in pairwise(points) if after.run != before.run),
        events=tuple(MemoryEvent(each.second, each.event.what, _why(each.event)) for each in found.events),
        notes=(note, *cut),
    )


def _why(event: EventShown) -> str:
    run = "" if event.run is None else f"run {event.run}: "
    reading = event.reading
    memory = "" if reading is None else f" ({format_bytes(reading.used_bytes)} of {format_bytes(reading.budget_bytes)})"
    return cell_text(f"{run}{event.reason}{memory}", 200)


def step_picture(shown: AgentRunShown) -> str:
    """A run's steps on a time line; empty where it has none yet."""
    run = shown.run
    if not shown.steps:
        return ""
    begin = min([run.submitted_at, *filter(None, map(_first_moment, shown.steps))])
    end = run.ended_at or time.time()
    moments = [each for step in shown.steps for each in (step.started_at, step.finished_at) if each is not None]
    end = max([end, *moments])
    befell = [event for event in reversed(shown.events) if event.what in _BEFELL]
    left_out = len(shown.steps) - MOST_STEPS
    notes = ["a pale bar begins where the step before it ended: only side effects journal their begin"]
    if shown.truncated or left_out > 0:
        notes.append(f"the latest {min(len(shown.steps), MOST_STEPS)} steps")
    if any(event.what in CUTS for event in befell):
        notes.append("a dashed line: it was told to stop there; the bar after it has its time in the queue, too")
    chart = StepChart(
        title=f"steps of run {run.number}",
        bars=tuple(_bars(shown.steps, begin)),
        marks=tuple(RunMark(event.at - begin, event.what, _why(event)) for event in befell),
        seconds=max(0.001, end - begin),
        notes=tuple(notes),
    )
    return step_svg(chart)


def _bars(steps: list[StepShown], begin: float) -> list[StepBar]:
    """As many as there are steps, which are bounded."""
    bars: list[StepBar] = []
    before = begin
    for step in steps:
        began = before if step.started_at is None else step.started_at
        end_s = None if step.finished_at is None else max(0.0, step.finished_at - begin)
        bars.append(StepBar(step.label, max(0.0, began - begin), end_s, step.started_at is not None))
        before = max(before, step.finished_at or before)
    return bars


def _first_moment(step: StepShown) -> float | None:
    return step.started_at if step.started_at is not None else step.finished_at
