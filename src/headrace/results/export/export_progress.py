"""A progress line for an export that takes long: at a terminal, after a second, on standard error; else nothing.

It is the line that runs draw (progress.refresh). Does not cover: what is printed itself (`print_csv`): no line may be
drawn into that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from headrace.progress.pace import Progress
from headrace.progress.refresh import Display
from headrace.progress.terminal_line import canvas_for
from headrace.results.export.column_source import Batch

_SHOWN_AFTER_S = 1.0


def watched(
    batches: Iterator[Batch], count: Callable[[], int | None], clock: Callable[[], float] = time.monotonic
) -> Iterator[Batch]:
    """The batches, with a line that says how many of `count` rows are through. It is asked for the count only when the
    line is first drawn; None is a count that would take as long as the export.
    """
    began_s, done = clock(), 0
    display: Display | None = None
    total: int | None = None
    try:
        for batch in batches:
            yield batch
            done += len(batch[0]) if batch else 0
            if display is None and clock() - began_s >= _SHOWN_AFTER_S:
                canvas = canvas_for(None)
                total = count() if canvas is not None else None
                display = Display(canvas if total is not None else None)
            if display is not None:
                display.show(_reading(done, total))
    finally:
        if display is not None:
            display.close(_reading(done, total))


def _reading(done: int, total: int | None) -> Progress:
    return Progress(done=done, total=max(done, total or 0))  # a run that goes on may add rows meanwhile
