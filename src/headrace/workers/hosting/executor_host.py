"""An executor behind a wire, inside a worker: the worker's side.

    controller ══ socket ══ Port ── messages ──► obey ──► executor
                                 ◄── HostLink ── events, and what the vocabulary adds

Covers: the loop that obeys the controller's messages, the one that sends the executor's events, and messages that leave
together. Does not cover: the controller's side (workers.hosting.hosted_executor), or a vocabulary's own messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from headrace.executor import Batch, Executor, SomeEvent
from headrace.framing import LARGEST_MESSAGE_BYTES
from headrace.workers.hosting.executor_wire import AckEvents, EventsSent, SignalWork, encode
from headrace.workers.worker import Port

Out = TypeVar("Out")

_TOGETHER_BYTES = 8 << 20  # of events in one message; above it, each event has its own
_LARGEST_PAYLOAD_BYTES = LARGEST_MESSAGE_BYTES - (1 << 10)


class HostLink(Generic[Out]):
    """A worker's messages to its controller: those of one turn of the loop leave together.

    A message that `is_expendable` is dropped where there is no memory to send it. `out_of_memory` fails where there is
    none for the others: the controller waits for each of them, so the worker must end.
    """

    def __init__(self, port: Port, is_expendable: Callable[[Out], bool] = lambda _: False) -> None:
        self._port = port
        self._is_expendable = is_expendable
        self._loop = asyncio.get_running_loop()
        self._posted: list[Out] = []
        self._is_over = False
        self.out_of_memory: asyncio.Future[None] = self._loop.create_future()

    @property
    def is_behind(self) -> bool:
        """Whether something has not left yet, since the controller does not read."""
        return self._port.is_behind

    async def caught_up(self) -> None:
        await self._port.caught_up()

    def post(self, message: Out) -> None:
        if self._is_over:
            return
        if not self._posted:
            self._loop.call_soon(self._flush_soon)
        self._posted.append(message)

    async def send(self, encoded: bytes) -> None:
        """Send after what was posted before. Waits while the controller does not read: it reads as fast as it can
        write to disk.
        """
        self.flush()
        await self._port.send_async(encoded)

    def send_now(self, message: Out) -> None:
        """Return when the message has left, also where the caller is about to block the loop."""
        self.flush()
        self._port.send(encode([message]))

    def send_last(self, messages: list[Out]) -> None:
        """For a worker that is about to end: return when everything has left, and send nothing from then on."""
        posted, self._posted = self._essential(self._posted), []
        self._is_over = True
        self._port.send(encode([*posted, *messages]))

    def flush(self) -> None:
        posted, self._posted = self._posted, []
        if not posted:
            return
        try:
            self._port.post(encode(posted))
        except MemoryError:
            self._posted = self._essential(posted)  # `send_last` sends them if this fails too
            if self._posted:
                self._port.post(encode(self._posted))
                self._posted = []

    def _flush_soon(self) -> None:
        try:
            self.flush()
        except MemoryError as error:
            if not self.out_of_memory.done():
                self.out_of_memory.set_exception(error)

    def _essential(self, messages: list[Out]) -> list[Out]:
        return [message for message in messages if not self._is_expendable(message)]


async def host_executor(
    port: Port,
    link: HostLink[Any],
    executor: Executor[SomeEvent],
    decode: Callable[[bytes], list[Any]],
    obey: Callable[[Any], Awaitable[bool]],
    on_too_large: Callable[[SomeEvent, int], None] | None = None,
) -> None:
    """Host the executor until `obey`, which gets the vocabulary's own messages, returns True for one. An error of the
    executor or of the link is raised. `on_too_large` gets an event that does not fit into a message, and its size.
    """
    loops = {
        asyncio.create_task(_obey(port, executor, decode, obey)),
        asyncio.create_task(_send_events(link, executor, on_too_large)),
    }
    ended, _ = await asyncio.wait({*loops, link.out_of_memory}, return_when=asyncio.FIRST_COMPLETED)
    for task in ended:
        task.result()  # nothing is cancelled where this raises: at a memory limit that may fail, and the worker ends
    for task in loops:
        task.cancel()


async def _obey(
    port: Port,
    executor: Executor[SomeEvent],
    decode: Callable[[bytes], list[Any]],
    obey: Callable[[Any], Awaitable[bool]],
) -> None:
    signals: set[asyncio.Task[None]] = set()  # the loop itself would not keep them alive
    while True:
        for message in decode(await port.receive_async()):
            match message:
                case SignalWork():  # not awaited: a kill waits for its deadline
                    signal = executor.signal(message.id, message.epoch, message.what, message.deadline_s)
                    signalling = asyncio.create_task(signal)
                    signals.add(signalling)
                    signalling.add_done_callback(lambda task: (signals.discard(task), task.exception()))
                case AckEvents():
                    executor.ack(message.upto)
                case _:
                    if await obey(message):
                        return


async def _send_events(
    link: HostLink[Any], executor: Executor[SomeEvent], on_too_large: Callable[[SomeEvent, int], None] | None
) -> None:
    async for batch in executor.events():
        payload = encode([EventsSent(batch)])
        if len(payload) <= _TOGETHER_BYTES:
            await link.send(payload)
            continue
        del payload  # sending waits for the controller, and this is large
        for event in batch.events:
            payload = encode([EventsSent(Batch(event.seq, [event]))])
            if len(payload) <= _LARGEST_PAYLOAD_BYTES or on_too_large is None:
                await link.send(payload)
            else:
                on_too_large(event, len(payload))
