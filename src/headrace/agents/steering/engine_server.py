"""Carries out requests to an engine from other processes, on the engine's loop. Each that changes something is an event
of the engine.

Does not cover: the messages (engine_messages), the socket (store.holder_socket), or asking (engine_client).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, assert_never

import msgspec

from headrace.agents.engine.status import EngineStatus
from headrace.agents.kept_values import encode_kept
from headrace.agents.steering.engine_messages import (
    MOST_REQUEST_BYTES,
    AgentRunReply,
    CancelRunRequest,
    EmittedEvent,
    EmittedReply,
    EmittedRequest,
    EngineAnswer,
    EngineReply,
    EngineRequest,
    EngineStateRequest,
    ResolveRequest,
    RetryRunRequest,
    RunRequest,
    SendRequest,
    bounded_status,
)
from headrace.errors import HeadraceError, InvalidInput
from headrace.store.holder_socket.request_server import answering
from headrace.store.holder_socket.socket_address import RefusalReply

if TYPE_CHECKING:
    from headrace.agents.engine.caller_requests import CallerRequests
    from headrace.agents.engine.engine_parts import EngineParts
    from headrace.store.engine_file.runs import RunRow

_END_WITHIN_S, _LOOK_EVERY_S = 1.0, 0.02
_SERVE_WITHIN_S = 4.0  # what a run is told is committed first; less than a client waits

_requests: msgspec.msgpack.Decoder[EngineRequest] = msgspec.msgpack.Decoder(EngineRequest)


class EngineAnswers:
    """`status` gives the engine's state now."""

    def __init__(self, parts: EngineParts, requests: CallerRequests, status: Callable[[], EngineStatus]) -> None:
        self._parts = parts
        self._requests = requests
        self._status = status

    def steerable(self) -> AbstractAsyncContextManager[None]:
        """While the block runs, the engine can be steered. It holds its file's lock."""
        return answering(self._parts.file.path, _requests, self.answer, MOST_REQUEST_BYTES, _SERVE_WITHIN_S)

    async def answer(self, request: EngineRequest) -> EngineAnswer | RefusalReply:
        try:
            match request:
                case EngineStateRequest():
                    return self._state()
                case EmittedRequest(run):
                    events = self._parts.emitted.of_run(run)
                    return EmittedReply(tuple(EmittedEvent(at, text) for at, text in events))
                case _:
                    await self._carry_out(request)
                    return await self._run_now(request)
        except HeadraceError as error:
            return RefusalReply(f"{error.message} {error.fix}".strip())

    def _state(self) -> EngineReply:
        limits, budget_bytes = self._parts.options.memory, self._parts.options.memory.budget_bytes
        shrink, preempt, kill = (
            limits.bytes_at(share, budget_bytes) / budget_bytes
            for share in (limits.shrink_at, limits.preempt_at, limits.emergency_at)
        )
        return EngineReply(os.getpid(), (shrink, preempt, kill), bounded_status(self._status()))

    async def _carry_out(self, request: RunRequest) -> None:
        run, requests = request.run, self._requests
        match request:
            case CancelRunRequest():
                if run not in self._parts.runs.by_id:  # one that is has not ended: no need to wait for the disk
                    row = await requests.row(run)
                    if row.state.is_final:
                        raise HeadraceError(f"The run {row.name} has ended already: it is {row.state.value}.")
                self._record(run, "cancelled")
                await requests.cancel(run)
            case RetryRunRequest():
                await requests.retry(run)
                self._record(run, "tried again")
            case SendRequest(_, message):
                await requests.send(run, _kept(message, "The message"))
                self._record(run, "sent a message")
            case ResolveRequest(_, step, result):
                has_happened = "did not happen" if result is None else "happened, with a result"
                await requests.resolve(run, step, None if result is None else _kept(result, "The result"))
                self._record(run, f"the side effect of step {step!r} {has_happened}")
            case _:
                assert_never(request)

    def _record(self, run: int, words: str) -> None:
        self._parts.log.record("steered", f"{words}, by a request through the engine's socket", run=run)

    async def _run_now(self, request: RunRequest) -> AgentRunReply:
        """How the run stands then. One that is cancelled gets a moment to end."""
        row = await self._requests.row(request.run)
        if isinstance(request, CancelRunRequest):
            row = await self._ended(row)
        return AgentRunReply(row.id, row.state.value)

    async def _ended(self, row: RunRow) -> RunRow:
        give_up_s = time.monotonic() + _END_WITHIN_S
        while not row.state.is_final and time.monotonic() < give_up_s:
            await asyncio.sleep(_LOOK_EVERY_S)
            row = await self._requests.row(row.id)
        return row


def _kept(text: str, what: str) -> bytes:
    """JSON from outside as a run keeps its values."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(f"{what} is not JSON: {error}.", fix='Write a text in quotes: "go on".') from None
    return encode_kept(value, what)
