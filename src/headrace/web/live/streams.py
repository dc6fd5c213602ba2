"""The streams there are: the list of files, a run, an engine, and one of its agent runs. Each is declared as
an operation is: parameters, and the type of its events.

Does not cover: reading once for all who watch (web.live.watches).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.errors import InvalidInput
from headrace.web.api.agent_runs import AGENT_RUN, EMITTED, EmittedAsked, OneAgentRun
from headrace.web.api.engine_summary import EngineSummary, OneEngine, engine_file, engine_summary_of
from headrace.web.api.run_list import ListedFile, ListParameters, listed_files
from headrace.web.api.run_summary import OneRun, RunSummary, summary_of
from headrace.web.live.watches import LiveChange, Parts, ReadParts
from headrace.web.shown_files import ShownFile, ShownFiles


class RunEvent(msgspec.Struct, frozen=True):
    """How a run stands now. `cursor` is the event's id."""

    cursor: str
    run: RunSummary


class EngineStateEvent(msgspec.Struct, frozen=True):
    """How an engine stands now. `cursor` is the event's id."""

    cursor: str
    engine: EngineSummary


class AgentRunNow(msgspec.Struct, frozen=True, kw_only=True):
    """How far an agent run is: how many steps, events and emitted events there are of it, at most as many as are shown,
    and when the latest of each was.
    """

    number: int
    state: str
    attempts: int
    steps: int
    step_at: float | None
    events: int
    event_at: float | None
    emitted: int
    emitted_at: float | None


class AgentRunEvent(msgspec.Struct, frozen=True):
    """How far an agent run is now. `cursor` is the event's id."""

    cursor: str
    run: AgentRunNow


class ListEvent(msgspec.Struct, frozen=True):
    """The files that have changed, of so many; `truncated` where more have than are told here."""

    cursor: str
    files: list[ListedFile]
    total: int
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStream:
    """`path` is below /api/v1. `source` makes the function that reads; `message` is the JSON of an event."""

    name: str
    summary: str
    path: str
    parameters: type[msgspec.Struct]
    event: type[msgspec.Struct]
    source: Callable[[ShownFiles, Any], ReadParts]
    message: Callable[[LiveChange], dict[str, Any]]

    def parsed(self, given: dict[str, str]) -> msgspec.Struct:
        try:
            return msgspec.convert(given, self.parameters, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"The request to {self.path} cannot be read: {error}.") from None


class _WatchedFile:
    """Reads a run or an engine; one that no process has open is read anew only when its file has changed."""

    def __init__(self, find: Callable[[], ShownFile], read: Callable[[ShownFile], RunSummary | EngineSummary]) -> None:
        self._find = find
        self._read = read
        self._read_at: float | None = None

    def __call__(self) -> Parts | None:
        read_at, self._read_at = self._read_at, None  # so that a reading that fails is tried again
        file = self._find()
        changed_at = file.changed_at
        found = self._read(file) if changed_at != read_at else None
        if found is None or not found.goes_on:
            self._read_at = changed_at
        return None if found is None else {found.id: found}


def _run_source(files: ShownFiles, asked: OneRun) -> ReadParts:
    return _WatchedFile(lambda: files.one(asked.run), lambda file: summary_of(files, file))


def _engine_source(files: ShownFiles, asked: OneEngine) -> ReadParts:
    return _WatchedFile(lambda: engine_file(files, asked.engine), engine_summary_of)


def _agent_run_source(files: ShownFiles, asked: EmittedAsked) -> ReadParts:
    def read() -> Parts:
        shown = AGENT_RUN.call(files, OneAgentRun(asked.engine, asked.number))
        emitted = EMITTED.call(files, asked).events
        now = AgentRunNow(
            number=asked.number,
            state=shown.run.state,
            attempts=shown.run.attempts,
            steps=len(shown.steps),
            step_at=shown.steps[-1].finished_at if shown.steps else None,
            events=len(shown.events),
            event_at=shown.events[-1].at if shown.events else None,
            emitted=len(emitted),
            emitted_at=emitted[-1].at if emitted else None,
        )
        return {str(asked.number): now}

    return read


def _list_source(files: ShownFiles, _: ListParameters) -> ReadParts:
    def read() -> Parts:
        return {line.id: line for line in listed_files(files, files.latest()[0])}

    return read


def _run_message(change: LiveChange) -> dict[str, Any]:
    return {"cursor": change.cursor, "run": change.parts[0]}


def _engine_message(change: LiveChange) -> dict[str, Any]:
    return {"cursor": change.cursor, "engine": change.parts[0]}


def _list_message(change: LiveChange) -> dict[str, Any]:
    return {"cursor": change.cursor, "files": change.parts, "total": change.total, "truncated": change.is_cut}


RUN_EVENTS = EventStream(
    name="run",
    summary="How a run stands, each time that changes, at most once a second.",
    path="/runs/{run}/events",
    parameters=OneRun,
    event=RunEvent,
    source=_run_source,
    message=_run_message,
)

ENGINE_LIVE = EventStream(
    name="engine",
    summary="How an engine stands, each time that changes, at most once a second.",
    path="/engines/{engine}/live",
    parameters=OneEngine,
    event=EngineStateEvent,
    source=_engine_source,
    message=_engine_message,
)

AGENT_RUN_LIVE = EventStream(
    name="agent_run",
    summary="How far an agent run is, each time that changes, at most once a second.",
    path="/engines/{engine}/runs/{number}/live",
    parameters=EmittedAsked,
    event=AgentRunEvent,
    source=_agent_run_source,
    message=_run_message,
)

LIST_EVENTS = EventStream(
    name="files",
    summary="The files of this page that have changed, at most once a second.",
    path="/events",
    parameters=ListParameters,
    event=ListEvent,
    source=_list_source,
    message=_list_message,
)

STREAMS = (RUN_EVENTS, LIST_EVENTS, ENGINE_LIVE, AGENT_RUN_LIVE)
