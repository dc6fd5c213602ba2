"""The streams there are: the list of files, and one run. Each is declared as an operation is: parameters, and the type
of its events.

Does not cover: reading once for all who watch (web.live.watches).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.errors import InvalidInput
from headrace.web.api.run_list import ListedFile, ListParameters, listed_file
from headrace.web.api.run_summary import OneRun, RunSummary, summary_of
from headrace.web.live.watches import LiveChange, Parts, ReadParts
from headrace.web.shown_files import ShownFiles

_LIVE_STATES = {"running", "paused", "stopping"}


class RunEvent(msgspec.Struct, frozen=True):
    """How a run stands now. `cursor` is the event's id."""

    cursor: str
    run: RunSummary


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


class _RunSource:
    """Reads a run; one that no process runs is read anew only when its file has changed."""

    def __init__(self, files: ShownFiles, asked: OneRun) -> None:
        self._files = files
        self._id = asked.run
        self._read_at: float | None = None

    def __call__(self) -> Parts | None:
        read_at, self._read_at = self._read_at, None  # so that a reading that fails is tried again
        file = self._files.one(self._id)
        changed_at = file.changed_at
        run = summary_of(self._files, file) if changed_at != read_at else None
        if run is None or run.state not in _LIVE_STATES:
            self._read_at = changed_at
        return None if run is None else {run.id: run}


def _list_source(files: ShownFiles, _: ListParameters) -> ReadParts:
    def read() -> Parts:
        return {file.id: listed_file(files, file) for file in files.latest()[0]}

    return read


def _run_message(change: LiveChange) -> dict[str, Any]:
    return {"cursor": change.cursor, "run": change.parts[0]}


def _list_message(change: LiveChange) -> dict[str, Any]:
    return {"cursor": change.cursor, "files": change.parts, "total": change.total, "truncated": change.is_cut}


RUN_EVENTS = EventStream(
    name="run",
    summary="How a run stands, each time that changes, at most once a second.",
    path="/runs/{run}/events",
    parameters=OneRun,
    event=RunEvent,
    source=_RunSource,
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

STREAMS = (RUN_EVENTS, LIST_EVENTS)
