"""A model service and its callers with an invented clock: as many calls as wanted, in no time at all.

The service works on `capacity` calls at once and lets the rest queue, or refuses what is above `refuses_above`; it
takes `requests_per_minute` of its own; and it has storms (429), outages (5xx or time-outs) and times without a network.
"""

import heapq
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from headrace.limits import EndpointLimits
from headrace.models.endpoint.call_results import Away, Busy, CallResult, Closed, Go, Ok, TimedOut, Unavailable, Wait
from headrace.models.endpoint.endpoint import Endpoint
from headrace.models.provider import RateHint
from headrace.priority import Priority

Span = tuple[float, float]
TIME_OUT_S = 20.0
REFUSAL_S = 0.05


@dataclass
class Service:
    took_s: float = 1.0
    spread: float = 0.3
    capacity: int = 10_000
    refuses_above: int | None = None
    requests_per_minute: int | None = None
    tells_rates: bool = False
    tokens: int = 100
    storms: list[Span] = field(default_factory=list)
    retry_after_s: float | None = None
    outages: list[Span] = field(default_factory=list)
    hangs: list[Span] = field(default_factory=list)
    no_network: list[Span] = field(default_factory=list)


@dataclass
class Call:
    at_s: float
    outcome: CallResult
    ends_s: float


class Simulation:
    """`calls` is every call as it arrived, with how it ended. What fails is asked again. All have one `priority`."""

    def __init__(
        self, service: Service, limits: EndpointLimits, *, seed: int = 1, priority: Priority = Priority.NORMAL
    ) -> None:
        self.service = service
        self.priority = priority
        self.random = random.Random(seed)
        self.endpoint = Endpoint(limits, self.random.random)
        self.limits = limits
        self.now_s = 0.0
        self.calls: list[Call] = []
        self.done_at_s: list[float] = []
        self._events: list[tuple[float, int, Any]] = []
        self._number = 0
        self._free_at_s: list[float] = []
        self._taken_at_s: deque[float] = deque()
        self._wake_s: float | None = None

    def run(self, count: int, *, until_s: float = 1e9) -> "Simulation":
        """Until all are answered, or the clock stands at `until_s`."""
        waiting = count
        while len(self.done_at_s) < count and self.now_s < until_s:
            waiting -= self._send(waiting)
            waiting += self._next_event()
        return self

    def _send(self, waiting: int) -> int:
        sent = 0
        while sent < waiting:
            answer = self.endpoint.ask(self.now_s, self.service.tokens, self.priority)
            match answer:
                case Go():
                    limit = self.endpoint.status(self.now_s).concurrency
                    assert limit <= self.limits.most_concurrency
                    assert self.endpoint.in_flight <= limit or self._may_exceed()
                    self._call(answer)
                    sent += 1
                case Wait(until_s):
                    assert until_s is not None or self.endpoint.in_flight > 0, "nothing would ever wake it"
                    assert until_s is None or until_s > self.now_s, "it would spin"
                    self._wake_at(until_s)
                    break
                case Closed():
                    raise AssertionError(answer)
        return sent

    def _may_exceed(self) -> bool:
        """Before the first failure, and by half of what a new endpoint begins with, where people wait."""
        is_early = all(type(call.outcome) is Ok or call.ends_s > self.now_s for call in self.calls)
        is_high = self.priority >= Priority.HIGH
        return is_high and is_early and self.endpoint.in_flight <= self.limits.first_concurrency * 1.5

    def _wake_at(self, at_s: float | None) -> None:
        if at_s is not None and at_s != self._wake_s:
            self._wake_s = at_s
            self._push(at_s, None)

    def _push(self, at_s: float, what: Any) -> None:
        self._number += 1
        heapq.heappush(self._events, (at_s, self._number, what))

    def _next_event(self) -> int:
        """How many calls are to be asked again."""
        self.now_s, _, what = heapq.heappop(self._events)
        if what is None:
            return 0
        go, outcome = what
        self.endpoint.ended(self.now_s, go, outcome)
        if type(outcome) is Ok:
            self.done_at_s.append(self.now_s)
            return 0
        return 1

    def _call(self, go: Go) -> None:
        ends_s, outcome = self._outcome()
        self.calls.append(Call(self.now_s, outcome, ends_s))
        self._push(ends_s, (go, outcome))

    def _outcome(self) -> tuple[float, CallResult]:
        service, now_s = self.service, self.now_s
        soon_s = now_s + REFUSAL_S * (0.5 + self.random.random())
        if _in(service.no_network, now_s):
            return soon_s, Away()
        if _in(service.hangs, now_s):
            return now_s + TIME_OUT_S, TimedOut()
        if _in(service.outages, now_s):
            return soon_s, Unavailable()
        if _in(service.storms, now_s) or self._is_too_much(now_s):
            return soon_s, Busy(service.retry_after_s)
        self._taken_at_s.append(now_s)
        ends_s = self._queue(now_s)
        broken_at_s = next((first for first, _ in service.outages if now_s < first < ends_s), None)
        if broken_at_s is not None:
            return broken_at_s, Unavailable()
        return ends_s, Ok(service.tokens, self._hint())

    def _is_too_much(self, now_s: float) -> bool:
        service = self.service
        if service.refuses_above is not None and self.endpoint.in_flight > service.refuses_above:
            return True
        while self._taken_at_s and self._taken_at_s[0] <= now_s - 60:
            self._taken_at_s.popleft()
        return service.requests_per_minute is not None and len(self._taken_at_s) >= service.requests_per_minute

    def _queue(self, now_s: float) -> float:
        service = self.service
        took_s = service.took_s * (1 + service.spread * (2 * self.random.random() - 1))
        free_at_s = now_s if len(self._free_at_s) < service.capacity else heapq.heappop(self._free_at_s)
        ends_s = max(now_s, free_at_s) + took_s
        heapq.heappush(self._free_at_s, ends_s)
        return ends_s

    def _hint(self) -> RateHint | None:
        limit = self.service.requests_per_minute
        if not self.service.tells_rates or limit is None:
            return None
        return RateHint(requests_per_minute=limit, requests_left=limit - len(self._taken_at_s), requests_reset_s=1.0)


def _in(spans: list[Span], now_s: float) -> bool:
    return any(first <= now_s < last for first, last in spans)


def most_in_a_minute(times_s: list[float]) -> int:
    """The largest number in any 60 s, the end not counted."""
    most, first = 0, 0
    for last, at_s in enumerate(times_s):
        while times_s[first] <= at_s - 60 + 1e-6:
            first += 1
        most = max(most, last - first + 1)
    return most
