"""`RunQueue`: the runs that wait, in the order in which they start. Does not cover: whether there is room (`hosts`).

CRITICAL comes first. Of the others, the earliest comes first, after a head start for each level above LOW: having
waited `aging_s` longer is worth one level. That order never changes while runs wait, so each level has a line that is
kept in order. Runs that pressure has stopped have lines of their own, since the pressure that keeps them out need not
keep out those behind them; and so have runs that wait aside, for a moment when they fit. A run that has claimed a host
has left its line, so that the next one is first there. Runs that no host can hold now, even beside nothing else, are
out of that order, the smallest first: until memory comes back, all others pass them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from headrace.agents.scheduler.ordered_line import Entry, OrderedLine
from headrace.agents.scheduler.scheduled_runs import NEVER_KEPT_OUT, WAITING, ScheduledRun
from headrace.agents.scheduler.skipped_runs import SkippedRuns
from headrace.priority import Priority

if TYPE_CHECKING:
    from headrace.agents.scheduler.hosts.host import Host

_LEVELS = len(Priority)
_PARTS = (0, _LEVELS, 2 * _LEVELS)  # of the list of lines: plain, stopped by pressure, aside
_HIGHEST_FIRST = tuple(reversed(Priority))
_CLAIMS_LOOKED_AT = 2  # of each level, at each end of their order: of a thousand hosts, most may be claimed
_AHEAD_OF_ALL_S = 1e9  # finite, so that CRITICAL runs have an order among themselves


class RunQueue:
    def __init__(self, aging_s: float) -> None:
        self._lines = [OrderedLine() for _ in range(3 * _LEVELS)]
        self._claiming = [OrderedLine() for _ in Priority]
        self.claims = 0
        self._too_large = OrderedLine()  # by what they need in place of a time
        self._put_off_s: dict[int, tuple[float, ScheduledRun]] = {}  # of those, since when, the earliest first
        self._head_starts = [(Priority.HIGH - level) * aging_s for level in Priority]
        self._head_starts[Priority.CRITICAL] = -_AHEAD_OF_ALL_S
        self.total = 0
        self._counts = [0] * _LEVELS
        self._aside = 0
        self.skipped_runs = SkippedRuns()

    def count(self, level: Priority) -> int:
        return self._counts[level]

    def highest(self) -> Priority:
        """The highest priority that waits; LOW where none does."""
        for level in _HIGHEST_FIRST:
            if self._counts[level]:
                return level
        return Priority.LOW

    def has_aside(self) -> bool:
        return self._aside > 0

    def add(self, run: ScheduledRun) -> None:
        run.phase = WAITING
        self._line(run).add(self._entry(run))
        self.total += 1
        self._counts[run.priority] += 1
        self._aside += run.is_aside
        self.skipped_runs.came(run)

    def remove(self, run: ScheduledRun) -> None:
        line = self._line(run)
        first = line.first
        line.remove(first if first is not None and first[2] is run else self._entry(run))
        if run.too_large_bytes:
            self._put_off_s.pop(run.id, None)
        elif run.claim is not None:
            self._give_up_claim(run, run.claim)
        self.total -= 1
        self._counts[run.priority] -= 1
        self._aside -= run.is_aside
        self.skipped_runs.left(run)

    def heads(self, hosts: Iterable[Host] = ()) -> list[Entry]:
        """The first run of each line, in order: at most twelve; and of those that have claimed a host, the first of
        each level, and those that are first on these hosts.
        """
        found = [line.first for line in self._lines if line.first is not None]
        if self.claims:
            claiming = [entry for line in self._claiming for entry in islice(line, _CLAIMS_LOOKED_AT)]
            claiming += [host.claims[0] for host in hosts if host.claims and host.claims[0] not in claiming]
            found += claiming
        found.sort()
        return found

    def claim(self, run: ScheduledRun, host: Host) -> None:
        """Have a run wait for one host, in place of any that it waited for before."""
        self.remove(run)
        run.claim = host
        self.claims += 1
        insort(host.claims, self._entry(run))
        host.touch()
        self.add(run)

    def claimed_behind(self, entry: Entry) -> Iterator[Host]:
        """Hosts that runs behind this one have claimed: of the last of each level."""
        for line in self._claiming:
            for other in islice(reversed(line), _CLAIMS_LOOKED_AT):
                if other > entry and other[2].claim is not None:
                    yield other[2].claim

    def of(self, level: Priority) -> Iterator[ScheduledRun]:
        """All runs of a level; those that wait aside come last."""
        for part in _PARTS:
            yield from (entry[2] for entry in self._lines[level + part])
        yield from (entry[2] for entry in self._claiming[level])
        yield from (entry[2] for entry in self._too_large if entry[2].priority is level)

    def drain(self) -> list[ScheduledRun]:
        """Take out all runs, when the engine closes."""
        runs = [run for level in Priority for run in self.of(level)]
        for run in runs:
            self.remove(run)
        return runs

    def put_off(self, run: ScheduledRun, needs_bytes: int, now_s: float) -> None:
        """Take a run out of the order: it needs so much, which no host has now."""
        self.remove(run)
        run.too_large_bytes = needs_bytes
        self.add(run)
        self._put_off_s[run.id] = now_s, run

    def bring_back(self, run: ScheduledRun) -> None:
        """Take a run out that is to be put in line again, also one that was put off."""
        self.remove(run)
        run.too_large_bytes = 0

    def first_put_off(self) -> tuple[float, ScheduledRun] | None:
        """The run that is out of the order for longest, and since when."""
        return next(iter(self._put_off_s.values()), None)

    def smallest_too_large(self) -> ScheduledRun | None:
        return self._too_large.first[2] if self._too_large.first else None

    def _give_up_claim(self, run: ScheduledRun, host: Host) -> None:
        run.claim = None
        self.claims -= 1
        del host.claims[bisect_left(host.claims, self._entry(run))]
        host.touch()

    def _line(self, run: ScheduledRun) -> OrderedLine:
        if run.too_large_bytes:
            return self._too_large
        if run.claim is not None:
            return self._claiming[run.priority]
        if run.is_aside:
            return self._lines[run.priority + 2 * _LEVELS]
        return self._lines[run.priority if run.returns_below == NEVER_KEPT_OUT else run.priority + _LEVELS]

    def place_s(self, since_s: float, level: Priority) -> float:
        """The place in the order of one that waits since then: the lowest is first."""
        return since_s + self._head_starts[level]

    def _entry(self, run: ScheduledRun) -> Entry:
        if run.too_large_bytes:
            return run.too_large_bytes, run.arrival, run
        return run.queued_s + self._head_starts[run.priority], run.arrival, run
