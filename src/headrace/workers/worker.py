"""A worker takes one task after another from its channel, calls the task's function, and reports how it ended.

Covers: the loop, and the port through which a function speaks with the controller while it runs. A function may be sync
or async. A worker that met its memory limit reports it and ends: the state of its libraries is unknown. Does not
cover: how messages travel (workers.worker_channel), what payloads mean, and limits, which are set from outside
(workers.warden.warden).
"""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TypeAlias

import msgspec

from headrace.caught_errors import describe_error, forget_frames, is_out_of_memory
from headrace.framing import BadFrame
from headrace.memory.measure.os_limits import allow_data
from headrace.memory.measure.process import own_data_bytes
from headrace.workers.functions import find_function
from headrace.workers.progress_page import WorkerCounters
from headrace.workers.wire import TaskDone, TaskFailed, TaskMessage, TaskOutOfMemory, ToWorker, WorkerTask
from headrace.workers.worker_channel import WorkerChannel

_Ending: TypeAlias = TaskDone | TaskFailed | TaskOutOfMemory
_LONGEST_REASON = 4000
_LAST_WORDS_BYTES = 16 << 20  # lent to a worker that has met its limit, to report it


class Port:
    """A task's connection to its controller, given to the task's function. Each message sent counts as a step."""

    def __init__(self, line: WorkerChannel, task: WorkerTask, counters: WorkerCounters | None) -> None:
        self._line = line
        self._counters = counters
        self.epoch = task.epoch
        self.base_bytes = line.base_bytes  # resident when the worker began: limits count from here

    def step(self) -> None:
        """Progress that is worth no message: a task at its memory limit that takes no step is ended."""
        if self._counters is not None:
            self._counters.step()

    def send(self, payload: bytes) -> None:
        """Waits while the controller does not read, and with it the loop, if there is one."""
        self.step()
        try:
            self._line.write(TaskMessage(self.epoch, payload))
        except ConnectionError:
            _leave()

    def post(self, payload: bytes) -> None:
        """For small messages inside a loop: returns at once, and the message leaves when the controller reads."""
        self.step()
        try:
            self._line.post(TaskMessage(self.epoch, payload))
        except ConnectionError:
            _leave()

    async def send_async(self, payload: bytes) -> None:
        """Waits while the controller does not read; other coroutines go on."""
        self.post(payload)
        await self.caught_up()

    @property
    def is_behind(self) -> bool:
        """Whether something has not left yet, since the controller does not read."""
        return self._line.is_behind

    async def caught_up(self) -> None:
        """Returns when everything sent or posted so far has left."""
        await self._line.caught_up()

    async def receive_async(self) -> bytes:
        """The next message to this task; other coroutines go on."""
        while True:
            payload = self._own(await self._line.read_async())
            if payload is not None:
                return payload

    def _own(self, message: ToWorker | None) -> bytes | None:
        if message is None:
            _leave()
        is_ours = isinstance(message, TaskMessage) and message.epoch == self.epoch
        return message.payload if is_ours else None


def _leave() -> NoReturn:
    os._exit(0)  # the controller is gone, and the warden is about to end us anyway


def work(channel: int, counters: WorkerCounters | None = None) -> int:
    """Until the controller closes the channel. Returns the exit code."""
    line = WorkerChannel(socket.socket(fileno=channel))
    # A child of the worker that held its channel would hide the worker's end, and could speak in its name. So would the
    # program that a worker turns into, or starts without forking as Python does.
    os.set_inheritable(channel, False)
    os.register_at_fork(after_in_child=lambda: _close(line.connection))
    while (message := line.read()) is not None:
        if not isinstance(message, WorkerTask):
            continue  # a message that came after its task had ended
        _set_busy(counters, True)
        ending = _performed(message, line, counters)
        _set_busy(counters, False)
        if isinstance(_report(line, message, ending), TaskOutOfMemory):
            return 0
    return 0


def _performed(task: WorkerTask, line: WorkerChannel, counters: WorkerCounters | None) -> _Ending:
    try:
        function = find_function(task.entry)
        payload = _called(function, Port(line, task, counters), task.payload, counters)
        return TaskDone(task.epoch, payload if payload is not None else b"")
    except BaseException as error:  # noqa: BLE001 - even SystemExit is reported with its task; the worker goes on
        if is_out_of_memory(error):
            return _out_of_memory(task, error)
        reason = describe_error(error)
        forget_frames(error)
        return TaskFailed(task.epoch, reason)


def _called(function: Callable[..., Any], port: Port, payload: bytes, counters: WorkerCounters | None) -> bytes | None:
    result = function(port, payload)
    if isinstance(result, bytes):  # asking whether it can be awaited takes longer
        return result
    if not inspect.isawaitable(result):
        return result
    with asyncio.Runner(loop_factory=partial(_watched_loop, counters) if counters is not None else None) as runner:
        return runner.run(_awaited(result))


def _watched_loop(counters: WorkerCounters) -> asyncio.AbstractEventLoop:
    from headrace.workers.watched_loop import WatchedLoop  # needs what Linux has

    return WatchedLoop(counters)


async def _awaited(result: Any) -> bytes | None:
    return await result


def _out_of_memory(task: WorkerTask, error: BaseException) -> TaskOutOfMemory:
    peak, reserved = lend_last_words()
    forget_frames(error)
    return TaskOutOfMemory(task.epoch, peak, reserved, str(error)[:_LONGEST_REASON] or "MemoryError")


def lend_last_words() -> tuple[int, int]:
    """Raise the limit of a worker that has met it, by what a report takes. Return what it had used and reserved."""
    peak, reserved = own_data_bytes()
    allow_data(reserved + _LAST_WORDS_BYTES)
    return peak, reserved


def _report(line: WorkerChannel, task: WorkerTask, ending: _Ending) -> _Ending:
    """Send how a task ended; what was sent may be less, where the result itself cannot be."""
    try:
        line.write(ending)
    except BadFrame as error:
        ending = TaskFailed(task.epoch, f"The result is {error}. Return less, or write it to a file.")
    except MemoryError as error:  # the limit holds the result, but not beside its encoding
        ending = _out_of_memory(task, error)
    except (TypeError, msgspec.MsgspecError) as error:
        ending = TaskFailed(task.epoch, f"The result is not bytes: {error}")
    else:
        return ending
    line.write(ending)
    return ending


def _set_busy(counters: WorkerCounters | None, is_busy: bool) -> None:
    if counters is not None:
        counters.set_busy(is_busy)


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.close()
