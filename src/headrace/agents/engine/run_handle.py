"""`Run`: one agent run as a caller holds it, on the caller's own event loop or thread.

Covers: result, status, cancelling, messages, decisions, and emitted events. Does not cover: submitting (engine), or
what happens on the engine's loop (caller_requests).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from headrace.agents.engine.live_runs import RunEnd
from headrace.agents.engine.loop_access import LoopAccess
from headrace.agents.kept_values import encode_kept
from headrace.errors import OptionError
from headrace.priority import Priority
from headrace.store.contents import decoding
from headrace.store.engine_file.engine_schema import RunState
from headrace.store.engine_file.runs import RunRow
from headrace.survey.values import decode_value

_MOST_UNHEARD = 1000
_NOT_GIVEN: Any = object()
_GO_ON = "Once the cause is gone, await run.retry() goes on behind its last step; submitting it again does not."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """A run as it is on disk. `state` is one of `RunState`; `error` is why it failed, or the undecided step."""

    id: int
    name: str
    kind: str
    state: RunState
    priority: Priority
    attempts: int
    preemptions: int
    failures: int
    error: str

    @classmethod
    def from_row(cls, row: RunRow) -> RunStatus:
        return cls(
            id=row.id,
            name=row.name,
            kind=row.kind,
            state=row.state,
            priority=Priority(row.priority),
            attempts=row.epoch,
            preemptions=row.preempted,
            failures=row.failures,
            error=row.error,
        )


class Run:
    """A handle made by `engine.submit`; several handles may stand for one run."""

    def __init__(self, access: LoopAccess, id: int, name: str) -> None:
        self._access = access
        self.id = id
        self.name = name

    def __repr__(self) -> str:
        return f"Run({self.id}, {self.name!r})"

    async def result(self) -> Any:
        """What the function returned; raises RunFailed where it ended otherwise, and waits until it has."""
        end: RunEnd = await self._access.ask(
            lambda loop, reply: loop.requests.watch(self.id, reply),
            given_up=lambda loop, reply: loop.requests.unwatch(self.id, reply),
        )
        if end.state is not RunState.DONE:
            raise end.failure(fix=_GO_ON)
        stored = (
            end.result
            if end.result is not None
            else await self._access.call(lambda loop: loop.requests.result(self.id))
        )
        with decoding(self._access.path, f"the result of {self.name}"):
            return decode_value(stored or b"null")

    def status(self) -> RunStatus:
        """The run's state, attempts and error as they are on disk now. Not awaited: it does not wait for the engine."""
        return RunStatus.from_row(self._access.look(lambda loop: loop.requests.row_now(self.id)))

    async def cancel(self) -> None:
        """End the run for good, with its children; its journaled steps stay in the file."""
        await self._access.call(lambda loop: loop.requests.cancel(self.id))

    async def send(self, message: Any) -> None:
        """Send the run a message, durable when this returns; `ctx.receive()` takes messages in order."""
        payload = encode_kept(message, "A message")
        await self._access.call(lambda loop: loop.requests.send(self.id, payload))

    async def resolve(self, step: str, *, result: Any = _NOT_GIVEN, again: bool = False) -> None:
        """Decide about a side effect that has started and not finished: it happened, with this result; or run it
        again. The run goes on. The result of a program is how it ended: `{"code": 0, "output": "sent"}`.
        """
        if again == (result is not _NOT_GIVEN):
            raise OptionError("resolve() needs either result= (it has happened) or again=True (it has not).")
        encoded = None if again else encode_kept(result, f"The result of step {step!r}")
        await self._access.call(lambda loop: loop.requests.resolve(self.id, step, encoded))

    async def retry(self) -> None:
        """Let a failed run go on after its last journaled step, once the cause is gone; its failed children too."""
        await self._access.call(lambda loop: loop.requests.retry(self.id))

    async def events(self) -> AsyncGenerator[Any]:
        """Yield events that the run emits from now on, until it ends. A reader that is too slow misses the oldest."""
        loop, unheard = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()

        def put(payload: bytes | None) -> None:
            if unheard.qsize() >= _MOST_UNHEARD:
                unheard.get_nowait()
            unheard.put_nowait(payload)

        def hear(payload: bytes | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(put, payload)

        self._access.tell(lambda engine_loop: engine_loop.requests.listen(self.id, hear))
        try:
            while (payload := await unheard.get()) is not None:
                yield decode_value(payload)
        finally:
            self._access.tell(lambda engine_loop: engine_loop.requests.leave(self.id, hear))
