"""The messages between limiter and endpoint: the answer to `ask`, the result of a call, the endpoint's status."""

from __future__ import annotations

from enum import Enum

import msgspec

from headrace.models.endpoint.breaker import Circuit
from headrace.models.provider import AddressChange, RateHint
from headrace.priority import Priority


class Go(msgspec.Struct, gc=False, eq=False):
    """The call goes out now and counts as in flight; the caller hands this back to `ended`, whatever happens."""

    started_s: float
    tokens: float  # as estimated
    incidents: int  # how many there had been: a call that began before the latest one says nothing about now
    priority: Priority = Priority.NORMAL


class Wait(msgspec.Struct, frozen=True, gc=False):
    """Ask again at `until_s`; where it is None, when a call of this endpoint has ended: one is in flight then."""

    until_s: float | None


class Closed(msgspec.Struct, frozen=True, gc=False):
    """The service refuses this model's key, name, address or quota: no call goes out before that has changed."""

    reason: str


class Ok(msgspec.Struct, frozen=True, gc=False):
    """A reply came, with so many tokens in and out; also where its text is of no use to the question. `took_s` is how
    long the call took where it was made: a worker's result may be heard of much later. None is until now.
    """

    tokens: float
    rates: RateHint | None = None
    changes: list[AddressChange] | None = None
    took_s: float | None = None


class Busy(msgspec.Struct, frozen=True, gc=False):
    """The service asks for fewer calls: 429, 529."""

    retry_after_s: float | None = None
    message: str = ""


class TimedOut(msgspec.Struct, frozen=True, gc=False):
    """The whole reply did not come in time."""

    message: str = ""


class Unavailable(msgspec.Struct, frozen=True, gc=False):
    """A fault of the service: 5xx, a connection that broke, a reply that makes no sense."""

    message: str = ""


class Away(msgspec.Struct, frozen=True, gc=False):
    """The service was never reached: no route, no name, no connection. `message` says who, where and why."""

    message: str = ""
    changes: list[AddressChange] | None = None


class CallRefused(msgspec.Struct, frozen=True, gc=False):
    """The service will not take this call; nothing is wrong with the endpoint."""


class Unusable(msgspec.Struct, frozen=True, gc=False):
    """No call to this model will succeed: its key, name, address or quota is wrong. `key_advice` says what to do where
    it is the key.
    """

    message: str
    key_advice: str = ""


class Abandoned(msgspec.Struct, frozen=True, gc=False):
    """The call was cancelled, and says nothing about the endpoint."""


class Unused(msgspec.Struct, frozen=True, gc=False):
    """No call was made with the turn."""


CallResult = Ok | Busy | TimedOut | Unavailable | Away | CallRefused | Unusable | Abandoned | Unused


class EndpointCondition(Enum):
    """How an endpoint is: in which incident, if in any."""

    OPEN = "open"
    BUSY = "busy"  # the service asks for fewer calls
    FAILING = "failing"  # the circuit is open
    AWAY = "away"  # it cannot be reached
    CLOSED = "closed"  # it refuses the key, the model's name or the quota


class EndpointStatus(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint's state and figures, for the progress line and for the statistics of a run.

    `since_s` is when its condition began, None where it was open from the start; `reason` says why it is not open,
    `key_advice` what to do where it is closed because of its key.
    `requests_per_minute` and `tokens_per_minute` are measured, the `most_` ones are the limits in force.
    """

    circuit: Circuit
    paused_until_s: float | None
    busy_since_s: float | None
    away_since_s: float | None
    closed_reason: str | None
    concurrency: int
    in_flight: int
    waiting: int
    requests_per_minute: float
    tokens_per_minute: float
    most_requests_per_minute: float | None
    most_tokens_per_minute: float | None
    calls: int
    tokens: int
    busy: int
    failures: int
    condition: EndpointCondition
    since_s: float | None
    reason: str
    key_advice: str
