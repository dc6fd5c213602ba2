"""The time limit of a query. It counts the work until the next rows are there: all of a count, a sort or an SQL query,
each page of a stream; never the time in which the caller uses the rows it has.

Does not cover: who asks the clock (store.hardening, query_thread).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from headrace.errors import InvalidInput, QueryTimeout

TIMEOUT_S = 60.0


class QueryClock:
    """Runs from the moment it is made, and again from each `restart`."""

    def __init__(self, timeout_s: float = TIMEOUT_S, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout_s = timeout_s
        self._clock = clock
        self._over_at = clock() + timeout_s

    def restart(self) -> None:
        """Rows were handed over and more are asked for: the limit begins anew."""
        self._over_at = self._clock() + self.timeout_s

    @property
    def left_s(self) -> float:
        return self._over_at - self._clock()

    def check(self) -> None:
        """Raise QueryTimeout where the time is over."""
        if self.left_s <= 0:
            raise QueryTimeout(self.timeout_s)


def checked_timeout(timeout_s: float) -> float:
    """The limit as a number of seconds above 0; infinity is no limit."""
    if type(timeout_s) not in (int, float) or math.isnan(timeout_s) or timeout_s <= 0:
        raise InvalidInput(
            f"timeout_s must be a number of seconds above 0, not {timeout_s!r}.",
            fix='Write timeout_s=300, or timeout_s=float("inf") for no limit.',
        )
    return float(timeout_s)
