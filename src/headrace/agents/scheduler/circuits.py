"""`Circuits`: a circuit breaker for each kind of run, and the runs that an open one holds back.

Failures and crashes count. Running out of memory does not: it says something of the budget, not of the code (`exits`).
Does not cover: the breaker itself (models.endpoint.breaker).
"""

from __future__ import annotations

import heapq

from headrace.agents.scheduler.events import Notice, RecordNotice
from headrace.agents.scheduler.scheduled_runs import HELD, ScheduledRun
from headrace.exit_causes import ExitCause
from headrace.limits import BreakerLimits
from headrace.models.endpoint.breaker import Breaker, Circuit

_FAILURES = (ExitCause.FAILED, ExitCause.LOST)


class Circuits:
    """One breaker for each kind that has failed. Kinds are functions of a program, so there are few."""

    def __init__(self, limits: BreakerLimits) -> None:
        self._limits = limits
        self._breakers: dict[str, Breaker] = {}
        self._held: dict[str, list[tuple[float, int, ScheduledRun]]] = {}  # by kind, in order of submission

    def accepts(self, run: ScheduledRun, now_s: float) -> bool:
        """Whether a submission may enter the queue. The first one after the cool-down becomes the circuit's probe."""
        breaker = self._breakers.get(run.kind)
        if breaker is None or breaker.circuit is Circuit.CLOSED:
            return True
        run.is_probe = not self._held.get(run.kind) and breaker.may_try(now_s)
        return run.is_probe

    def refuses(self, kind: str, now_s: float) -> bool:
        """Whether a submission would be refused. Unlike `accepts`, this makes no run a probe."""
        breaker = self._breakers.get(kind)
        if breaker is None or breaker.circuit is Circuit.CLOSED:
            return False
        return bool(self._held.get(kind)) or breaker.next_probe_s is None or now_s < breaker.next_probe_s

    def next_probe_s(self, kind: str) -> float | None:
        breaker = self._breakers.get(kind)
        return breaker.next_probe_s if breaker else None

    def holds(self, run: ScheduledRun) -> bool:
        """Whether a run that was accepted earlier must wait until its kind's circuit closes."""
        if not self._breakers or run.is_probe:
            return False
        breaker = self._breakers.get(run.kind)
        return breaker is not None and breaker.circuit is not Circuit.CLOSED

    def hold(self, run: ScheduledRun) -> None:
        run.phase = HELD
        heapq.heappush(self._held.setdefault(run.kind, []), (run.submitted_s, run.arrival, run))

    def holds_any(self) -> bool:
        return bool(self._held)

    def settled(self, run: ScheduledRun, cause: ExitCause | None, now_s: float) -> RecordNotice | None:
        """Count how a run ended, None where it was parked; return a notice if that opened or closed its circuit."""
        breaker = self._breakers.get(run.kind)
        if breaker is None and cause in _FAILURES:
            breaker = self._breakers[run.kind] = Breaker(self._limits)
        if breaker is None or (breaker.circuit is Circuit.HALF_OPEN and not run.is_probe):
            return None
        before = breaker.circuit
        self._count(breaker, run, cause, now_s)
        run.is_probe = False
        return _change(run.kind, before, breaker.circuit)

    def crashed(self, run: ScheduledRun, now_s: float) -> RecordNotice | None:
        """Count a crash of the run's worker as a failure of its kind, though the run is started again."""
        breaker = self._breakers.setdefault(run.kind, Breaker(self._limits))
        if breaker.circuit is Circuit.HALF_OPEN and not run.is_probe:
            return None
        before, run.is_probe = breaker.circuit, False
        breaker.failed(now_s)
        return _change(run.kind, before, breaker.circuit)

    def released(self, now_s: float) -> list[ScheduledRun]:
        """Take out the held runs that may go on: all of a closed circuit, and a probe of each that has cooled down."""
        found: list[ScheduledRun] = []
        for kind in list(self._held):
            found += self._released(kind, self._breakers[kind], now_s)
        return found

    def release(self, run: ScheduledRun) -> None:
        """Take out a run that was cancelled."""
        kept = [entry for entry in self._held.pop(run.kind) if entry[2] is not run]
        heapq.heapify(kept)
        if kept:
            self._held[run.kind] = kept

    def drain(self) -> list[ScheduledRun]:
        runs = [entry[2] for held in self._held.values() for entry in held]
        self._held.clear()
        return runs

    def next_tick_s(self) -> float | None:
        due = [self.next_probe_s(kind) for kind in self._held]
        return min((at_s for at_s in due if at_s is not None), default=None)

    def open_kinds(self) -> dict[str, float | None]:
        return {
            kind: breaker.next_probe_s
            for kind, breaker in self._breakers.items()
            if breaker.circuit is not Circuit.CLOSED
        }

    def _count(self, breaker: Breaker, run: ScheduledRun, cause: ExitCause | None, now_s: float) -> None:
        if cause is ExitCause.DONE:
            breaker.succeeded()
        elif cause in _FAILURES:
            breaker.failed(now_s)
        elif run.is_probe:
            breaker.abandoned(now_s)

    def _released(self, kind: str, breaker: Breaker, now_s: float) -> list[ScheduledRun]:
        if breaker.circuit is Circuit.CLOSED:
            return [entry[2] for entry in self._held.pop(kind)]
        if not breaker.may_try(now_s):
            return []
        held = self._held[kind]
        probe = heapq.heappop(held)[2]
        probe.is_probe = True
        if not held:
            del self._held[kind]
        return [probe]


def _change(kind: str, before: Circuit, after: Circuit) -> RecordNotice | None:
    if after is Circuit.OPEN and before is not Circuit.OPEN:
        return RecordNotice(notice=Notice.CIRCUIT_OPENED, subject=kind)
    if after is Circuit.CLOSED and before is not Circuit.CLOSED:
        return RecordNotice(notice=Notice.CIRCUIT_CLOSED, subject=kind)
    return None
