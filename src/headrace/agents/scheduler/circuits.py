"""`Circuits`: a circuit breaker for each kind of run, and the runs that an open one holds back.

    how an attempt ends          for the circuit of its kind
    failed, lost                 a failure: of its run, which counts once however often it is tried again, and once
                                 with all its children, which one crash of their worker ends together
    done, parked                 a success
    failed by a model's          nothing: the endpoint has a breaker of its own
      endpoint
    lost with its parent         nothing: that is its parent's failure
    anything else                nothing: out of memory says something of the budget, not of the code (`exits`)

An open circuit refuses new submissions and holds runs that were accepted and have never started. A run that has started
before goes on, whether it was parked, preempted or lost, and so does a child, whose parent waits for it: refusing them
would lose work under way. A kind may have limits of its own, or none. Does not cover: the breaker itself
(models.endpoint.breaker).
"""

from __future__ import annotations

import heapq

from headrace.agents.scheduler.events import Notice, RecordNotice
from headrace.agents.scheduler.scheduled_runs import HELD, ScheduledRun
from headrace.exit_causes import ExitCause
from headrace.limits import BreakerLimits, KindBreaker
from headrace.models.endpoint.breaker import Breaker, Circuit

_DONE = ExitCause.DONE  # by itself: see `scheduled_runs`
_IS_SUCCESS = {ExitCause.DONE: True, ExitCause.PARKED: True, ExitCause.FAILED: False, ExitCause.LOST: False}


class Circuits:
    """One breaker for each kind that has failed. Kinds are functions of a program, so there are few."""

    def __init__(self, limits: BreakerLimits | None) -> None:
        self._limits = limits
        self._by_kind: dict[str, BreakerLimits | None] = {}  # kinds whose limits are not, or were not, the engine's
        self._breakers: dict[str, Breaker] = {}
        self._probes: dict[int, Breaker] = {}  # runs that decide about a half-open circuit
        self._held: dict[str, list[tuple[float, int, ScheduledRun]]] = {}  # by kind, in order of submission

    def learn(self, kind: str, breaker: KindBreaker) -> RecordNotice | None:
        """Note the limits that a submission's kind has now. Other limits than before begin with a closed circuit."""
        limits = self._limits if breaker == "engine" else breaker
        if limits == self._limits_of(kind):
            return None
        self._by_kind[kind] = limits
        dropped = self._breakers.pop(kind, None)
        return _change(kind, dropped.circuit, Circuit.CLOSED) if dropped else None

    def accepts(self, run: ScheduledRun, now_s: float) -> bool:
        """Whether a submission may enter the queue; the circuit may make it a probe."""
        if goes_on(run) or not self._is_broken(run.kind):
            return True
        return not self._held.get(run.kind) and self._may_probe(run, self._breakers[run.kind], now_s)

    def refuses(self, kind: str, breaker: KindBreaker, now_s: float) -> bool:
        """Whether a submission would be refused. Unlike `accepts`, this makes no run a probe."""
        limits = self._limits if breaker == "engine" else breaker
        if not self._is_broken(kind) or limits != self._limits_of(kind):
            return False
        return bool(self._held.get(kind)) or not self._breakers[kind].would_try(now_s)

    def next_probe_s(self, kind: str) -> float | None:
        breaker = self._breakers.get(kind)
        return breaker.next_probe_s if breaker else None

    def holds(self, run: ScheduledRun) -> bool:
        """Whether a run that was accepted earlier must wait until its kind's circuit closes."""
        if not self._breakers or goes_on(run):
            return False
        return self._is_broken(run.kind) and run.id not in self._probes

    def hold(self, run: ScheduledRun) -> None:
        run.phase = HELD
        heapq.heappush(self._held.setdefault(run.kind, []), (run.submitted_s, run.arrival, run))

    def holds_any(self) -> bool:
        return bool(self._held)

    def count(self, run: ScheduledRun, cause: ExitCause | None, now_s: float) -> RecordNotice | None:
        """Count how an attempt ended, None where the engine closes; return a notice if that opened or closed the
        circuit of its kind. Of a circuit that is not closed only its probes count.
        """
        probed = self._probes.pop(run.id, None) if self._probes else None
        breaker = self._breakers.get(run.kind)
        if breaker is None and cause is _DONE:
            return None  # nearly all: first, since to look an enum's member up in a dict takes a call
        is_success = _IS_SUCCESS.get(cause) if cause else None
        if breaker is None:
            if is_success is not False or (limits := self._limits_of(run.kind)) is None:
                return None
            breaker = self._breakers[run.kind] = Breaker(limits, closes_after=limits.failures)
        before = breaker.circuit
        if before is not Circuit.CLOSED and probed is not breaker:
            return None
        if is_success:
            breaker.succeeded()
        elif is_success is not None:
            breaker.failed(now_s, topmost(run).id)
        else:
            if probed:
                breaker.abandoned(now_s)
            return None
        if breaker.circuit is Circuit.OPEN:  # the other probes were let in by it and decide nothing any more
            self._probes = {run_id: of for run_id, of in self._probes.items() if of is not breaker}
        return _change(run.kind, before, breaker.circuit)

    def released(self, now_s: float) -> list[ScheduledRun]:
        """Take out the held runs that may go on: all of a closed circuit, and the probes that an open one lets in."""
        found: list[ScheduledRun] = []
        for kind in list(self._held):
            held = self._held[kind]
            while held and self._may_leave(held[0][2], now_s):
                found.append(heapq.heappop(held)[2])
            if not held:
                del self._held[kind]
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
        return {kind: breaker.next_probe_s for kind, breaker in self._breakers.items() if self._is_broken(kind)}

    def _limits_of(self, kind: str) -> BreakerLimits | None:
        return self._by_kind.get(kind, self._limits)

    def _is_broken(self, kind: str) -> bool:
        breaker = self._breakers.get(kind)
        return breaker is not None and breaker.circuit is not Circuit.CLOSED

    def _may_leave(self, run: ScheduledRun, now_s: float) -> bool:
        return not self._is_broken(run.kind) or self._may_probe(run, self._breakers[run.kind], now_s)

    def _may_probe(self, run: ScheduledRun, breaker: Breaker, now_s: float) -> bool:
        if not breaker.may_try(now_s):
            return False
        self._probes[run.id] = breaker
        return True


def goes_on(run: ScheduledRun) -> bool:
    """Whether the run is work under way: it has started before, or its parent has."""
    return run.epoch > 0 or run.parent is not None


def topmost(run: ScheduledRun) -> ScheduledRun:
    """The run that was submitted by itself, of which this one is a child, or a child's child, or which it is."""
    while run.parent is not None:
        run = run.parent
    return run


def _change(kind: str, before: Circuit, after: Circuit) -> RecordNotice | None:
    if after is Circuit.OPEN and before is not Circuit.OPEN:
        return RecordNotice(notice=Notice.CIRCUIT_OPENED, subject=kind)
    if after is Circuit.CLOSED and before is not Circuit.CLOSED:
        return RecordNotice(notice=Notice.CIRCUIT_CLOSED, subject=kind)
    return None
