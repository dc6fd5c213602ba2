"""Gives memory back where it is short: caches that can be filled again, garbage, free heap.

Higher layers register how their caches are dropped: SQLite's pages, up to 4 MB a connection. Not the source lines that
tracebacks show: those of a notebook's cells cannot be read again. Does not cover: replies that earlier runs paid for,
which are on disk (models.response_cache).
"""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from collections.abc import Callable
from typing import TypeVar

_Drop = TypeVar("_Drop", bound=Callable[[], None])
_drops: list[Callable[[], None]] = [re.purge]  # one for each kind of cache


def dropped_when_short(drop: _Drop) -> _Drop:
    """Register a function that drops a cache; it is called from any thread."""
    _drops.append(drop)
    return drop


def reclaim_memory() -> None:
    """Drop caches, collect garbage and hand free heap back to the system; sure only for large blocks."""
    _drop_caches()
    gc.collect()
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)


def _drop_caches() -> None:
    from headrace.survey.templates import forget_compiled  # here: `doctor` reads memory where minijinja may be missing

    forget_compiled()
    for drop in _drops:
        drop()
