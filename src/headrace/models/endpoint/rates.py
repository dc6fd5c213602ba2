"""Requests and tokens per minute: when a call may go out. Covers: limits that were given, limits that replies tell.

The limit in force is the lower of the two. The limit that a reply states replaces an earlier one, so that a limit that
was raised is seen. Does not cover: how many calls are in flight (models.endpoint.concurrency), or pauses
(models.endpoint.pause).
"""

from __future__ import annotations

import math

from headrace.models.provider import RateHint

_MINUTE_S = 60.0
_BURST_S = 2.0  # a caller that wakes late may catch up by this much
_RESERVED_PART = 0.25  # of what may go out in one burst
_METER_S = 30.0


class Bucket:
    """At most `per_minute` in any minute, evenly, whatever the sizes; what is larger than a minute's worth goes alone.

    Kept as the time at which the bucket will be full again, so that the moment it names is a moment at which it agrees:
    an amount that is refilled bit by bit may stay short of what was asked for by a rounding error.
    """

    __slots__ = ("_deep_s", "_full_at_s", "_per_s", "per_minute", "reserve")

    def __init__(self, per_minute: float) -> None:
        self._full_at_s = -math.inf
        self._set(per_minute)

    def change(self, per_minute: float, now_s: float) -> None:
        owed = max(0.0, self._full_at_s - now_s) * self._per_s
        self._set(per_minute)
        self._full_at_s = now_s + min(owed / self._per_s, _MINUTE_S)

    def ready_s(self, amount: float) -> float:
        """The earliest time at which this amount may go out; with `reserve` added to it, that much is left then. A full
        bucket is enough for any amount.
        """
        return self._full_at_s - max(0.0, self._deep_s - amount / self._per_s)

    def take(self, amount: float, now_s: float) -> None:
        self._full_at_s = max(self._full_at_s, now_s) + min(amount, self.per_minute) / self._per_s

    def correct(self, amount: float, now_s: float) -> None:
        """Takes the difference between estimate and use, which may be negative; never more than a minute's worth."""
        self._full_at_s = min(self._full_at_s + amount / self._per_s, now_s + _MINUTE_S)

    def hold_at_most(self, left: float, now_s: float) -> None:
        """Lowers what is left to the service's own count, which includes calls of other programs."""
        self._full_at_s = max(self._full_at_s, now_s + self._deep_s - left / self._per_s)

    def _set(self, per_minute: float) -> None:
        depth = max(1.0, per_minute * _BURST_S / _MINUTE_S)
        self.per_minute = per_minute
        self.reserve = max(1.0, depth * _RESERVED_PART)
        # A full bucket and a minute's refill together are a minute's limit; the one that is taken first is in both.
        self._per_s = (per_minute - (depth - 1.0)) / _MINUTE_S
        self._deep_s = depth / self._per_s


class Rates:
    """Both buckets of an endpoint. `take` what a call is estimated to use, `settle` when it is known."""

    __slots__ = ("_given_requests", "_given_tokens", "_longest_s", "_requests", "_tokens", "not_before_s")

    def __init__(
        self, requests_per_minute: float | None, tokens_per_minute: float | None, longest_wait_s: float
    ) -> None:
        self._longest_s = longest_wait_s  # the most that a reply's word is taken for; then a call finds out
        self._given_requests = requests_per_minute
        self._given_tokens = tokens_per_minute
        self._requests = None if requests_per_minute is None else Bucket(requests_per_minute)
        self._tokens = None if tokens_per_minute is None else Bucket(tokens_per_minute)
        self.not_before_s = -math.inf

    @property
    def requests_per_minute(self) -> float | None:
        """The limit in force."""
        return None if self._requests is None else self._requests.per_minute

    @property
    def tokens_per_minute(self) -> float | None:
        """The limit in force."""
        return None if self._tokens is None else self._tokens.per_minute

    def ready_s(self, tokens: float) -> float:
        """The earliest time at which a call of about so many tokens may go out."""
        ready_s = self.not_before_s
        if self._requests is not None:
            ready_s = max(ready_s, self._requests.ready_s(1.0))
        if self._tokens is not None:
            ready_s = max(ready_s, self._tokens.ready_s(tokens))
        return ready_s

    def ready_beside_reserve_s(self, tokens: float) -> float:
        """The same for a call that must leave each bucket's reserve in it. In the long run as many calls may go out."""
        ready_s = self.not_before_s
        if self._requests is not None:
            ready_s = max(ready_s, self._requests.ready_s(1.0 + self._requests.reserve))
        if self._tokens is not None:
            ready_s = max(ready_s, self._tokens.ready_s(tokens + self._tokens.reserve))
        return ready_s

    def take(self, tokens: float, now_s: float) -> None:
        if self._requests is not None:
            self._requests.take(1.0, now_s)
        if self._tokens is not None:
            self._tokens.take(tokens, now_s)

    def settle(self, more_tokens: float, now_s: float, *, more_requests: float = 0.0) -> None:
        """Corrects the estimate of a call that has ended, by what it used beyond it; less than 0 is given back."""
        if self._tokens is not None:
            self._tokens.correct(more_tokens, now_s)
        if more_requests and self._requests is not None:
            self._requests.correct(more_requests, now_s)

    def learn(self, hint: RateHint, now_s: float) -> None:
        self._requests = _learned(self._requests, self._given_requests, hint.requests_per_minute, now_s)
        self._tokens = _learned(self._tokens, self._given_tokens, hint.tokens_per_minute, now_s)
        self._see_left(self._requests, hint.requests_left, hint.requests_reset_s, now_s)
        self._see_left(self._tokens, hint.tokens_left, hint.tokens_reset_s, now_s)

    def _see_left(self, bucket: Bucket | None, left: float | None, reset_s: float | None, now_s: float) -> None:
        if left is None or not 0 <= left < math.inf:
            return
        if left < 1 and reset_s is not None and 0 < reset_s < math.inf:
            self.not_before_s = max(self.not_before_s, now_s + min(reset_s, self._longest_s))
        elif bucket is not None:
            bucket.hold_at_most(left, now_s)


def _learned(bucket: Bucket | None, given: float | None, stated: float | None, now_s: float) -> Bucket | None:
    if stated is None or not 0 < stated < math.inf:  # silent, or nonsense
        return bucket
    limit = stated if given is None else min(given, stated)
    if bucket is None:
        return Bucket(limit)
    if limit != bucket.per_minute:
        bucket.change(limit, now_s)
    return bucket


class Meter:
    """Measures an amount per minute, over the last half minute to minute."""

    __slots__ = ("_before", "_now", "_since_s", "_start_s")

    def __init__(self) -> None:
        self._before = self._now = 0.0
        self._start_s: float | None = None  # of the half minute that is being counted
        self._since_s = 0.0  # what `_before` and `_now` cover begins here

    def add(self, amount: float, now_s: float) -> None:
        if self._start_s is None or now_s - self._start_s >= _METER_S:
            self._turn(now_s)
        self._now += amount

    def per_minute(self, now_s: float) -> float:
        if self._start_s is None or now_s - self._start_s >= 2 * _METER_S:
            return 0.0
        return (self._before + self._now) / max(1.0, now_s - self._since_s) * _MINUTE_S

    def _turn(self, now_s: float) -> None:
        is_next = self._start_s is not None and now_s - self._start_s < 2 * _METER_S
        self._before, self._since_s = (self._now, self._start_s or 0.0) if is_next else (0.0, now_s)
        self._now, self._start_s = 0.0, now_s
