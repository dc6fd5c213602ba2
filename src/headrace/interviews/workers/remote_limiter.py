"""A model's limiter as a worker sees it: turns are the controller's, and calls in the worker wait for them in line.

Covers: asking for turns, using one that is lent for the next call in line (models.turn_leases), and giving turns back.
Does not cover: the controller's side (interviews.workers.worker_turns), or who may have a turn (models.limiter).
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Protocol

from headrace.errors import ModelUnusable
from headrace.interviews.workers.interview_wire import (
    CallEnded,
    CallFollowed,
    TurnGivenUp,
    TurnGranted,
    TurnRefused,
    TurnsRecalled,
    TurnWanted,
    call_ended,
)
from headrace.models.address_list import AddressList
from headrace.models.endpoint.call_results import Abandoned, CallRefused, CallResult, Ok
from headrace.models.limiter import ABANDONED, CallNotMade, EndpointState, ask_in_turn
from headrace.models.provider import Provider, Reply, Request
from headrace.models.shared_limiters import endpoint_key
from headrace.survey.model import Model, address_file_of

# Of the line, whenever a call ends: the first are those whose answers are the likeliest to be on disk by now.
_LOOKED_AT = 64


class TurnLink(Protocol):
    """What is needed of the way to the controller."""

    @property
    def is_behind(self) -> bool: ...

    async def caught_up(self) -> None: ...

    def number(self) -> int: ...

    def note_begun(self, call: int) -> None: ...

    def post(self, message: TurnWanted | TurnGivenUp | CallEnded | CallFollowed) -> None: ...


class HeldTurn:
    """A turn, by the number of the call that had asked for it; lent for `lease_s`."""

    __slots__ = ("granted_s", "lease_s", "number")

    def __init__(self, number: int, granted_s: float, lease_s: float) -> None:
        self.number = number
        self.granted_s = granted_s
        self.lease_s = lease_s


class _CallInLine:
    """A call in line."""

    __slots__ = ("is_stopping", "ordinal", "tokens", "turn")

    def __init__(
        self, turn: asyncio.Future[HeldTurn], ordinal: int, tokens: float, is_stopping: Callable[[], bool]
    ) -> None:
        self.turn = turn
        self.ordinal = ordinal
        self.tokens = tokens
        self.is_stopping = is_stopping


class RemoteLimiter:
    """`model` is the position in the spec of one of the endpoint's models. `is_journaled` tells of an interview whether
    all of its answers so far are on disk.
    """

    def __init__(self, link: TurnLink, model: int, is_journaled: Callable[[int], bool]) -> None:
        self._link = link
        self._model = model
        self._is_journaled = is_journaled
        self._loop = asyncio.get_running_loop()
        self._line: OrderedDict[int, _CallInLine] = OrderedDict()  # by call; bounded by the window
        self._recalled_s = -math.inf

    async def ask(self, provider: Provider, request: Request, tokens: float, is_stopping: Callable[[], bool]) -> Reply:
        return await ask_in_turn(self, provider, request, tokens, is_stopping)

    async def turn(self, request: Request, tokens: float, is_stopping: Callable[[], bool]) -> HeldTurn:
        if self._link.is_behind:  # replies that have not left take memory here: no call before they have
            await self._link.caught_up()
        if is_stopping():
            raise CallNotMade("the run is stopping")
        call = self._link.number()
        waiting = self._line[call] = _CallInLine(self._loop.create_future(), request.ordinal, tokens, is_stopping)
        self._link.post(TurnWanted(call, self._model, tokens, request.priority))
        try:
            return await waiting.turn
        except asyncio.CancelledError:
            if self._line.pop(call, None) is not None:
                self._link.post(TurnGivenUp(call))
            elif not waiting.turn.cancelled() and waiting.turn.exception() is None:
                self.ended(waiting.turn.result(), ABANDONED)  # its turn had just come
            raise

    def ended(self, go: HeldTurn, outcome: CallResult) -> None:
        ended = call_ended(go.number, outcome)
        if not isinstance(outcome, (Ok, CallRefused, Abandoned)):
            self._recalled_s = self._loop.time()  # the endpoint may hold calls back: each has to ask
        elif self._is_lent(go) and (following := self._next_in_line()) is not None:
            call, waiting = following
            self._link.post(CallFollowed(ended, call, waiting.tokens))
            waiting.turn.set_result(go)
            return
        self._link.post(ended)

    def granted(self, call: int, lease_s: float) -> None:
        waiting = self._line.pop(call, None)
        if waiting is None:
            return  # given up, or begun with another turn; the controller hears so
        if waiting.turn.done():  # cancelled, and has not run since
            self._link.post(TurnGivenUp(call))
            return
        self._link.note_begun(call)
        waiting.turn.set_result(HeldTurn(call, self._loop.time(), lease_s))

    def refused(self, call: int, reason: str) -> None:
        waiting = self._line.pop(call, None)
        if waiting is not None and not waiting.turn.done():
            waiting.turn.set_exception(ModelUnusable(reason))

    def recalled(self) -> None:
        self._recalled_s = self._loop.time()

    def release_stopped(self) -> None:
        for call, waiting in [each for each in self._line.items() if each[1].is_stopping()]:
            del self._line[call]
            self._link.post(TurnGivenUp(call))
            if not waiting.turn.done():
                waiting.turn.set_exception(CallNotMade("the run is stopping"))

    def notice_change(self, provider: Provider) -> None:
        pass  # a run with workers has limiters of its own: what they refuse was refused in this run

    def listen(self, listener: Callable[[EndpointState, str], None]) -> None:
        pass  # the controller listens to its own limiter

    def unlisten(self, listener: Callable[[EndpointState, str], None]) -> None:
        pass

    def _is_lent(self, turn: HeldTurn) -> bool:
        return self._recalled_s < turn.granted_s and self._loop.time() < turn.granted_s + turn.lease_s

    def _next_in_line(self) -> tuple[int, _CallInLine] | None:
        """Take out one of the first calls that may go; none while replies that have not left take memory."""
        if self._link.is_behind:
            return None
        for call, waiting in islice(self._line.items(), _LOOKED_AT):
            if not waiting.turn.done() and not waiting.is_stopping() and self._is_journaled(waiting.ordinal):
                del self._line[call]
                return call, waiting
        return None


class RemoteLimiters:
    """One for each endpoint, which the controller knows by the position of one of its models in the spec."""

    def __init__(self, link: TurnLink, models: list[Model], is_journaled: Callable[[int], bool]) -> None:
        self._keys = [endpoint_key(model) for model in models]
        self._limiters = {key: RemoteLimiter(link, position, is_journaled) for position, key in enumerate(self._keys)}
        with_file = (model for model in models if address_file_of(model.parameters) is not None)
        self._addresses = {endpoint_key(model): AddressList() for model in with_file}

    def limiter(self, model: Model) -> RemoteLimiter:
        return self._limiters[endpoint_key(model)]

    def take(self, message: TurnGranted | TurnRefused | TurnsRecalled) -> None:
        limiter = self._limiters[self._keys[message.model]]
        match message:
            case TurnGranted():
                limiter.granted(message.call, message.lease_s)
            case TurnRefused():
                limiter.refused(message.call, message.reason)
            case TurnsRecalled():
                limiter.recalled()

    def addresses(self, model: Model) -> AddressList | None:
        """Those that the controller has told; none before the first chunk."""
        return self._addresses.get(endpoint_key(model))

    def set_addresses(self, model: int, urls: list[str]) -> None:
        self._addresses[self._keys[model]].replace(urls)

    def allow(self, interviews: int) -> None:
        pass  # the controller's limiters know

    def release_stopped(self) -> None:
        for limiter in self._limiters.values():
            limiter.release_stopped()

    def close(self) -> None:
        pass
