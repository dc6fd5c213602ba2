"""What an engine did and why: its events page by page, and those that stand on its memory line."""

from __future__ import annotations

from bisect import bisect_left
from itertools import groupby
from typing import Annotated, TypeVar

import msgspec

from headrace.agents.scheduler.events import NOT_FOR_MEMORY
from headrace.memory.bounded_history import HistoryPoint
from headrace.store.engine_file.engine_queries import EventLine, events_before
from headrace.store.engine_file.engine_reader import reading_engine
from headrace.web.api.engine_summary import OneEngine, engine_file
from headrace.web.api.memory_line import MemoryPoint
from headrace.web.operations import READ_TIMEOUT_S, PageOperation
from headrace.web.page_cursors import cursor_of, place_at
from headrace.web.shown_files import ShownFiles

# Events of memory, in the order in which a reader asks for them: what happened to runs first.
MEMORY_EVENTS = (
    "preempted",
    "killed",
    "out of memory",
    "lost",
    "skipped",
    "waits for memory",
    "heartbeat skipped",
    "reclaimed",
)
_MOST_ON_THE_LINE = 500
_READ_AT_ONCE, _MOST_READ = 500, 2_500
MOST_EVENTS = 200
PageLength = Annotated[int, msgspec.Meta(ge=1, le=MOST_EVENTS)]


class ReadingShown(msgspec.Struct, frozen=True):
    """The memory reading that an event followed from; `percent` is of the budget."""

    used_bytes: int
    budget_bytes: int
    pressure: str
    percent: int = 0


class EventShown(msgspec.Struct, frozen=True):
    """One event, or several that followed each other and differ in nothing but their time: then there were `times`,
    the latest was `at`, with this memory reading, and the first at `since`.
    """

    at: float
    run: int | None
    what: str
    reason: str
    reading: ReadingShown | None
    times: int = 1
    since: float | None = None

    @classmethod
    def of(cls, event: EventLine) -> EventShown:
        return cls(event.at, event.run, event.what, event.reason, _reading(event.reading))


_Event = TypeVar("_Event", EventLine, EventShown)


def folded(events: list[EventShown]) -> list[EventShown]:
    """Events, the latest first, with those that follow each other and tell the same as one."""
    return [_as_one(row) for row in _alike(events)]


def _as_one(row: list[EventShown]) -> EventShown:
    return row[0] if len(row) == 1 else msgspec.structs.replace(row[0], times=len(row), since=row[-1].at)


def _alike(events: list[_Event]) -> list[list[_Event]]:
    return [list(row) for _, row in groupby(events, key=lambda event: (event.what, event.run, event.reason))]


class EventsAsked(msgspec.Struct, frozen=True):
    """`what` is a kind of event, `memory` all of those that memory caused; empty is everything."""

    engine: str
    what: str = ""
    run: Annotated[int, msgspec.Meta(ge=1, le=1 << 62)] | None = None
    limit: PageLength = 50
    cursor: str = ""


class EventsPage(msgspec.Struct, frozen=True):
    """The latest first; `next` is the cursor of the next page, null where there is none."""

    events: list[EventShown]
    next: str | None


class PlacedEvent(msgspec.Struct, frozen=True):
    """An event and where it stands on the line, in seconds of running."""

    second: float
    event: EventShown


class EngineMemoryLine(msgspec.Struct, frozen=True):
    """The memory of a file's engines over time, and the latest events of memory, oldest first; `truncated` where there
    were more.
    """

    points: list[MemoryPoint]
    events: list[PlacedEvent]
    truncated: bool


class _EventPlace(msgspec.Struct, frozen=True):
    before: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


def _reading(text: str | None) -> ReadingShown | None:
    """None where it is not as an engine writes it: an event is worth showing without it."""
    try:
        reading = None if text is None else msgspec.json.decode(text, type=ReadingShown)
    except msgspec.MsgspecError:
        return None
    if reading is None:
        return None
    percent = round(100 * reading.used_bytes / max(1, reading.budget_bytes))
    return msgspec.structs.replace(reading, percent=percent)


def _events(files: ShownFiles, asked: EventsAsked) -> EventsPage:
    file = engine_file(files, asked.engine)
    question = (file.id, asked.what, str(asked.run))
    before = place_at(asked.cursor, question, _EventPlace).before if asked.cursor else None
    is_memory = asked.what == "memory"
    what = MEMORY_EVENTS if is_memory else (asked.what,) if asked.what else ()
    found, is_cut = list[EventLine](), True
    with reading_engine(file.path, READ_TIMEOUT_S) as reader:
        while is_cut and len(found) < _MOST_READ and len(_alike(found)) <= asked.limit:
            read = events_before(
                reader,
                run=asked.run,
                what=what,
                without=NOT_FOR_MEMORY if is_memory else (),
                before=found[-1].id if found else before,
                most=_READ_AT_ONCE,
            )
            found += read
            is_cut = len(read) == _READ_AT_ONCE
    rows = _alike(found)
    is_cut = is_cut or len(rows) > asked.limit
    rows = rows[: asked.limit]
    following = cursor_of(_EventPlace(rows[-1][-1].id), question) if is_cut and rows else None
    return EventsPage([_as_one([EventShown.of(each) for each in row]) for row in rows], following)


def _memory(files: ShownFiles, asked: OneEngine) -> EngineMemoryLine:
    file = engine_file(files, asked.engine)
    with reading_engine(file.path, READ_TIMEOUT_S) as reader:
        points = reader.memory_history()
        found = events_before(reader, what=MEMORY_EVENTS, without=NOT_FOR_MEMORY, most=_MOST_ON_THE_LINE + 1)
    return EngineMemoryLine(
        [MemoryPoint.of(point) for point in points],
        [PlacedEvent(_second_at(points, each.at), EventShown.of(each)) for each in found[:_MOST_ON_THE_LINE]][::-1],
        len(found) > _MOST_ON_THE_LINE,
    )


def _second_at(points: list[HistoryPoint], at: float) -> float:
    """Where a moment stands on the line, which is drawn from point to point: between the two it lies between."""
    place = bisect_left(points, at, key=lambda point: point.at)
    if place == len(points):
        return float(points[-1].second) if points else 0.0
    after = points[place]
    before = points[place - 1] if place else after
    if before.run != after.run or before.at >= after.at:
        return float(after.second)
    return before.second + (after.second - before.second) * (at - before.at) / (after.at - before.at)


ENGINE_EVENTS = PageOperation(
    name="engine_events",
    summary="What an engine did and why, the latest first, each with the memory reading behind it.",
    path="/engines/{engine}/events",
    parameters=EventsAsked,
    reply=EventsPage,
    call=_events,
)
ENGINE_MEMORY = PageOperation(
    name="engine_memory",
    summary="The memory of a file's engines over time, with the events that memory caused.",
    path="/engines/{engine}/memory",
    parameters=OneEngine,
    reply=EngineMemoryLine,
    call=_memory,
)
