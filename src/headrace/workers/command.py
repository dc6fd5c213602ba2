"""Runs a program that is not Python to its end, under the same limits and the same watchdog as workers.

Covers: its streams (input from and output to files, so that no pipe has to be pumped and no output is held in memory),
Node's heap size, its exit code or signal, its timeout. Does not cover: journaling the step that runs it
(agents.context), or how the process is made and watched (workers.warden).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TypeAlias, cast

from headrace.errors import InvalidInput
from headrace.workers.deaths import signal_name
from headrace.workers.limited_process import LimitedProcess
from headrace.workers.pool import WorkerPool
from headrace.workers.wire import Death, DeathKind, SpawnProgram

Start: TypeAlias = Callable[[int], Awaitable[LimitedProcess]]
Begin: TypeAlias = Callable[[Start], Awaitable[LimitedProcess]]

_NODE_HEAP_SHARE = 0.75  # of the limit: the rest is for buffers and the program itself
_NODE_HEAP_FLAG = "--max-old-space-size"
ERROR_TAIL_BYTES = 4096
_ENDED_BY_ITSELF = (DeathKind.EXITED, DeathKind.SIGNALLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLimits:
    """The program is killed above `memory_bytes`, above `output_bytes` on its streams, and after `timeout_s`."""

    memory_bytes: int
    output_bytes: int = 64 << 20
    timeout_s: float | None = None


class CommandResult:
    """How a program ended, and what it wrote. The caller closes `output`, a file that is open at its start."""

    def __init__(self, death: Death, output: IO[bytes], error_tail: str) -> None:
        self.kind = death.kind
        self.code = death.code
        self.signal = death.signal
        self.peak_bytes = death.peak_bytes
        self.limit_bytes = death.limit_bytes
        self.output = output
        self.error_tail = error_tail
        self._reason = death.reason

    @property
    def succeeded(self) -> bool:
        return self.kind is DeathKind.EXITED and self.code == 0

    def in_words(self) -> str:
        """Say how it ended, and the last lines of its standard error."""
        match self.kind:
            case DeathKind.EXITED:
                ended = f"exited with {self.code}"
            case DeathKind.SIGNALLED:
                ended = f"was killed by {signal_name(self.signal)}"
            case DeathKind.OUT_OF_MEMORY:
                ended = f"used {self.peak_bytes:,} bytes of the {self.limit_bytes:,} it may"
            case DeathKind.LOST:
                ended = f"did not run to its end: {self._reason.rstrip('.')}"
            case _:
                ended = f"was ended: {self._reason}"
        return f"{ended}; it said: {self.error_tail.strip()}" if self.error_tail.strip() else ended


async def run_command(
    pool: WorkerPool,
    argv: Sequence[str],
    limits: CommandLimits,
    *,
    input: bytes = b"",
    directory: str | Path = ".",
    environment: Mapping[str, str] | None = None,
    spools: Path | None = None,
    begin: Begin | None = None,
) -> CommandResult:
    """Run a program to its end. Its streams are nameless files in the directory `spools`.

    `begin` gets the function that starts the program with a limit, and chooses the limit: a lender does.
    """
    order = _order(pool.next_number(), argv, limits, directory, environment)
    await pool.start()
    with _spool(spools) as given, _spool(spools) as errors:
        given.write(input)
        given.seek(0)
        output = _spool(spools)
        try:
            start = _starting(pool, order, (given, output, errors))
            program = await (begin(start) if begin is not None else start(limits.memory_bytes))
            death = await _ended(program, limits.timeout_s)
        except BaseException:
            output.close()
            raise
        size = output.seek(0, os.SEEK_END)
        output.seek(0)
        if size > limits.output_bytes and death.kind in _ENDED_BY_ITSELF:  # before the warden had looked
            death.kind = DeathKind.TOO_MUCH_OUTPUT
            death.reason = f"it wrote {size:,} bytes, more than {limits.output_bytes:,}"
        return CommandResult(death, output, _tail(errors))


def with_heap_limit(argv: Sequence[str], memory_bytes: int) -> list[str]:
    """Add the option that sizes Node's heap by the limit: by the host's memory, Node would collect garbage too late."""
    is_node = Path(argv[0]).name.removesuffix(".exe") in {"node", "nodejs"}
    if not is_node or any(argument.startswith(_NODE_HEAP_FLAG) for argument in argv):
        return list(argv)
    return [argv[0], f"{_NODE_HEAP_FLAG}={max(16, int(memory_bytes * _NODE_HEAP_SHARE) >> 20)}", *argv[1:]]


def _order(
    number: int,
    argv: Sequence[str],
    limits: CommandLimits,
    directory: str | Path,
    environment: Mapping[str, str] | None,
) -> SpawnProgram:
    if not argv or isinstance(argv, str):
        raise InvalidInput("A command is a list of the program and its arguments.", fix='For example ["node", "x.js"].')
    return SpawnProgram(
        worker=number,
        limit_bytes=limits.memory_bytes,
        argv=list(argv),
        environment=None if environment is None else dict(environment),
        directory=str(directory),
        largest_output_bytes=limits.output_bytes,
    )


def _starting(pool: WorkerPool, order: SpawnProgram, streams: tuple[IO[bytes], IO[bytes], IO[bytes]]) -> Start:
    async def start(limit_bytes: int) -> LimitedProcess:
        order.limit_bytes, order.argv = limit_bytes, with_heap_limit(order.argv, limit_bytes)
        return pool.spawn(order, [stream.fileno() for stream in streams])

    return start


async def _ended(program: LimitedProcess, timeout_s: float | None) -> Death:
    try:
        done, _ = await asyncio.wait([program.ended], timeout=timeout_s)
    except asyncio.CancelledError:
        program.kill()
        raise
    if not done:
        program.kill(reason=f"it took longer than {timeout_s:g} s")
    return await program.ended


def _spool(directory: Path | None) -> IO[bytes]:
    return cast("IO[bytes]", TemporaryFile(dir=directory))


def _tail(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - ERROR_TAIL_BYTES))
    return errors.read(ERROR_TAIL_BYTES).decode("utf-8", "replace")
