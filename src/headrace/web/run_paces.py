"""How fast each run goes that somebody looks at: kept between looks, for the latest few runs.

A run that was not looked at before has its pace from the history in its file, so that a first look has one too.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from time import time
from typing import NamedTuple

from headrace.memory.bounded_history import HistoryPoint
from headrace.progress.pace import Pace, Progress

_MOST_RUNS = 32
_STALE_AFTER_S = 15.0  # of a run that nobody looked at meanwhile, its history knows more


class RunPace(NamedTuple):
    """Interviews a second lately, and the seconds that the rest will take; None where nothing can be said yet."""

    per_s: float | None
    left_s: float | None


class _KeptPace(NamedTuple):
    pid: int
    read_at: float
    pace: Pace


class RunPaces:
    """`clock` gives seconds since 1970, as a history does. Operations ask from several threads."""

    def __init__(self, clock: Callable[[], float] = time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[Path, _KeptPace] = OrderedDict()

    def of(self, path: Path, pid: int, progress: Progress, history: Callable[[], Iterable[HistoryPoint]]) -> RunPace:
        """The pace with this reading; `pid` tells one run of the file from the next, `history` is read for a run that
        is new here.
        """
        now = self._clock()
        pace, kept = None, self._kept.get(path)
        if kept is not None and kept.pid == pid and 0 <= now - kept.read_at < _STALE_AFTER_S:
            pace = kept.pace
        if pace is None:
            pace = _from_history(history(), progress)
        with self._lock:
            pace.read(progress, now)
            self._kept[path] = _KeptPace(pid, now, pace)
            self._kept.move_to_end(path)
            while len(self._kept) > _MOST_RUNS:
                self._kept.popitem(last=False)
            return RunPace(pace.recent_per_s, None if progress.is_paused else pace.left_s(progress))


def _from_history(points: Iterable[HistoryPoint], progress: Progress) -> Pace:
    """The pace of the file's latest run. Its points count every result in the file, a progress those of its own plan:
    what both have in common is how they grow.
    """
    pace, kept = Pace(), list(points)
    latest = [point for point in kept if point.run == kept[-1].run]
    for point in latest:
        done = point.done - latest[-1].done + progress.done
        pace.read(Progress(done=done, total=progress.total), point.at)
    return pace
