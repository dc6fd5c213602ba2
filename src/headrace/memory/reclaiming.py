"""Gives memory back where it is short: caches that can be filled again, garbage, free heap.

Higher layers register how their caches are dropped: SQLite's pages, up to 4 MB a connection. Not the source lines that
tracebacks show: those of a notebook's cells cannot be read again. Does not cover: replies that earlier runs paid for,
which are on disk (models.response_cache).
"""

from __future__ import annotations

import ctypes
import functools
import gc
import re
import sys
from collections.abc import Callable
from typing import TypeVar

from headrace.memory.measure.os_limits import return_large_blocks

_Drop = TypeVar("_Drop", bound=Callable[[], None])
_drops: list[Callable[[], None]] = [re.purge]  # one for each kind of cache
_quick_drops: list[Callable[[], None]] = []  # of these, those of caches that are filled again in no time


def dropped_when_short(drop: _Drop) -> _Drop:
    """Register a function that drops a cache; it is called from any thread."""
    _drops.append(drop)
    return drop


def dropped_often(drop: _Drop) -> _Drop:
    """The same for a cache that is filled again in no time: it is also dropped a hundred times a second."""
    _quick_drops.append(drop)
    return dropped_when_short(drop)


def reclaim_memory() -> None:
    """Drop caches, collect garbage and hand free heap back to the system; sure only for large blocks.

    From now on large blocks go back as soon as they are freed. The C library keeps those that it has seen freed before:
    after a few answers of a megabyte memory never fell below the level that had been entered, and a survey went on one
    interview at a time to its end.
    """
    return_large_blocks()
    _drop_caches()
    gc.collect()
    return_free_heap()


def return_free_heap() -> None:
    """Hand pages of the heap that hold nothing back to the system: a millisecond or less."""
    trim = _trim_heap()
    if trim is not None:
        trim(0)


@functools.cache  # opening the library makes a class, which is garbage of some kilobytes each time
def _trim_heap() -> Callable[[int], object] | None:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None  # not in musl


def reclaim_quickly() -> None:
    """Drop caches that are filled again in no time, and hand free heap back: a millisecond or less."""
    for drop in _quick_drops:
        drop()
    return_free_heap()


class LevelReclaim:
    """Reclaims when a pressure level is entered, and once more `again_after_s` later: by then what was in flight has
    been freed.
    """

    def __init__(self, again_after_s: float) -> None:
        self._again_after_s = again_after_s
        self._again_at_s: float | None = None

    def entered(self, now_s: float) -> None:
        self._again_at_s = now_s + self._again_after_s
        reclaim_memory()

    def is_due_again(self, now_s: float) -> bool:
        """Return True once after each level that was entered."""
        if self._again_at_s is None or now_s < self._again_at_s:
            return False
        self._again_at_s = None
        return True


def _drop_caches() -> None:
    from headrace.survey.templates import forget_compiled  # here: `doctor` reads memory where minijinja may be missing

    forget_compiled()
    for drop in _drops:
        drop()
