"""The turns of one worker's calls, on the controller's side: those it waits for and those it has.

    TurnWanted ──► Limiter.want ──► TurnGranted ──► CallsBegun ──► CallFollowed, as often as it is lent ──► CallEnded

Covers: passing them between limiters and the wire, and giving all of them back when the worker dies, so that they block
no other call. Does not cover: who may have a turn (models.limiter), the worker's side
(interviews.workers.remote_limiter).
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.interviews.workers.interview_wire import (
    CallEnded,
    CallFollowed,
    CallsBegun,
    TurnGranted,
    TurnRefused,
    TurnsRecalled,
    TurnWanted,
    outcome_of_call,
)
from headrace.models.endpoint.call_results import Go
from headrace.models.limiter import ABANDONED, UNUSED, Limiter
from headrace.models.turn_leases import RemoteCall

Post = Callable[[TurnGranted | TurnRefused | TurnsRecalled], None]


class WorkerTurns:
    """`limiters` are by the position of a model in the spec; a model that never waits has none."""

    def __init__(self, limiters: list[Limiter | None], post: Post) -> None:
        self._post = post
        self._endpoints = [limiter and EndpointTurns(self, model, limiter) for model, limiter in enumerate(limiters)]
        self._waiting: dict[int, tuple[Limiter, RemoteCall]] = {}  # in line, by call; bounded by the window
        self._turns: dict[int, tuple[Limiter, Go]] = {}
        self._begun: set[int] = set()  # of those, the ones whose calls count as requests

    def wanted(self, message: TurnWanted) -> None:
        endpoint = self._endpoints[message.model]
        assert endpoint is not None
        call = RemoteCall(endpoint, message.call, message.tokens, message.priority)
        self._waiting[message.call] = endpoint.limiter, call
        endpoint.limiter.want(call)

    def begun(self, message: CallsBegun) -> None:
        self._begun.update(message.calls)

    def ended(self, message: CallEnded) -> None:
        self._begun.discard(message.turn)
        if turn := self._turns.pop(message.turn, None):
            limiter, go = turn
            limiter.ended(go, outcome_of_call(message))

    def followed(self, message: CallFollowed) -> None:
        limiter, go = self._turns[message.ended.turn]
        _, asked = self._waiting.pop(message.call, (None, None))
        following = limiter.go_on(go, outcome_of_call(message.ended), message.tokens, asked)
        self._turns[message.ended.turn] = limiter, following
        if asked is None:
            self.given_up(message.call)  # its own turn had come as well, and nobody uses it

    def given_up(self, call: int) -> None:
        """The call will not be made, or never end."""
        if waiting := self._waiting.pop(call, None):
            limiter, asked = waiting
            limiter.withdraw(asked)
        elif turn := self._turns.pop(call, None):
            limiter, go = turn
            limiter.ended(go, ABANDONED if call in self._begun else UNUSED)
            self._begun.discard(call)

    def give_all_back(self, *, is_host_lost: bool = False) -> int:
        """The worker is dead. Return how many calls it had in flight: of a host that is lost with what it had not yet
        sent, each turn counts as one.
        """
        if is_host_lost:
            self._begun.update(self._turns)
        unanswered = len(self._begun)
        for call in [*self._waiting, *self._turns]:
            self.given_up(call)
        return unanswered

    # What limiters say.

    def granted(self, endpoint: EndpointTurns, call: RemoteCall, go: Go, lease_s: float) -> None:
        del self._waiting[call.number]
        self._turns[call.number] = endpoint.limiter, go
        self._post(TurnGranted(endpoint.model, call.number, lease_s))

    def refused(self, endpoint: EndpointTurns, call: RemoteCall, reason: str) -> None:
        del self._waiting[call.number]
        self._post(TurnRefused(endpoint.model, call.number, reason))

    def recalled(self, endpoint: EndpointTurns) -> None:
        self._post(TurnsRecalled(endpoint.model))


class EndpointTurns:
    """The `TurnHolder` that the limiter of one endpoint knows."""

    def __init__(self, turns: WorkerTurns, model: int, limiter: Limiter) -> None:
        self._turns = turns
        self.model = model
        self.limiter = limiter

    def granted(self, call: RemoteCall, go: Go, lease_s: float) -> None:
        self._turns.granted(self, call, go, lease_s)

    def refused(self, call: RemoteCall, reason: str) -> None:
        self._turns.refused(self, call, reason)

    def recall(self) -> None:
        self._turns.recalled(self)
