"""`ModelEndpoint`: a model's endpoint as people see it: in `engine.status()`, on a run's page, and in the error of too
long a wait; and which models need another key.

Does not cover: why an endpoint is in its state (models.endpoint.endpoint).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from math import ceil
from typing import TYPE_CHECKING, Protocol

import msgspec

from headrace.display import counted
from headrace.units import format_duration

if TYPE_CHECKING:
    from headrace.models.endpoint.call_results import EndpointStatus

_LONG_S = 60
_MOST_KEYS = 3
_TIMED = {
    "open": "waits {for_s} for its rate limit",
    "busy": "paused for {for_s}: the service asked for it",
    "failing": "paused for {for_s} after failures: {why}",
    "away": "cannot be reached, tried again in {for_s}: {why}",
    "closed": "refuses, tried again in {for_s}: {why}",
}
_UNTIMED = {
    "open": "open",
    "busy": "paused: one call asks whether the service takes more",
    "failing": "paused after failures, one call is tried: {why}",
    "away": "cannot be reached, one call is tried: {why}",
    "closed": "refuses: {why}",
}


class ModelEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`state` is open, busy (the service asks for fewer calls), failing (its circuit is open), away (it cannot be
    reached) or closed (it refuses the key, the model's name or the quota); `reason` says why it is not open, and
    `key_advice` what to do where it is closed because of its key.

    `since` is in seconds since 1970, None where it was open from the start. `waiting` calls are in line, `in_flight`
    were sent. Calls are held back, or refused by a closed endpoint, for `retry_in_s` more; then one of them is tried.

    `calls` are all that were made, `tokens` what they used; `busy` of them were too many for the
    service, `failures` failed.
    """

    model: str
    service: str
    state: str
    since: float | None
    reason: str
    waiting: int
    in_flight: int
    retry_in_s: float | None
    calls: int = 0
    tokens: int = 0
    busy: int = 0
    failures: int = 0
    key_advice: str = ""

    @classmethod
    def of(cls, model: str, service: str, status: EndpointStatus, now_s: float, since: float | None) -> ModelEndpoint:
        until_s = status.paused_until_s
        return cls(
            model=model,
            service=service,
            state=status.condition.value,
            since=since,
            reason=status.reason,
            waiting=status.waiting,
            in_flight=status.in_flight,
            retry_in_s=None if until_s is None else max(0.0, until_s - now_s),
            calls=status.calls,
            tokens=status.tokens,
            busy=status.busy,
            failures=status.failures,
            key_advice=status.key_advice,
        )

    def in_words(self) -> str:
        """What is done with calls to it now, for people who watch: `paused for 12 s: the service asked for it`."""
        why = self.reason.rstrip(".")
        if self.retry_in_s is None:
            return _UNTIMED.get(self.state, self.state).format(why=why)
        for_s = f"{ceil(self.retry_in_s)} s" if self.retry_in_s < _LONG_S else format_duration(self.retry_in_s)
        return _TIMED.get(self.state, self.state).format(why=why, for_s=for_s)

    def __str__(self) -> str:
        since = "" if self.since is None else f" since {time.strftime('%H:%M:%S', time.localtime(self.since))}"
        why = f" ({self.reason.rstrip('.')})" if self.reason else ""
        again = "" if self.retry_in_s is None else f", tried again in {format_duration(self.retry_in_s)}"
        calls = f"{counted(self.waiting, 'call')} in line, {self.in_flight} in flight"
        return f"{self.model} is {self.state}{since}{why}{again}; {calls}"


class _Keyed(Protocol):
    @property
    def model(self) -> str: ...
    @property
    def key_advice(self) -> str: ...


def needed_keys(endpoints: Iterable[_Keyed]) -> str:
    """What to do about the keys of models that are not asked because theirs is missing or refused, the first three;
    empty where there is no such model.
    """
    advice = list(dict.fromkeys(f"{each.model}: {each.key_advice}" for each in endpoints if each.key_advice))
    more = f" And {counted(len(advice) - _MOST_KEYS, 'model')} more." if len(advice) > _MOST_KEYS else ""
    return " ".join(advice[:_MOST_KEYS]) + more
