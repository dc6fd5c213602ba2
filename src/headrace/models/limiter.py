"""A limiter lets calls through to a model's endpoint one by one, as the endpoint allows, in the order of priority.

Covers: waiting for a turn without a connection, telling the endpoint how each call ended, calls that were no attempt
(the network was away, the service was busy), lending turns to workers, and reporting changes of the endpoint's state to
listeners. Does not cover: whether a call may go out (models.endpoint.endpoint), which is next
(models.endpoint.call_line), what a lent turn is (models.turn_leases), or trying a failed one again
(interviews.interview).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from enum import Enum
from typing import Protocol, TypeVar, assert_never

from headrace.errors import (
    FileUnusable,
    HeadraceError,
    ModelUnusable,
    NetworkAway,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
)
from headrace.limits import EndpointLimits
from headrace.models.endpoint.call_line import CallLine
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
from headrace.models.endpoint.endpoint import Endpoint
from headrace.models.provider import AddressChange, AllAddressesAway, Provider, Reply, Request
from headrace.models.turn_leases import LEASE_S, Leases, RemoteCall
from headrace.priority import Priority
from headrace.units import format_duration

ABANDONED, UNUSED = Abandoned(), Unused()
_OPEN = EndpointCondition.OPEN
# Paused as long as it is, a service that answers each of these with "busy" will not serve this question.
_MOST_BUSY = 50


class EndpointState(Enum):
    """Whether the plan should start interviews for this endpoint."""

    OPEN = "open"
    HELD = "held"  # busy, failing or away: start nothing more for it
    CLOSED = "closed"  # what was asked of it is refused: what is left is for a later run


class CallNotMade(HeadraceError):
    """The call was not made: the run stopped while the call waited for its turn."""


Turn = TypeVar("Turn")


class Turns(Protocol[Turn]):
    """Gives turns and takes the result of each call. The limiter does, or a worker's stand-in for it."""

    async def turn(self, request: Request, tokens: float, is_stopping: Callable[[], bool]) -> Turn: ...

    def ended(self, go: Turn, outcome: CallResult) -> None: ...


async def ask_in_turn(
    turns: Turns[Turn], provider: Provider, request: Request, tokens: float, is_stopping: Callable[[], bool]
) -> Reply:
    busy = 0
    while True:
        go = await turns.turn(request, tokens, is_stopping)
        began_s = time.monotonic()
        try:
            reply = await provider.ask(request)
        except ProviderError as error:
            turns.ended(go, outcome_of(error))
            busy += isinstance(error, ProviderBusy)
            if isinstance(error, NetworkAway) or (isinstance(error, ProviderBusy) and busy < _MOST_BUSY):
                continue  # it was no attempt: the endpoint holds everything back until a probe gets through
            raise
        except BaseException:
            turns.ended(go, ABANDONED)
            raise
        took_s = time.monotonic() - began_s
        turns.ended(go, Ok(reply.input_tokens + reply.output_tokens, reply.rates, reply.changes, took_s))
        return reply


class Reach(Enum):
    """How an endpoint is, whether one of its addresses can be reached, or what its address file says, when that
    changes.
    """

    AWAY = "model away"
    BUSY = "model busy"
    FAILING = "model failing"
    CLOSED = "model closed"
    REOPENED = "model reopened"
    BACK = "model back"
    ADDRESS_AWAY = "address away"
    ADDRESS_BACK = "address back"
    ADDRESSES_CHANGED = "addresses changed"
    ADDRESSES_KEPT = "addresses kept"


_REACH_OF = {
    EndpointCondition.AWAY: Reach.AWAY,
    EndpointCondition.BUSY: Reach.BUSY,
    EndpointCondition.FAILING: Reach.FAILING,
    EndpointCondition.CLOSED: Reach.CLOSED,
}


