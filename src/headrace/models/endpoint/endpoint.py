"""One model's endpoint: whether a call may go out now, from how the earlier ones ended.

    ask(now_s, tokens) ──► Go ──► (the call) ──► ended(now_s, go, outcome) ──► go_on: Go, where its turn is used again
                       ├─► Wait                  Ok, Busy, TimedOut, Unavailable, Away, CallRefused, Unusable,
                       └─► Closed                Abandoned, Unused

Calm, the limits are concurrency and rates. Three incidents hold everything back, each until a probe that goes alone:
- busy (429, 529): for as long as the service asks, else for a doubling time. It is no fault and opens no circuit.
- failures (5xx, broken connections, time-outs): three within a minute open the circuit (models.endpoint.breaker).
- away (the service was never reached): until a probe reaches it; visible as `away_since_s`.
A refused key, name or quota closes the endpoint: calls are refused, not held back. After a while, twice as long each
time, one call goes out as a probe; `reopen` lets calls go at once, because something has changed.
A call that was in flight when an incident began belongs to it: two hundred calls that fail together are one incident.

A call of HIGH or above reserves a part for those that follow it, for `reserve_s` from when it asked and from when it
ended: calls below HIGH then leave an eighth of the concurrency to them, and some of each rate's burst. Nothing is
reserved while none asks. And as long as no call has failed, calls of HIGH or above may be half as many again as a new
endpoint begins with: people wait for them, and a survey, which would fill any limit at once, does not use it.

Does not cover: making the calls (models.limiter), their order (models.endpoint.call_line); how often one question is
tried (models.endpoint.retry). One thread at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import assert_never

from headrace.limits import EndpointLimits
from headrace.models.endpoint.breaker import Breaker, Circuit
from headrace.models.endpoint.call_results import (
    Abandoned,
    Away,
    Busy,
    CallRefused,
    CallResult,
    Closed,
    EndpointCondition,
    EndpointStatus,
    Go,
    Ok,
    TimedOut,
    Unavailable,
    Unusable,
    Unused,
    Wait,
)
from headrace.models.endpoint.concurrency import Concurrency
from headrace.models.endpoint.pause import EndpointPause
from headrace.models.endpoint.rates import Meter, Rates
from headrace.priority import Priority

_UNTIL_ONE_ENDS = Wait(None)
_FIRST_OF_HIGH = 1.5  # times the first concurrency
_RESERVED_PART = 8  # of the calls in flight, one in so many is for HIGH and above
_NORMAL, _HIGH = Priority.NORMAL, Priority.HIGH  # by themselves: looking a member up costs more than comparing it


class Endpoint:
    """Every Go must come back through `ended`. `jitter` gives numbers from 0 to 1, which spread pauses."""

    def __init__(self, limits: EndpointLimits, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._rates = Rates(limits.requests_per_minute, limits.tokens_per_minute, limits.longest_asked_pause_s)
        self._concurrency = Concurrency(limits.first_concurrency, limits.most_concurrency)
        self._first_of_high = int(limits.first_concurrency * _FIRST_OF_HIGH)
        self._breaker = Breaker(limits.breaker)
        self._busy = EndpointPause(limits.first_pause_s, limits.longest_pause_s, limits.longest_asked_pause_s)
        self._away = EndpointPause(limits.first_away_s, limits.longest_away_s)
        self._closed = EndpointPause(limits.first_closed_s, limits.longest_closed_s)
        self._is_held = False  # during an incident, or while the endpoint is closed
        self._incidents = 0
        self._reopened_at = (
            0  # how many incidents there were; a call that began before was refused for what has changed
        )
        self._failing_since_s: float | None = None
        self._open_since_s: float | None = None
        self._reason = ""  # of the incident
        self._probe: Go | None = None
        self._reserve_s = limits.reserve_s
        self.reserved_until_s = -math.inf
        self._high_in_flight = 0
        self._requests, self._tokens = Meter(), Meter()
        self._calls = self._used_tokens = self._busy_calls = self._failures = 0
        self.in_flight = 0
        self.closed_reason: str | None = None
        self._key_advice = ""

    @property
    def is_held(self) -> bool:
        """Whether an incident holds calls back, or the endpoint is closed."""
        return self._is_held

    @property
    def away_since_s(self) -> float | None:
        return self._away.since_s

    @property
    def condition(self) -> EndpointCondition:
        if self.closed_reason is not None:
            return EndpointCondition.CLOSED
        if self._away.since_s is not None:
            return EndpointCondition.AWAY
        if self._breaker.circuit is not Circuit.CLOSED:
            return EndpointCondition.FAILING
        return EndpointCondition.OPEN if self._busy.since_s is None else EndpointCondition.BUSY

    @property
    def is_new_pause(self) -> bool:
        """Whether the service is busy and was not yet asked again: that is over in a second, as a rule."""
        return self.condition is EndpointCondition.BUSY and not self._busy.is_prolonged

    def refuses(self, now_s: float) -> bool:
        """Whether it is closed, and not yet to be tried again."""
        return self.closed_reason is not None and self._probe is None and now_s < self._closed.until_s

    def reopen(self, now_s: float) -> None:
        """Let calls go at once: something has changed, as its owner says, or another key is there. Where an incident
        holds calls back, let the next one be the probe.
        """
        if self.closed_reason is not None:
            self.closed_reason = self._probe = None
            self._closed.end()
            self._reopened_at = self._incidents
            self._is_held = self._breaker.circuit is not Circuit.CLOSED
            self._open_since_s = now_s
            self._concurrency.restart(now_s)
        for pause in (self._busy, self._away):
            pause.cut_short(now_s)
        if self._breaker.next_probe_s is not None:
            self._breaker.next_probe_s = now_s

    def allow(self, calls: int) -> None:
        """Lets the limit of calls in flight grow to so many, where that raises throughput."""
        self._concurrency.allow(calls)

    def ask(
        self, now_s: float, tokens: float, priority: Priority = _NORMAL, *, is_aged: bool = False
    ) -> Go | Wait | Closed:
        """Whether a call of about so many tokens, in and out, may go out now. One that `is_aged` may use what is
        reserved for HIGH.
        """
        if priority >= _HIGH:
            self.reserved_until_s = now_s + self._reserve_s
        if self._is_held:
            held = self._held(now_s)
            if held is not None:
                return held
        if self.in_flight >= self._concurrency.limit:
            self._concurrency.was_short()
            if priority < _HIGH or not self._may_exceed():
                return _UNTIL_ONE_ENDS
        if now_s < self.reserved_until_s and priority < _HIGH and not is_aged:
            kept_out = self._kept_out(now_s, tokens)
            if kept_out is not None:
                return kept_out
        ready_s = self._rates.ready_s(tokens)
        if ready_s > now_s:
            return Wait(ready_s)
        return self._go(now_s, tokens, priority)

    def go_on(self, now_s: float, go: Go, tokens: float) -> Go:
        """Count a call that has begun elsewhere with the turn of one that has ended (models.turn_leases). It began
        before an incident was known there: it belongs to it, and is no probe.
        """
        following = Go(now_s, tokens, go.incidents, go.priority)
        self._count(now_s, following)
        if self.in_flight >= self._concurrency.limit:
            self._concurrency.was_short()  # it had waited
        return following

    @property
    def has_room(self) -> bool:
        return self.in_flight < self._concurrency.limit

    @property
    def is_over_limit(self) -> bool:
        """Whether more calls are in flight than would be let go now: the limit has become lower."""
        return self.in_flight > self._concurrency.limit

    @property
    def has_rates(self) -> bool:
        """Whether calls are counted by the minute, or the service has said when the next one may come."""
        rates = self._rates
        return (rates.requests_per_minute or rates.tokens_per_minute) is not None or rates.not_before_s > -math.inf

    def ended(self, now_s: float, go: Go, outcome: CallResult) -> None:
        self.in_flight -= 1
        if go.priority >= _HIGH:
            self._high_in_flight -= 1
            self.reserved_until_s = now_s + self._reserve_s  # what it was for may ask again at once
        match outcome:
            case Ok():
                self._settle_reply(now_s, go, outcome)
                self._answered(now_s, go, outcome)
            case Busy():
                self._busy_calls += 1
                self._rates.settle(-go.tokens, now_s)
                self._note(go, outcome.message)
                self._was_busy(now_s, go, outcome.retry_after_s)
            case TimedOut() | Unavailable():
                self._failures += 1
                self._note(go, outcome.message)
                self._failed(now_s, go, has_timed_out=type(outcome) is TimedOut)
            case Away():
                self._rates.settle(-go.tokens, now_s, more_requests=-1.0)
                self._note(go, outcome.message)
                self._was_away(now_s, go)
            case CallRefused():
                self._answered(now_s, go, None)
            case Unusable():
                self._was_unusable(now_s, go, outcome)
            case Abandoned():
                self._abandoned(now_s, go)
            case Unused():
                self._rates.settle(-go.tokens, now_s, more_requests=-1.0)
                self._requests.add(-1, now_s)
                self._calls -= 1
                self._abandoned(now_s, go)
            case _:
                assert_never(outcome)

    def status(self, now_s: float, *, waiting: int = 0) -> EndpointStatus:
        """The endpoint's status; `waiting` is how many calls the limiter holds in line."""
        until_s = max(self._rates.not_before_s, self._next_probe_s(), self._closed.until_s)
        return EndpointStatus(
            circuit=self._breaker.circuit,
            paused_until_s=until_s if until_s > now_s else None,
            busy_since_s=self._busy.since_s,
            away_since_s=self._away.since_s,
            closed_reason=self.closed_reason,
            concurrency=self._concurrency.limit,
            in_flight=self.in_flight,
            waiting=waiting,
            requests_per_minute=self._requests.per_minute(now_s),
            tokens_per_minute=self._tokens.per_minute(now_s),
            most_requests_per_minute=self._rates.requests_per_minute,
            most_tokens_per_minute=self._rates.tokens_per_minute,
            calls=self._calls,
            tokens=self._used_tokens,
            busy=self._busy_calls,
            failures=self._failures,
            condition=self.condition,
            since_s=self._since_s(),
            reason=self.closed_reason or (self._reason if self._is_held else ""),
            key_advice=self._key_advice if self.closed_reason is not None else "",
        )

    def _since_s(self) -> float | None:
        match self.condition:
            case EndpointCondition.CLOSED:
                return self._closed.since_s
            case EndpointCondition.AWAY:
                return self._away.since_s
            case EndpointCondition.FAILING:
                return self._failing_since_s
            case EndpointCondition.BUSY:
                return self._busy.since_s
            case EndpointCondition.OPEN:
                return self._open_since_s

    def _note(self, go: Go, message: str) -> None:
        """Keep why calls are held back, or soon may be: the word of a call that is not of an older incident."""
        if go is self._probe or go.incidents == self._incidents:
            self._reason = message

    def _may_exceed(self) -> bool:
        """Whether a call of HIGH or above may go beside as many as the limit allows."""
        if self._incidents or self._failures or self._busy_calls:
            return False
        return self.in_flight < min(self._first_of_high, self._concurrency.most)

    def _kept_out(self, now_s: float, tokens: float) -> Wait | None:
        """Why a call below HIGH must leave what is reserved; None where it may go beside that."""
        limit = self._concurrency.limit
        reserved = max(1, limit // _RESERVED_PART) if limit > 1 else 0
        if self.in_flight - self._high_in_flight >= limit - reserved:
            self._concurrency.was_short()
            return Wait(self.reserved_until_s)
        ready_s = self._rates.ready_beside_reserve_s(tokens)
        return Wait(min(ready_s, self.reserved_until_s)) if ready_s > now_s else None

    def _go(self, now_s: float, tokens: float, priority: Priority) -> Go:
        go = Go(now_s, tokens, self._incidents, priority)
        if self._is_held:
            self._probe = go
            self._breaker.may_try(now_s)  # an open circuit becomes half-open
        self._count(now_s, go)
        return go

    def _count(self, now_s: float, go: Go) -> None:
        if go.priority >= _HIGH:
            self._high_in_flight += 1
        self._rates.take(go.tokens, now_s)
        self._requests.add(1, now_s)
        self._calls += 1
        self.in_flight += 1

    def _held(self, now_s: float) -> Wait | Closed | None:
        """The answer during an incident; None where it is time for a probe."""
        if self._probe is not None:
            return _UNTIL_ONE_ENDS
        if self.closed_reason is not None and now_s < self._closed.until_s:
            return Closed(self.closed_reason)
        until_s = self._next_probe_s()
        return Wait(until_s) if until_s > now_s else None

    def _next_probe_s(self) -> float:
        until_s = max(self._busy.until_s, self._away.until_s)
        open_until_s = self._breaker.next_probe_s
        return until_s if open_until_s is None else max(until_s, open_until_s)

    def _settle_reply(self, now_s: float, go: Go, reply: Ok) -> None:
        self._rates.settle(reply.tokens - go.tokens, now_s)
        self._tokens.add(reply.tokens, now_s)
        self._used_tokens += int(reply.tokens)
        if reply.rates is not None:
            self._rates.learn(reply.rates, now_s)

    def _answered(self, now_s: float, go: Go, reply: Ok | None) -> None:
        """Ends an incident where this was the probe. A reply is also evidence of the service's health."""
        if go is self._probe:
            self._recover(now_s)
        elif reply is not None and go.incidents == self._incidents:
            self._breaker.succeeded()
            self._concurrency.succeeded(go.started_s, now_s, reply.took_s)

    def _was_busy(self, now_s: float, go: Go, retry_after_s: float | None) -> None:
        if go is self._probe:  # it says that the storm goes on, and nothing about the load
            self._busy.begin(now_s, retry_after_s, self._jitter())
            self._away.end()
            self._breaker.succeeded()
            self._probe = None
        elif go.incidents == self._incidents:
            self._concurrency.overloaded(go.started_s, now_s)
            self._busy.begin(now_s, retry_after_s, self._jitter())
            self._begin_incident()
        else:
            self._busy.extend(now_s, retry_after_s)

    def _failed(self, now_s: float, go: Go, *, has_timed_out: bool) -> None:
        if go is self._probe:
            self._probe_failed(now_s)
        elif go.incidents == self._incidents:
            if has_timed_out:
                self._concurrency.overloaded(go.started_s, now_s)
            self._breaker.failed(now_s)
            if self._breaker.circuit is Circuit.OPEN:
                self._failing_since_s = now_s
                self._begin_incident()

    def _probe_failed(self, now_s: float) -> None:
        """Prolongs the incident: the probe reached the service, and the service failed."""
        self._probe = None
        self._away.end()
        if self.closed_reason is not None:  # it says nothing about what was refused
            self._closed.begin(now_s, None, self._jitter())
            self._breaker.abandoned(now_s)
            return
        self._breaker.failed(now_s)
        if self._breaker.circuit is Circuit.CLOSED and self._busy.since_s is None:
            self._recover(now_s)  # from being away: one failure is not yet an incident of its own
        elif self._busy.since_s is not None:
            self._busy.begin(now_s, None, self._jitter())

    def _was_away(self, now_s: float, go: Go) -> None:
        if go is self._probe:
            self._abandoned(now_s, go)
        elif go.incidents == self._incidents:
            self._begin_incident()
        else:
            return
        self._away.begin(now_s, None, self._jitter())

    def _abandoned(self, now_s: float, go: Go) -> None:
        if go is self._probe:
            self._probe = None
            self._breaker.abandoned(now_s)

    def _begin_incident(self) -> None:
        self._incidents += 1
        self._is_held = True

    def _recover(self, now_s: float) -> None:
        self._probe = self.closed_reason = None
        self._closed.end()
        self._open_since_s = now_s
        self._breaker.succeeded()
        self._busy.end()
        self._away.end()
        self._is_held = False
        self._concurrency.restart(now_s)

    def _was_unusable(self, now_s: float, go: Go, outcome: Unusable) -> None:
        """Closes the endpoint, or keeps it closed for longer where this was the probe."""
        if go is not self._probe and (self.closed_reason is not None or go.incidents < self._reopened_at):
            return  # it was in flight when the endpoint was closed
        if self._breaker.circuit is Circuit.HALF_OPEN:
            self._breaker.succeeded()  # the service is there, and answers
        self._busy.end()
        self._away.end()
        self._probe = None
        self.closed_reason, self._key_advice = outcome.message, outcome.key_advice
        self._closed.begin(now_s, None, self._jitter())
        self._begin_incident()
