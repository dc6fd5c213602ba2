"""A service, its endpoint and the line before it, with an invented clock: callers of every priority.

It does what models.limiter does with an event loop: it asks for the first in line, and again when a call has ended or
the time that was named has come. The order is checked at each call that goes out.
"""

import heapq
import random
from dataclasses import dataclass, field
from typing import Any

from headrace.limits import EndpointLimits
from headrace.models.endpoint.call_line import CallLine
from headrace.models.endpoint.call_results import Abandoned, Away, Busy, Closed, Go, Ok, TimedOut, Unavailable, Wait
from headrace.models.endpoint.endpoint import Endpoint
from headrace.priority import Priority

TOKENS = 100.0
_FAULTS = [Busy(), Busy(3.0), TimedOut(), Unavailable(), Away(), Abandoned()]


@dataclass(eq=False)
class Asked:
    """A call, with when it asked, went out and was answered."""

    priority: Priority
    asked_s: float
    went_s: float = -1.0
    ended_s: float = -1.0

    @property
    def waited_s(self) -> float:
        return self.went_s - self.asked_s


@dataclass
class Survey:
    """A caller with `window` calls in line or in flight until `calls` are done; it begins at `at_s`."""

    priority: Priority
    calls: int
    window: int
    at_s: float = 0.0


@dataclass
class World:
    """`agents` ask at their times, whatever became of their earlier calls. A part of all calls `fails`, each in another
    way, and is asked again.
    """

    limits: EndpointLimits
    took_s: float = 1.0
    spread: float = 0.3
    seed: int = 1
    fails: float = 0.0
    now_s: float = 0.0
    done: list[Asked] = field(default_factory=list)
    failed: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.endpoint = Endpoint(self.limits, self.random.random)
        self.line: CallLine[Asked] = CallLine(self.limits.aging_s)
        self.in_flight = 0
        self._events: list[tuple[float, int, Any]] = []
        self._number = 0
        self._wake_s: float | None = None
        self._left: dict[int, Survey] = {}
        self._turn_s = dict.fromkeys(Priority, -1e9)

    def run(self, surveys: list[Survey], agents: list[tuple[float, Priority]], until_s: float = 1e9) -> "World":
        for survey in surveys:
            for _ in range(min(survey.window, survey.calls)):
                self._push(survey.at_s, survey)
        for at_s, priority in agents:
            self._push(at_s, priority)
        while self._events and self.now_s < until_s:
            self._step()
        return self

    def waits_of(self, priority: Priority) -> list[float]:
        return [call.waited_s for call in self.done if call.priority is priority]

    def _step(self) -> None:
        self.now_s, _, what = heapq.heappop(self._events)
        match what:
            case Survey():
                if what.calls > 0:
                    what.calls -= 1
                    self._ask(what.priority, what)
            case Priority():
                self._ask(what, None)
            case (call, go, survey):
                self._ended(call, go, survey)
            case _:
                self._wake_s = None
        self._advance()

    def _ask(self, priority: Priority, survey: Survey | None) -> None:
        call = Asked(priority, self.now_s)
        if survey is not None:
            self._left[id(call)] = survey
        self.line.add(call, priority, self.now_s)

    def _ended(self, call: Asked, go: Go, survey: Survey | None) -> None:
        self.in_flight -= 1
        if self.random.random() < self.fails:
            fault = self.random.choice(_FAULTS)
            self.failed += type(fault) is not Abandoned
            self.endpoint.ended(self.now_s, go, fault)
            again = Asked(call.priority, self.now_s)
            if survey is not None:
                self._left[id(again)] = survey
            self.line.add(again, again.priority, self.now_s)
            return
        call.ended_s = self.now_s
        self.done.append(call)
        self.endpoint.ended(self.now_s, go, Ok(TOKENS))
        if survey is not None:
            self._push(self.now_s, survey)

    def _advance(self) -> None:
        while self.line.total:
            level, call = self.line.first()
            answer = self.endpoint.ask(self.now_s, TOKENS, level, is_aged=self.line.is_aged(level, self.now_s))
            match answer:
                case Go():
                    self._go(level, call, answer)
                case Wait(until_s):
                    assert until_s is not None or self.in_flight, "nothing would ever wake it"
                    assert until_s is None or until_s > self.now_s, "it would spin"
                    if until_s is not None and until_s != self._wake_s:
                        self._wake_s = until_s
                        self._push(until_s, None)
                    return
                case Closed():
                    raise AssertionError(answer)

    def _go(self, level: Priority, call: Asked, go: Go) -> None:
        self._check_order(level, call)
        self.line.give_turn(level, self.now_s)
        self.in_flight += 1
        call.went_s = self.now_s
        self._check_in_flight(level)
        took_s = self.took_s * (1 + self.spread * (2 * self.random.random() - 1))
        self._push(self.now_s + took_s, (call, go, self._left.pop(id(call), None)))

    def _check_in_flight(self, level: Priority) -> None:
        status, limits = self.endpoint.status(self.now_s), self.limits
        assert self.endpoint.in_flight == self.in_flight <= limits.most_concurrency
        if self.in_flight > status.concurrency:
            assert level >= Priority.HIGH, "only calls that people wait for go beyond the limit"
            assert self.failed == 0, "the limit holds for all once a call has failed"
            assert self.in_flight <= limits.first_concurrency * 1.5

    def _check_order(self, level: Priority, call: Asked) -> None:
        highest = max(waiting.priority for waiting in self.line.waiting())
        waited_s = self.now_s - max(call.asked_s, self._turn_s[level])
        assert level is highest or highest is not Priority.CRITICAL, "nothing passes a critical call"
        assert waited_s >= (highest - level) * self.limits.aging_s, "a lower call has not waited long enough to pass"
        self._turn_s[level] = self.now_s

    def _push(self, at_s: float, what: Any) -> None:
        self._number += 1
        heapq.heappush(self._events, (at_s, self._number, what))
