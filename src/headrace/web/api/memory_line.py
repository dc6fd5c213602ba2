"""The memory of a run file's runs over time, from the history in the file."""

from __future__ import annotations

import msgspec

from headrace.memory.bounded_history import HistoryPoint
from headrace.web.api.run_summary import OneRun, history_at
from headrace.web.operations import PageOperation
from headrace.web.shown_files import ShownFiles


class MemoryPoint(msgspec.Struct, frozen=True):
    """The most that was used in the `seconds` from `second` on; `stored_bytes` is the size of the file then."""

    second: int
    seconds: int
    run: int
    memory_bytes: int
    budget_bytes: int
    stored_bytes: int
    done: int

    @classmethod
    def of(cls, point: HistoryPoint) -> MemoryPoint:
        return cls(
            second=point.second,
            seconds=point.seconds,
            run=point.run,
            memory_bytes=point.memory_bytes,
            budget_bytes=point.budget_bytes,
            stored_bytes=point.stored_bytes,
            done=point.done,
        )


class MemoryLine(msgspec.Struct, frozen=True):
    """At most some hundred points, however long the runs took."""

    points: list[MemoryPoint]


def _memory_line(files: ShownFiles, asked: OneRun) -> MemoryLine:
    return MemoryLine([MemoryPoint.of(point) for point in history_at(files.one(asked.run))])


MEMORY_LINE = PageOperation(
    name="memory",
    summary="The memory of a run's processes over time, against its budget.",
    path="/runs/{run}/memory",
    parameters=OneRun,
    reply=MemoryLine,
    call=_memory_line,
)
