"""Windows of one view, or of several read as one: `results[10:20]`, `results[-1]`, `tail(5)`.

Where an end is counted from behind, a view that is read backwards finds it without counting the rest; a sum of files is
counted. Does not cover: how a window is cut out of several views (joining).
"""

from __future__ import annotations

import operator

from msgspec.structs import replace

from headrace.errors import InvalidInput
from headrace.results.reading import joining
from headrace.results.reading.file_view import FileView, count_interviews


def count_of(parts: tuple[FileView, ...]) -> int:
    return sum(map(count_interviews, parts))


def sliced(parts: tuple[FileView, ...], index: slice) -> tuple[FileView, ...]:
    """The views of `results[start:stop]`."""
    if index.step not in (None, 1):
        raise InvalidInput(f"Results cannot be sliced in steps of {index.step}.", fix="Use list(results)[...].")
    start = 0 if index.start is None else operator.index(index.start)
    stop = None if index.stop is None else operator.index(index.stop)
    if start < 0 and stop is None:
        return last(parts, -start)
    if start < 0 or (stop is not None and stop < 0):
        start, stop, _ = slice(start, stop).indices(count_of(parts))
    return joining.windowed(parts, start, stop if stop is None else max(start, stop))


def last(parts: tuple[FileView, ...], n: int) -> tuple[FileView, ...]:
    """The views of the last `n` interviews."""
    part, *others = parts
    end = None if others else part.view.last(max(0, n))
    if end is not None:
        return (replace(part, view=end),)
    return joining.windowed(parts, max(0, count_of(parts) - max(0, n)), None)


def one_at(parts: tuple[FileView, ...], index: int) -> tuple[FileView, ...]:
    """The views of the interview at an index, which may be negative; empty where there is none."""
    if index >= 0:
        return joining.windowed(parts, index, index + 1)
    part, *others = parts
    end = None if others or part.view.is_whole else part.view.from_end(-index - 1, -index)
    if end is not None:
        return (replace(part, view=end),)
    place = count_of(parts) + index
    return joining.windowed(parts, max(0, place), max(0, place + 1))
