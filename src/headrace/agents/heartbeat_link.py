"""`HeartbeatLink`: a heartbeat's link. Its calls start over each time, so nothing of them is journaled.

Covers: what its `ctx` does instead, on the engine's loop or in a thread of the heartbeat's own. Does
not cover: when it runs (agents.scheduler.heartbeats).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Executor as Threads
from typing import Any

from headrace.agents.agent_outbox import AgentOutbox
from headrace.agents.contract import ProgramCall
from headrace.agents.link import AgentLink, Value
from headrace.agents.model_calls import AgentCalls, ReplyTimeout
from headrace.agents.slot_turns import SlotTurns
from headrace.errors import InvalidInput
from headrace.priority import Priority
from headrace.survey.values import encode_value
from headrace.threads.crossing import awaited_on


class HeartbeatLink(AgentLink):
    """Made on the engine's loop, where models are asked, whatever loop the heartbeat runs on."""

    def __init__(self, epoch: int, threads: Threads, calls: AgentCalls) -> None:
        outbox = AgentOutbox()
        super().__init__(0, epoch, outbox, threads, SlotTurns(0, outbox))
        self._calls = calls
        self._engine_loop = asyncio.get_running_loop()

    async def side_effect(
        self, step: str, made: Coroutine[Any, Any, Value], mark: bytes, *, runs_program: bool = False
    ) -> Value:
        return await made

    async def step_done(self, name: str, result: bytes, mark: bytes = b"", took_s: float | None = None) -> None:
        self.stopping.pass_or_stop()

    async def checkpoint(self, number: int, state: bytes) -> None:
        self.stopping.pass_or_stop()

    async def receive(self, step: str) -> bytes | None:
        return None

    async def ask(
        self, step: str, model: bytes, prompt: str, system: str, mark: bytes, timeout_s: float | None
    ) -> bytes:
        timeout = ReplyTimeout(timeout_s)
        asked = self._calls.ask(model, prompt, system, self.stopping.is_stopping, Priority.LOW, timeout)
        return encode_value(await awaited_on(self._engine_loop, asked))

    async def run_command(self, step: str, command: ProgramCall, mark: bytes) -> bytes:
        raise InvalidInput("A heartbeat runs no programs.", fix="Have it submit a run that does: engine.submit(...).")

    def emit(self, payload: bytes) -> None:
        pass
