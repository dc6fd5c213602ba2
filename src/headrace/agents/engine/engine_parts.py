"""`EngineParts`: the objects that the classes of one engine share, made once by its loop.

    file         the engine file, read on the loop      writer, writes   its batches, and the statements in them
    driver       hands events to the scheduler          executor         runs attempts, reports their events
    runs         agent runs in RAM                      answers          what runs are given, when they have their turn
    listeners    callers who wait for a run
    emitted      the latest events of `ctx.emit`
    kinds        functions by name                      log              what the engine did and why
    clock        the engine's time, for waits on disk   gauge            memory of the process tree

Also `spool_directory`, where `ctx.spool()` keeps its files. Does not cover: making the parts (loop).
"""

from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.agents.contract import AgentExecutor
from headrace.agents.engine.engine_options import EngineOptions
from headrace.agents.engine.engine_writer import EngineWriter
from headrace.agents.engine.event_log import EventLog
from headrace.agents.engine.held_answers import HeldAnswers
from headrace.agents.engine.live_runs import Listeners, LiveRuns
from headrace.agents.engine.scheduler_driver import SchedulerDriver
from headrace.agents.steering.latest_emitted import LatestEmitted
from headrace.agents.task import TaskKind
from headrace.errors import StorageFull
from headrace.memory.gauge import TreeGauge
from headrace.steady_clock import LastingClock
from headrace.store.engine_file.engine_file import EngineFile, Writes

if TYPE_CHECKING:
    from headrace.telemetry.agent_run_spans import AgentRunSpans

HERE = "here"  # the host of this process, for the scheduler
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class EngineParts(msgspec.Struct, frozen=True, kw_only=True):
    """`spawn` starts a coroutine on the engine's loop and keeps it alive; an error in it ends the engine. Without
    `telemetry` nothing is exported.
    """

    options: EngineOptions
    file: EngineFile
    writer: EngineWriter
    writes: Writes
    driver: SchedulerDriver
    executor: AgentExecutor
    answers: HeldAnswers
    runs: LiveRuns
    listeners: Listeners
    emitted: LatestEmitted
    kinds: dict[str, TaskKind]
    log: EventLog
    clock: LastingClock
    gauge: TreeGauge
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    telemetry: AgentRunSpans | None = None


def spool_directory(engine_file: Path) -> TemporaryDirectory[str]:
    """Make the directory of `ctx.spool()` beside the engine file, which this engine holds locked: remove those that a
    killed engine has left.
    """
    prefix = f".{engine_file.name}-spool-"
    for left in engine_file.parent.iterdir():
        if left.name.startswith(prefix):
            shutil.rmtree(left, ignore_errors=True)
    try:
        return TemporaryDirectory(prefix=prefix, dir=engine_file.parent)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise StorageFull(engine_file, "the disk is full") from None
