"""Turns that are lent: a worker process uses one turn at an endpoint for call after call, without asking in between.

    call 1 asks ──► Limiter ── turn, lent for a second ──► call 1 ends, call 2 begins, ends, call 3 begins ...
                                                           told together, when a message leaves anyway

Why: between the end of a call and the next turn lies the way to the controller and back. Across hosts that is longer
than a short call, and its messages cost more than the call. A lent turn stays one turn: it counts as one call in flight
until it is given back, so the calls of all workers and nodes together keep to one limit.

A turn is lent only while nobody else is kept waiting by that and no call has to be counted at the moment it goes out:
- not during an incident, or with rates in force: then every call asks;
- not while work of HIGH or above asks, or a call of the controller's own process is in line.
When one of these begins, and when there are more calls in flight than the limit allows, the controller recalls what it
has lent: each such turn comes back with the end of the call that uses it. The calls that begin until the recall arrives
are no more than the lent turns allow, and belong to the incident as those in flight do. A worker stops by itself at the
first call that fails. A dead worker's turns come back with the news of its death.

A lent turn is used only by calls of interviews whose answers so far are acknowledged; the others wait for turns of
their own. So a worker whose messages do not arrive any more makes one call for each of its interviews: more only for
questions that are asked at once, and where an answer is refused and asked for again.

Does not cover: when a turn may be lent (models.limiter, which asks the endpoint), or the two ends of the wire
(interviews.workers.worker_turns, interviews.workers.remote_limiter).
"""

from __future__ import annotations

from typing import Protocol

from headrace.errors import HeadraceError
from headrace.models.endpoint.call_results import Go
from headrace.priority import Priority

LEASE_S = 1.0


class TurnHolder(Protocol):
    """Who has the turns of one worker at one endpoint."""

    def granted(self, call: RemoteCall, go: Go, lease_s: float) -> None:
        """The call's turn has come. It may be used for other calls during `lease_s`; 0 is for this call alone."""
        ...

    def refused(self, call: RemoteCall, reason: str) -> None: ...

    def recall(self) -> None:
        """Turns that were lent until now are for the calls that have them, and for no others."""
        ...


class RemoteCall:
    """A call of a worker that waits for its turn."""

    __slots__ = ("holder", "number", "priority", "tokens")

    is_over = False  # whoever gives it up takes it out of the line

    def __init__(self, holder: TurnHolder, number: int, tokens: float, priority: Priority) -> None:
        self.holder = holder
        self.number = number
        self.tokens = tokens
        self.priority = priority

    def is_stopping(self) -> bool:
        return False  # the worker itself gives up the calls of what is stopping

    def refuse(self, error: HeadraceError) -> None:
        self.holder.refused(self, error.message)


class Leases:
    """Who holds turns that were lent since the last recall."""

    def __init__(self) -> None:
        self._holders: set[TurnHolder] = set()  # as many as there are workers

    def lent(self, holder: TurnHolder) -> None:
        self._holders.add(holder)

    def recall(self) -> None:
        while self._holders:
            self._holders.pop().recall()
