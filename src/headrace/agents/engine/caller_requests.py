"""What the owners of runs ask of the engine, on its loop: ends, events, rows, cancelling, messages, decisions.

Covers: one request each. Does not cover: submitting (agents.engine.backlog), or the caller's side
(agents.engine.run_handle).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict

from headrace.agents.engine.backlog import Backlog
from headrace.agents.engine.engine_writer import EngineWriter
from headrace.agents.engine.live_runs import Listeners, RunEnd
from headrace.agents.engine.run_lives import AgentRuns
from headrace.agents.engine.scheduler_driver import SchedulerDriver
from headrace.agents.scheduler.events import Cancelled
from headrace.errors import HeadraceError, RunFileError
from headrace.store.engine_file.engine_file import EngineFile, Writes
from headrace.store.engine_file.engine_schema import FAILED_STATES, RunState
from headrace.store.engine_file.runs import RunRow
from headrace.survey.values import decode_value, encode_value
from headrace.threads.crossing import Filled
from headrace.workers.command_result import CommandEnd


class CallerRequests:
    def __init__(
        self,
        file: EngineFile,
        driver: SchedulerDriver,
        writer: EngineWriter,
        writes: Writes,
        runs: AgentRuns,
        backlog: Backlog,
        listeners: Listeners,
    ) -> None:
        self._file = file
        self._driver = driver
        self._writer = writer
        self._writes = writes
        self._runs = runs
        self._backlog = backlog
        self._listeners = listeners
        self._messages = file.values.highest("messages")

    def watch(self, id: int, reply: Filled[RunEnd]) -> None:
        self._runs.watch(id, reply)

    def unwatch(self, id: int, reply: Filled[RunEnd]) -> None:
        self._listeners.give_up(id, reply)

    def listen(self, id: int, hear: Callable[[bytes | None], None]) -> None:
        row = self._file.runs.get(id)
        if row is not None and row.state.is_final:
            hear(None)
        else:
            self._listeners.listen(id, hear)

    def leave(self, id: int, hear: Callable[[bytes | None], None]) -> None:
        self._listeners.leave(id, hear)

    async def result(self, id: int) -> bytes | None:
        return self._file.runs.result(id)

    async def row(self, id: int) -> RunRow:
        await self._writer.flush()
        return self.row_now(id)

    def row_now(self, id: int) -> RunRow:
        row = self._file.runs.get(id)
        if row is None:
            raise RunFileError(f"{self._file.path} has no run {id}.", path=self._file.path)
        return row

    async def find(self, key: bytes) -> RunRow | None:
        await self._writer.flush()
        return self._file.runs.by_key(key)

    async def cancel(self, id: int) -> None:
        if id in self._runs.live:
            self._driver.tell(Cancelled(now_s=time.monotonic(), id=id))
            return
        row = await self.row(id)
        if row.state.is_final:
            return
        for child in self._file.runs.unfinished_children(id):
            await self.cancel(child)
        self._runs.end_unstarted(id, row.name, RunState.CANCELLED)
        await self._writer.flush()

    async def send(self, id: int, payload: bytes) -> None:
        row = await self.row(id)
        if row.state.is_final:
            raise HeadraceError(f"The run {row.name} has ended and takes no messages.")
        self._messages += 1
        if run := self._runs.live.get(id):
            run.has_mail = True
        self._writer.write(self._writes.steps.sent(self._messages, id, payload, time.time()))
        await self._writer.flush()
        self._backlog.look_again()

    async def resolve(self, id: int, step: str, result: bytes | None) -> None:
        """The owner has found out: `result` is the step's, None where it is to be run again."""
        row = await self.row(id)
        if row.state is not RunState.UNDECIDED or row.error != step:
            is_about = row.state is RunState.UNDECIDED
            told = f"waiting for a decision about {row.error!r}" if is_about else row.state.value
            raise HeadraceError(f"The run {row.name} has nothing to decide about step {step!r}: it is {told}.")
        if result is not None and self._file.steps.is_program(id, step):
            result = encode_value(asdict(CommandEnd.from_owner(decode_value(result))))
        if result is None:
            self._writer.write(self._writes.steps.not_started(id, step))
        else:
            self._writer.write(self._writes.steps.done(id, row.epoch, step, result, time.time()))
        self._writer.write(self._writes.runs.decided(id))
        await self._writer.flush()
        self._backlog.look_again()

    async def retry(self, id: int) -> None:
        row = await self.row(id)
        if row.state not in FAILED_STATES:
            raise HeadraceError(f"The run {row.name} cannot be tried again: it is {row.state.value}.")
        self._writer.write(self._writes.runs.retried(id))
        await self._writer.flush()
        self._backlog.look_again()

    async def unfinished(self, most: int) -> list[RunRow]:
        await self._writer.flush()
        return self._file.runs.unfinished(most)

    async def events(self, most: int) -> list[tuple[float, int | None, str, str, str | None]]:
        await self._writer.flush()
        return self._file.notes.events(most)
