"""`AgentCommands` runs the programs of `ctx.command`, and returns how each ended as a value that can be journaled.

Exit codes and signals are results. A program that met its memory limit, its timeout or the cap of its output is an
error: it leaves nothing worth journaling. Does not cover: processes and limits (workers.command).
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from headrace.agents.contract import ProgramCall
from headrace.errors import CommandFailed, OptionError
from headrace.priority import Priority
from headrace.survey.values import encode_value, repair_text
from headrace.units import format_bytes
from headrace.workers.command import Begin, CommandLimits, CommandResult, run_command
from headrace.workers.command_result import CommandEnd
from headrace.workers.lender import LEAST_WORKER_BYTES, Lender, Loan, Start
from headrace.workers.limited_process import LimitedProcess
from headrace.workers.pool import WorkerPool
from headrace.workers.wire import DeathKind

_ENDED_BY_ITSELF = (DeathKind.EXITED, DeathKind.SIGNALLED)


class AgentCommands:
    """`pool` is started by the first program, where it was not before."""

    def __init__(self, pool: WorkerPool | None, lender: Lender, spools: Path) -> None:
        self._pool = pool
        self._lender = lender
        self._spools = spools

    async def run(self, command: ProgramCall, priority: Priority) -> bytes:
        """Run a program and return its encoded CommandEnd; raise where it was ended by a limit or a timeout."""
        if self._pool is None:
            raise OptionError(f"Programs cannot be run under a memory limit on {sys.platform}.")
        async with self._lent(command, priority) as begin:
            result = await run_command(
                self._pool,
                command.argv,
                CommandLimits(memory_bytes=0, output_bytes=command.output_bytes, timeout_s=command.timeout_s),
                input=command.input,
                directory=command.directory,
                environment=command.environment,
                spools=self._spools,
                begin=begin,
            )
            with result.output:
                if result.kind not in _ENDED_BY_ITSELF:
                    raise _failed(command, result)
                return encode_value(asdict(_end_of(result)))

    @asynccontextmanager
    async def _lent(self, command: ProgramCall, priority: Priority) -> AsyncGenerator[Begin]:
        """What starts a program on a loan of memory: what it asks for, else a share of the rest, like a worker."""
        asked, loans = command.memory_bytes, list[Loan]()

        async def begin(start: Start) -> LimitedProcess:
            loans.append(loan := await self._lender.lend(asked or LEAST_WORKER_BYTES, start, asked, priority=priority))
            assert loan.holder is not None
            return loan.holder

        try:
            yield begin
        finally:
            for loan in loans:
                self._lender.returned(loan)
                await self._lender.settle()


def _end_of(result: CommandResult) -> CommandEnd:
    output = repair_text(result.output.read().decode("utf-8", "replace"))[0]
    return CommandEnd(
        code=result.code,
        signal=result.signal,
        output=output,
        errors=repair_text(result.error_tail)[0],
        peak_bytes=result.peak_bytes,
    )


def _failed(command: ProgramCall, result: CommandResult) -> CommandFailed:
    fixes = {
        DeathKind.OUT_OF_MEMORY: f"Give it more than {format_bytes(result.limit_bytes)} with memory=, where there is.",
        DeathKind.TOO_MUCH_OUTPUT: "Have it write to a file, or allow more with output=.",
        DeathKind.HUNG: "Give it longer with timeout_s=.",
    }
    return CommandFailed(f"{command.argv[0]} {result.in_words()}.", fix=fixes.get(result.kind, ""))