class Limiter:
    """Lets one endpoint's calls through. Listeners get each change of its state, with the reason.

    `on_reach` is called once when an incident begins and once when it has ended, with the reason or how long it took;
    of a busy service only where it is still busy when it is asked again.
    """

    def __init__(self, limits: EndpointLimits, on_reach: Callable[[Reach, str], None] | None = None) -> None:
        self._endpoint = Endpoint(limits, random.random)
        self._on_reach = on_reach
        self._told = EndpointCondition.OPEN
        self._told_s = 0.0
        self._away_addresses: set[str] = set()
        self._line: CallLine[_Waiting | RemoteCall] = CallLine(limits.aging_s)
        self._own_in_line = 0  # calls of this process
        self._leases = Leases()
        self._timer: asyncio.TimerHandle | None = None
        self._listeners: list[Callable[[EndpointState, str], None]] = []
        self.state = EndpointState.OPEN

    def allow(self, calls: int) -> None:
        """Lets the limit of calls in flight grow to so many, if the endpoint bears it."""
        self._endpoint.allow(calls)

    def listen(self, listener: Callable[[EndpointState, str], None]) -> None:
        """Call this with each change from now on, and at once where the endpoint is not open."""
        self._listeners.append(listener)
        self._tell_state()
        if self.state is not EndpointState.OPEN:
            listener(self.state, self._reason())

    def unlisten(self, listener: Callable[[EndpointState, str], None]) -> None:
        """Stops calling this listener: an endpoint outlives the runs that use it."""
        self._listeners.remove(listener)

    def status(self) -> EndpointStatus:
        return self._endpoint.status(time.monotonic(), waiting=self._line.total)

    async def ask(self, provider: Provider, request: Request, tokens: float, is_stopping: Callable[[], bool]) -> Reply:
        """Make one call when its turn comes; raises what the provider raises, or CallNotMade."""
        self.notice_change(provider)
        return await ask_in_turn(self, provider, request, tokens, is_stopping)

    async def turn(self, request: Request, tokens: float, is_stopping: Callable[[], bool]) -> Go:
        """Wait for the turn of a call, which must come back through `ended`; raises CallNotMade or ModelUnusable."""
        priority = request.priority
        return self._go_at_once(tokens, priority) or await self._turn(tokens, is_stopping, priority)

    def ended(self, go: Go, outcome: CallResult) -> None:
        self._take_outcome(time.monotonic(), go, outcome)
        if self._line.total:
            self._advance()
        self._tell_state()

    def want(self, call: RemoteCall) -> None:
        """Give a worker's call its turn when it comes: at once, or later. Until then `withdraw` takes it back."""
        if (go := self._go_at_once(call.tokens, call.priority)) is not None:
            self._give(call, go, time.monotonic())
            return
        self._join_line(call)
        if call.priority >= Priority.HIGH:
            self._leases.recall()

    def withdraw(self, call: RemoteCall) -> None:
        self._line.remove(call, call.priority)
        self._advance()  # the next one may need less
        self._tell_state()

    def go_on(self, go: Go, outcome: CallResult, tokens: float, asked: RemoteCall | None) -> Go:
        """The call of a lent turn has ended, and its worker has begun the next one with the same turn: `asked`, where
        that is still in line.
        """
        endpoint, now_s = self._endpoint, time.monotonic()
        if asked is not None:
            self._line.remove(asked, asked.priority)
        self._take_outcome(now_s, go, outcome)
        following = endpoint.go_on(now_s, go, tokens)
        if endpoint.is_over_limit or endpoint.has_rates:
            self._leases.recall()
        elif endpoint.has_room and self._line.total:
            self._advance()
        self._tell_state()
        return following

    def notice_change(self, provider: Provider) -> None:
        """Reopen where a call would not be sent as the refused one was: with another key, for instance."""
        if self._endpoint.closed_reason is not None and provider.is_changed():
            self.reopen("a run asks it that has not been refused: a new one, or with another key or other parameters")

    def reopen(self, why: str) -> None:
        """Let calls go at once, whatever held them back."""
        was_closed = self._endpoint.closed_reason is not None
        self._endpoint.reopen(time.monotonic())
        if was_closed:
            self._told = EndpointCondition.OPEN
            if self._on_reach is not None:
                self._on_reach(Reach.REOPENED, why)
        self._advance()
        self._tell_state()

    def addresses_changed(self, known: tuple[str, ...], joined: tuple[str, ...]) -> None:
        """Forget what was told of addresses that have left. Where none could be reached, try those that joined."""
        self._away_addresses &= {url.partition("?")[0] for url in known}
        if joined and self._endpoint.condition is EndpointCondition.AWAY:
            self.reopen("it has other addresses")

    def release_stopped(self) -> None:
        """Fails the waiting calls of runs that are stopping: a stop must not wait for a network to come back."""
        for waiting in self._line.waiting():
            if waiting.is_stopping():
                self._line.remove(waiting, waiting.priority)
                waiting.refuse(CallNotMade("the run is stopping"))
        self._tell_state()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_at_once(self, tokens: float, priority: Priority) -> Go | None:
        if self._line.total:
            return None  # each in its order
        answer = self._endpoint.ask(time.monotonic(), tokens, priority)
        return answer if isinstance(answer, Go) else None

    async def _turn(self, tokens: float, is_stopping: Callable[[], bool], priority: Priority) -> Go:
        if is_stopping():
            raise CallNotMade("the run is stopping")
        waiting = _Waiting(tokens, is_stopping, priority)
        self._own_in_line += 1
        self._join_line(waiting)
        self._leases.recall()
        try:
            return await waiting.future
        except asyncio.CancelledError:
            if waiting.future.done() and not waiting.future.cancelled() and waiting.future.exception() is None:
                self.ended(waiting.future.result(), ABANDONED)  # its turn had just come
            else:
                self._line.remove(waiting, priority)
                self._advance()  # the next one may need less
                self._tell_state()
            raise
        finally:
            self._own_in_line -= 1

    def _join_line(self, call: _Waiting | RemoteCall) -> None:
        self._line.add(call, call.priority, time.monotonic())
        if self._line.first()[1] is call:  # else the first one waits already, and is looked at when it may go
            self._advance()
        self._tell_state()  # with this one in line there is a probe: the plan need not send more

    def _advance(self) -> None:
        """Gives turns to the calls in line, in order, for as long as the endpoint allows."""
        line, endpoint = self._line, self._endpoint
        while line.total:
            priority, waiting = line.first()
            if waiting.is_over:  # cancelled, and about to leave the line itself
                line.remove(waiting, priority)
                continue
            now_s = time.monotonic()
            is_aged = endpoint.reserved_until_s > now_s and line.is_aged(priority, now_s)
            answer = endpoint.ask(now_s, waiting.tokens, priority, is_aged=is_aged)
            match answer:
                case Go():
                    line.give_turn(priority, now_s)
                    self._give(waiting, answer, now_s)
                case Wait():
                    self._wake_at(answer.until_s, now_s)
                    return
                case Closed():
                    for each in line.waiting():
                        line.remove(each, each.priority)
                        each.refuse(ModelUnusable(answer.reason))
                case _:
                    assert_never(answer)

    def _give(self, call: _Waiting | RemoteCall, go: Go, now_s: float) -> None:
        if isinstance(call, _Waiting):
            call.give(go)
            return
        lease_s = self._lease_s(now_s, call.priority)
        if lease_s:
            self._leases.lent(call.holder)
        call.holder.granted(call, go, lease_s)

    def _lease_s(self, now_s: float, priority: Priority) -> float:
        """For how long a worker may use a turn again; 0 while every call must ask, because others wait for turns."""
        endpoint = self._endpoint
        must_ask = endpoint.is_held or endpoint.has_rates or now_s < endpoint.reserved_until_s
        return 0.0 if must_ask or self._own_in_line or priority < Priority.NORMAL else LEASE_S

    def _take_outcome(self, now_s: float, go: Go, outcome: CallResult) -> None:
        self._endpoint.ended(now_s, go, outcome)
        if isinstance(outcome, (Ok, Away)) and outcome.changes:
            self._note_addresses(outcome.changes)
        if self._endpoint.is_held:
            self._leases.recall()
        if self._endpoint.is_held or self._told is not _OPEN:
            self._tell_condition()

    def _wake_at(self, until_s: float | None, now_s: float) -> None:
        self.close()
        if until_s is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, until_s - now_s), self._advance)

    def _tell_state(self) -> None:
        state = self._state()
        if state is not self.state:
            self.state = state
            for listener in self._listeners:
                listener(state, self._reason())

    def _note_addresses(self, changes: list[AddressChange]) -> None:
        """Report an address once, however many worker processes have noticed it."""
        for change in changes:
            if bool(change.error) == (change.address in self._away_addresses):
                continue
            self._away_addresses ^= {change.address}
            if self._on_reach is not None:
                reach = Reach.ADDRESS_AWAY if change.error else Reach.ADDRESS_BACK
                self._on_reach(reach, change.error or change.address)

    def _tell_condition(self) -> None:
        condition = self._endpoint.condition
        if condition is self._told or self._endpoint.is_new_pause:
            return
        before, self._told = self._told, condition
        status = self.status()
        if condition is not _OPEN:
            self._told_s = status.since_s or time.monotonic() if before is _OPEN else self._told_s
            said, reach = status.reason, _REACH_OF[condition]
        else:
            lasted = format_duration(time.monotonic() - self._told_s)
            said, reach = (
                f"{'is reached' if before is EndpointCondition.AWAY else 'answers'} again, after {lasted}",
                Reach.BACK,
            )
        if self._on_reach is not None:
            self._on_reach(reach, said)

    def _reason(self) -> str:
        status = self.status()
        if status.closed_reason is not None:
            return status.closed_reason
        if status.away_since_s is not None:
            since = time.localtime(time.time() - (time.monotonic() - status.away_since_s))
            return f"away since {time.strftime('%H:%M', since)}"
        return "busy" if status.busy_since_s is not None else "failing" if self._endpoint.is_held else ""

    def _state(self) -> EndpointState:
        if self._endpoint.closed_reason is not None and self._endpoint.refuses(time.monotonic()):
            return EndpointState.CLOSED
        # With no call left that could be the probe, the plan has to send one, or the incident would never end.
        can_probe = self._line.total > 0 or self._endpoint.in_flight > 0
        return EndpointState.HELD if self._endpoint.is_held and can_probe else EndpointState.OPEN


class _Waiting:
    """A call that waits for its turn."""

    __slots__ = ("future", "is_stopping", "priority", "tokens")

    def __init__(self, tokens: float, is_stopping: Callable[[], bool], priority: Priority) -> None:
        self.future: asyncio.Future[Go] = asyncio.get_running_loop().create_future()
        self.tokens = tokens
        self.is_stopping = is_stopping
        self.priority = priority

    @property
    def is_over(self) -> bool:
        return self.future.done()

    def give(self, go: Go) -> None:
        self.future.set_result(go)

    def refuse(self, error: HeadraceError) -> None:
        if not self.future.done():
            self.future.set_exception(error)


def outcome_of(error: ProviderError) -> CallResult:
    """The call result that stands for an error of a provider."""
    match error:
        case ProviderBusy():
            return Busy(error.retry_after_s, str(error))
        case ProviderTimeout():
            return TimedOut(str(error))
        case AllAddressesAway():
            return Away(str(error), error.changes)
        case NetworkAway():
            return Away(str(error))
        case ModelUnusable():
            return Unusable(str(error), error.key_advice)
        case FileUnusable():
            return ABANDONED  # the service had no part in it
        case ProviderRefused():
            return CallRefused()
        case _:
            return Unavailable(str(error))
