"""Decides how many calls may be in flight at one endpoint: as many as help, found by trying.

The rule. A round is as many calls as the limit, all begun since the last change. By Little's law the throughput of a
round is the limit divided by how long its calls took on average. The limit starts small and doubles with each round, as
long as throughput rises by at least 0.4 of what the limit rose by: where twice the calls take twice as long, they only
queue. Where doubling does not help, a quarter more is tried; where that does not either, the limit rests where it was,
and a quarter more is tried again after some rounds, more of them each time it was in vain. A round in which no call had
to wait for the limit tells nothing about it.

A busy service or a time-out halves the limit, at most once a round trip: only a call that began after the last cut may
cause the next. The way back up is taken in doublings, without judging, to just below where it was too much; there it
rests. After an incident (`restart`) it is the same from two calls on.

Does not cover: rates (models.endpoint.rates) and pauses (models.endpoint.endpoint).
"""

from __future__ import annotations

import math

_DOUBLE, _QUARTER = 2.0, 1.25
_WORTH = 0.4  # of what the limit rose by, throughput must rise by this part
_BELOW_TOO_MUCH = 0.9
_AFTER_INCIDENT = 2
_FIRST_REST, _LONGEST_REST = 10, 80  # rounds
_FEWEST_TO_JUDGE, _FEWEST_TO_JUDGE_A_QUARTER = 16, 64  # calls
_NO_TIME_S = 1e-6


class Concurrency:
    """`limit` is how many calls may be in flight now, from 1 to `most`, which `allow` raises."""

    __slots__ = (
        "_base_limit",
        "_base_throughput",
        "_cut_s",
        "_next_rest",
        "_proven",
        "_rest",
        "_round_calls",
        "_round_s",
        "_round_size",
        "_round_took_s",
        "_step",
        "_was_short",
        "limit",
        "most",
    )

    def __init__(self, first: int, most: int) -> None:
        self.most = most
        self._cut_s = -math.inf
        self._proven = 0  # up to here, growing needs no proof
        self._step = _DOUBLE
        self._rest = 0
        self._next_rest = _FIRST_REST
        self._base_limit = 0  # what a larger limit is compared with; 0 before the first round
        self._base_throughput = 0.0
        self._set(min(first, most), -math.inf)

    def allow(self, most: int) -> None:
        """Lets the limit grow to this many calls."""
        self.most = max(self.most, most)

    def was_short(self) -> None:
        """Notes that a call had to wait because of the limit: only then may the limit grow."""
        self._was_short = True

    def succeeded(self, started_s: float, now_s: float, took_s: float | None = None) -> None:
        """Counts a call that began at `started_s`; `took_s` where it did not take until now. Behind messages that come
        together, such a call may have begun before it was heard of, and before the last change.
        """
        began_s = started_s if took_s is None else min(started_s, now_s - took_s)
        if began_s < self._round_s:
            return
        self._round_calls += 1
        self._round_took_s += now_s - started_s if took_s is None else took_s
        if self._round_calls >= self._round_size:
            self._end_round(now_s)

    def overloaded(self, started_s: float, now_s: float) -> None:
        """Lowers the limit: a call that began at `started_s` met a busy service, or timed out."""
        if started_s <= self._cut_s:
            return
        # On the way back up it says little about so small a limit, and halves only how far the way goes.
        self._proven = max(int(self.limit * _BELOW_TOO_MUCH), self._proven // 2)
        self._cut_s = now_s
        self._base_limit = 0
        self._begin_rest()
        self._set(max(1, self.limit // 2), now_s)

    def restart(self, now_s: float) -> None:
        """Begins again with a low limit after an incident, so that the load comes back in steps."""
        self._proven = max(self._proven, self.limit)
        self._base_limit = 0
        self._set(min(self.limit, _AFTER_INCIDENT), now_s)

    def _end_round(self, now_s: float) -> None:
        took_s = max(self._round_took_s / self._round_calls, _NO_TIME_S)
        throughput, was_short = self.limit / took_s, self._was_short
        if not was_short:
            self._set(self.limit, now_s)
        elif self.limit < self._proven:
            self._set(min(self._proven, self.limit * 2), now_s)
        elif self._base_limit and self.limit > self._base_limit:
            self._judge(throughput, now_s)
        else:
            self._rest_or_grow(throughput, now_s)

    def _judge(self, throughput: float, now_s: float) -> None:
        """Keeps a raised limit where its round had a higher throughput, else goes back."""
        rise = self.limit / self._base_limit - 1
        if throughput / self._base_throughput - 1 >= _WORTH * rise:
            self._next_rest = _FIRST_REST
            self._step = _DOUBLE  # a quarter that pays: that doubling did not may have been chance
            self._grow_from(self.limit, throughput, now_s)
        elif self._step == _DOUBLE:
            self._step = _QUARTER
            self._grow_from(self._base_limit, self._base_throughput, now_s)
        else:
            self._begin_rest()
            self._set(self._base_limit, now_s)

    def _rest_or_grow(self, throughput: float, now_s: float) -> None:
        same = self.limit == self._base_limit
        measured = (self._base_throughput + throughput) / 2 if same else throughput
        if self._rest:
            self._rest -= 1
            self._base_limit, self._base_throughput = self.limit, measured
            self._set(self.limit, now_s)
        else:
            self._grow_from(self.limit, measured, now_s)

    def _grow_from(self, limit: int, throughput: float, now_s: float) -> None:
        self._base_limit, self._base_throughput = limit, throughput
        self._set(min(self.most, max(limit + 1, int(limit * self._step))), now_s)

    def _begin_rest(self) -> None:
        self._step = _QUARTER
        self._rest = self._next_rest
        self._next_rest = min(self._next_rest * 2, _LONGEST_REST)

    def _set(self, limit: int, now_s: float) -> None:
        """Takes this limit and begins a round with it."""
        self.limit = limit
        self._round_s = now_s
        self._round_calls = 0
        self._round_took_s = 0.0
        self._was_short = False
        self._round_size = limit
        if limit >= self._proven and not self._rest:
            # It will be judged, and steps of a quarter are harder to tell from chance.
            is_double = self._step == _DOUBLE
            self._round_size = max(limit, _FEWEST_TO_JUDGE if is_double else _FEWEST_TO_JUDGE_A_QUARTER)
