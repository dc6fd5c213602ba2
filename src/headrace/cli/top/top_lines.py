"""The lines that `top` shows: a list of files, one run, or one engine, as far as the terminal has room for them.

Does not cover: drawing them (cli.top.top_command), or reading (web.api).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap

from headrace.charts.chart_data import MemoryChart
from headrace.charts.memory_text import MOST_ROWS, memory_text
from headrace.cli.terminal import showable
from headrace.display import counted
from headrace.errors import HeadraceError
from headrace.results.plots.distributions import memory_chart
from headrace.units import format_bytes, format_short_duration
from headrace.web.api.engine_events import ENGINE_MEMORY
from headrace.web.api.engine_summary import EngineNow, EngineSummary, OneEngine, engine_summary_of
from headrace.web.api.node_figures import NodeFigures
from headrace.web.api.run_list import ListedFile, listed_files
from headrace.web.api.run_summary import RunSummary, history_at, summary_of
from headrace.web.engine_pictures import engine_memory_chart
from headrace.web.shown_files import ShownFile, ShownFiles, ShownKind
from headrace.web.shown_texts import ShownFigure, age

_LONGEST, _LONGEST_NEEDS = 60, 300
_FEWEST_ROWS = 3  # of a memory line: with fewer, the levels cover it
_MOST_IN_SLOTS, _MOST_HEARTBEATS = 8, 8
_MOST_NODES, _LONGEST_NODE = 8, 160
_COLUMNS = ("file", "state", "progress", "failed", "cost", "memory", "size", "changed")
_SHORTEST = 8  # of a file's name
_GAP = "  "


@dataclass(frozen=True, slots=True)
class Room:
    """How wide lines may be, and how many there may be: None where they are not drawn on a screen."""

    columns: int
    rows: int | None
    has_unicode: bool


def top_lines(files: ShownFiles, room: Room) -> list[str]:
    found, is_cut = files.latest()
    if len(found) == 1:
        show = _run_lines if found[0].kind is ShownKind.RUN else _engine_lines
        try:
            return show(files, found[0], room)
        except HeadraceError as error:  # a file that cannot be read is listed as it is among others
            return [*list_lines(listed_files(files, found), room), *_wrapped(error.message, room)]
    lines = list(list_lines(listed_files(files, found), room))
    if is_cut:
        lines.append(f"there are more: these are the latest {len(found):,}")
    return lines


def list_lines(found: list[ListedFile], room: Room) -> Iterator[str]:
    """A table with as many files as there is room for, and what to do about those of them that need a key."""
    rows = [_COLUMNS, *map(_row, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    places = list(range(len(_COLUMNS)))
    if room.rows is not None:  # elsewhere than on a screen, a line is as long as it is
        places = _fitting(widths, room.columns)
    left_out = [name for place, name in enumerate(_COLUMNS) if place not in places]
    signs = wrap(f"too narrow for {', '.join(left_out)}", room.columns) if left_out else []
    needs = [f"{each.name}: {each.needs}" for each in found[: room.rows] if each.needs]
    signs += [line for each in needs for line in _wrapped(each, room)]
    if room.rows is not None:
        signs = signs[: room.rows // 2]
    shown = rows if room.rows is None else rows[: room.rows - len(signs)]
    for row in shown:
        yield _GAP.join(showable(row[place], widths[place], "utf-8").ljust(widths[place]) for place in places).rstrip()
    yield from signs


def _wrapped(text: str, room: Room) -> list[str]:
    """A text in lines that fit a screen; elsewhere it is as long as it is."""
    text = showable(text, _LONGEST_NEEDS, "utf-8")
    return [text] if room.rows is None else wrap(text, room.columns)


def _fitting(widths: list[int], columns: int) -> list[int]:
    """The places of the columns that a screen has room for, in order; the first two are always there, and a long name
    is cut for them.
    """
    widths[0] = max(_SHORTEST, min(widths[0], columns - len(_GAP) - widths[1]))
    found, left = [0, 1], columns - widths[0] - len(_GAP) - widths[1]
    for place in range(2, len(widths)):
        if len(_GAP) + widths[place] <= left:
            found.append(place)
            left -= len(_GAP) + widths[place]
    return found


def _row(line: ListedFile) -> tuple[str, ...]:
    name, texts = showable(line.name, _LONGEST, "utf-8"), line.texts
    return (name, line.state, texts.progress, texts.failed, texts.cost, texts.memory, texts.size, texts.changed)


def _run_lines(files: ShownFiles, file: ShownFile, room: Room) -> list[str]:
    run: RunSummary = summary_of(files, file)
    lines = [f"{showable(run.name, _LONGEST, 'utf-8')}: {run.state}, {run.percent} %"]
    if said := run.trouble or run.ended or run.needs:
        lines += _wrapped(said, room)
    lines += _figures(run.figures, room)
    if run.live is not None and run.live.notice:
        lines.append(run.live.notice)
    if run.live is not None:
        lines += _nodes(run.live.nodes)
    for each in run.endpoints:
        calls = f"{each.calls:,} calls, {each.busy:,} told to wait, {each.failures:,} failed"
        lines.append(f"{each.model}: {calls}. {each.now}")
    points = history_at(file)
    return lines + _memory(memory_chart(points, run.name, run.done) if points else None, room, len(lines))


def _engine_lines(files: ShownFiles, file: ShownFile, room: Room) -> list[str]:
    engine: EngineSummary = engine_summary_of(file)
    lines = [f"{showable(engine.name, _LONGEST, 'utf-8')}: {engine.state}"]
    if said := engine.trouble or engine.needs:
        lines += _wrapped(said, room)
    lines += _figures(engine.figures, room)
    if engine.live is not None:
        lines += _now(engine.live)
    chart = engine_memory_chart(engine, ENGINE_MEMORY.call(files, OneEngine(file.id)))
    return lines + _memory(chart, room, len(lines))


def _nodes(nodes: tuple[NodeFigures, ...]) -> Iterator[str]:
    yield from (showable(each.now, _LONGEST_NODE, "utf-8") for each in nodes[:_MOST_NODES])
    if len(nodes) > _MOST_NODES:
        yield f"{_GAP}and {counted(len(nodes) - _MOST_NODES, 'node')} more"


def _now(live: EngineNow) -> Iterator[str]:
    queue = ", ".join(f"{level} {count:,}" for level, count in live.queue.items())
    yield f"queue (at most {live.queue_depth:,} each): {queue}"
    if live.waiting_for:
        yield f"{_GAP}the first waits for {live.waiting_for}"
    for each in live.in_slots[:_MOST_IN_SLOTS]:
        does = "stopping" if each.is_stopping else "waits for an answer" if each.is_waiting else "runs"
        memory = f"{format_bytes(each.memory_bytes)}, {format_bytes(each.reserved_bytes)} reserved"
        where = f" on {showable(each.host, _LONGEST, 'utf-8')}" if live.nodes else ""
        yield f"run {each.run} {showable(each.name, _LONGEST, 'utf-8')}: {each.priority}, {does}{where}, {memory}"
    if len(live.in_slots) > _MOST_IN_SLOTS:
        yield f"{_GAP}and {counted(len(live.in_slots) - _MOST_IN_SLOTS, 'run')} more"
    yield from _nodes(live.nodes)
    for beat in live.heartbeats[:_MOST_HEARTBEATS]:
        last = "none yet" if beat.last_run_at is None else f"the last {age(beat.last_run_at)}"
        went = f"{counted(beat.runs, 'beat')} ({last}), {beat.failures:,} failed, {beat.skips:,} skipped"
        name = showable(beat.name, _LONGEST, "utf-8")
        yield f"heartbeat {name}, every {format_short_duration(beat.every_s)}: {went}"
    if len(live.heartbeats) > _MOST_HEARTBEATS:
        yield f"{_GAP}and {counted(len(live.heartbeats) - _MOST_HEARTBEATS, 'heartbeat')} more"
    for circuit in live.circuits:
        yield f"{circuit.kind} fails and is refused"
    for endpoint in live.endpoints:
        yield endpoint.words


def _figures(figures: Iterable[ShownFigure], room: Room) -> list[str]:
    """One below the other; on a screen side by side where that fits, for its rows are few."""
    shown = [figure for figure in figures if figure.text]
    half = -(-len(shown) // 2)
    left, right = _column(shown[:half]), _column(shown[half:])
    across = max(map(len, left))
    if room.rows is None or across + max(map(len, right), default=0) > room.columns:
        return _column(shown)
    return [f"{one.ljust(across)}{other}".rstrip() for one, other in zip_longest(left, right, fillvalue="")]


def _column(figures: list[ShownFigure]) -> list[str]:
    width = max((len(figure.name) for figure in figures), default=0)
    return [f"{_GAP}{figure.name:<{width}}{_GAP}{figure.text}" for figure in figures]


def _memory(chart: MemoryChart | None, room: Room, above: int) -> list[str]:
    """The memory line in the rows that are left; none where they are too few."""
    if chart is None:
        return []
    rows = MOST_ROWS
    if room.rows is not None:
        beside = 3 + len(chart.notes)  # the title, the axis and its seconds
        rows = min(rows, room.rows - above - beside)
    if rows < _FEWEST_ROWS:
        return []
    return memory_text(chart, room.columns, unicode=room.has_unicode, rows=rows).splitlines()
