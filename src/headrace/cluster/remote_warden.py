"""A warden on a node of a cluster, as a pool of workers sees it: the place of a pool's warden, once more.

    WorkerPool ── orders ──► RemoteWarden ── one payload at a time ──► NodeHost (cluster.node_host)
               ◄─ reports ──              ◄── one answer at a time ───

Whatever was posted while the last payload was on its way makes the next one. A call to a node takes one to two
milliseconds of CPU, half of it here, so after a payload with little in it the next waits while more comes together: for
some milliseconds at first, and twice as long each time while messages go on coming, up to what the owner of the work
allows (`longest_gather_s`): the more nodes, the longer, or this process would do nothing but call them. After a payload
with hardly anything it waits half as long: among many messages there is now and then a lone one.

A node that has not answered for `silent_s` is lost, and so is one whose actor has died: the pool hears that its warden
has ended, and each worker's work goes on elsewhere. What a lost node does later is heard by nobody.

Does not cover: how payloads travel (`NodeCalls`: cluster.ray_nodes), the node's side (cluster.node_host).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from headrace.cluster.links import RemoteChannel
from headrace.cluster.program_streams import RemoteStreams
from headrace.cluster.sent_files import BlockTurns, FileSender
from headrace.cluster.tunnel_wire import (
    PARTS,
    PAYLOAD_BYTES,
    PIECE_BYTES,
    BlockTaken,
    EndWarden,
    FileLeft,
    FileWanted,
    FromNode,
    IncomingMessages,
    LinkClosed,
    LinkData,
    LinkTaken,
    NodeReading,
    OutgoingMessages,
    StartWarden,
    StreamData,
    WardenGone,
    WardenOrder,
    WardenReport,
    decode_from_node,
)
from headrace.workers.local_warden import Connect, OnEnd, OnMessage, WardenLost
from headrace.workers.wire import (
    Death,
    DeathKind,
    ForkWorker,
    FromWarden,
    KillWorker,
    LimitSet,
    SetLimit,
    Setup,
    SpawnProgram,
)

SILENT_S = 15.0
_TICK_S = 1.0
GATHER_S = 0.005
_HARDLY_ANY_BYTES = 200  # a reading, or a word or two
_END_WITHIN_S = 5.0


class NodeCalls(Protocol):
    """Calls to a node's host; each raises where the node is lost."""

    async def deliver(self, payload: bytes) -> None: ...

    async def collect(self) -> list[bytes]:
        """The parts of one payload."""
        ...


class Gathering:
    """How long messages in one direction come together before the next payload is made of them."""

    def __init__(self, longest_s: Callable[[], float], most_bytes: int = PAYLOAD_BYTES) -> None:
        self._longest_s = longest_s
        self._much_bytes = most_bytes - PIECE_BYTES  # of one payload: what did not fit waits already
        self._s = GATHER_S

    def after(self, size_bytes: int) -> float:
        """How long to wait after a payload of this size."""
        if size_bytes >= self._much_bytes:
            return 0.0
        if size_bytes < _HARDLY_ANY_BYTES:
            self._s = max(self._s / 2, GATHER_S)
        else:
            self._s = min(self._s * 2, self._longest_s())
        return self._s


class RemoteWarden:
    """`on_lost` hears once why the node is lost. `environment` is for the warden and its workers. `turns` to send it
    blocks of files are shared with other nodes. `longest_gather_s` is how long its owner bears that messages wait for
    others, each way.
    """

    def __init__(
        self,
        node: NodeCalls,
        environment: dict[str, str],
        on_lost: Callable[[str], None],
        silent_s: float = SILENT_S,
        turns: BlockTurns | None = None,
        longest_gather_s: Callable[[], float] = lambda: GATHER_S,
    ) -> None:
        self._node = node
        self._longest_gather_s = longest_gather_s
        self._environment = environment
        self._on_lost = on_lost
        self._silent_ticks = math.ceil(silent_s / _TICK_S)
        self._outgoing = OutgoingMessages()
        self._incoming = IncomingMessages[FromNode](decode_from_node)
        self._files = FileSender(self._outgoing.post, turns or BlockTurns())
        self._channels: dict[int, RemoteChannel] = {}
        self._programs: dict[int, RemoteStreams] = {}
        self._on_report: OnMessage | None = None
        self._on_end: OnEnd | None = None
        self._gone = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._has_warden = False
        self.lost: str | None = None
        self.used_bytes = 0  # of the node's host and everything it has started, by its last word
        self.on_reading: Callable[[NodeReading], None] = lambda _: None
        self.on_started: Callable[[], None] = lambda: None
        self.warden_pid: int | None = None  # on its own host
        self.heard_at = time.monotonic()

    @property
    def pid(self) -> int | None:
        return None  # of another host's

    @property
    def is_open(self) -> bool:
        return self._has_warden and self.lost is None

    async def start(self, setup: Setup, on_report: OnMessage, on_end: OnEnd) -> None:
        if self.lost is not None:
            raise WardenLost(self.lost)
        self._on_report, self._on_end = on_report, on_end
        self._has_warden = True
        self._outgoing.post(StartWarden(setup, self._environment))
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._deliver()), asyncio.create_task(self._collect())]

    def started(self, pid: int) -> None:
        self.warden_pid = pid  # guarded on its own host
        self.on_started()

    def order(self, order: SetLimit | KillWorker) -> None:
        if not self.is_open:
            return
        program = self._programs.get(order.worker)
        if program is None or program.has_begun:
            self._outgoing.post(WardenOrder(order))
        else:  # its warden does not know it yet, and would ignore the order
            asyncio.get_running_loop().call_soon(self._take_report, self._obeyed_early(program, order))

    def _obeyed_early(self, program: RemoteStreams, order: SetLimit | KillWorker) -> FromWarden:
        """Do to a program whose input is still on its way what its warden would do to it later."""
        if isinstance(order, SetLimit):
            program.order.limit_bytes = order.limit_bytes
            return LimitSet(order.worker, order.limit_bytes)
        self._programs.pop(order.worker).close()
        self._outgoing.post(LinkClosed(order.worker))
        if order.reason:
            return Death(order.worker, order.kind, reason=order.reason)
        return Death(order.worker, DeathKind.SIGNALLED, signal=order.signal)

    def fork(self, order: ForkWorker) -> Connect:
        if not self.is_open:
            raise WardenLost(self.lost or "the node's warden has ended")
        self._outgoing.post(WardenOrder(order))
        return partial(self._connect, order.worker)

    def spawn(self, order: SpawnProgram, streams: Sequence[int]) -> None:
        post = self._outgoing.post
        program = RemoteStreams(order, streams, post, begin=lambda order: post(WardenOrder(order)))
        self._programs[order.worker] = program
        program.send_input()

    def end_orphans(self, pids: Iterable[int]) -> None:
        pass  # the node's host has done so

    async def end(self) -> None:
        if self.is_open:
            self._gone.clear()
            self._outgoing.post(EndWarden())
            self._on_end = None
            with_timeout = asyncio.create_task(self._gone.wait())
            await asyncio.wait([with_timeout, *self._tasks], timeout=_END_WITHIN_S, return_when="FIRST_COMPLETED")
            with_timeout.cancel()
        self._has_warden = False

    async def close(self) -> None:
        """Say nothing more to the node."""
        self._files.close()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.lost is None:
            self.lost = "it was left"

    def lose(self, reason: str) -> None:
        """The node is gone for good."""
        if self.lost is not None:
            return
        self.lost = reason
        self._files.close()
        for task in self._tasks:
            if task is not asyncio.current_task():  # that one has found it out, and ends by itself
                task.cancel()
        self._warden_gone(reason)
        self._gone.set()
        self._on_lost(reason)

    # Calls.

    async def _deliver(self) -> None:
        gathering = Gathering(self._longest_gather_s)
        while self.lost is None:
            await self._outgoing.wait()
            payload = self._outgoing.payload()
            await self._answered(self._node.deliver(payload))
            await asyncio.sleep(gathering.after(len(payload)))

    async def _collect(self) -> None:
        gathering = Gathering(self._longest_gather_s, PARTS * PAYLOAD_BYTES)
        while self.lost is None:
            parts = await self._answered(self._node.collect())
            if parts is not None:
                payload = b"".join(parts)
                self.heard_at = time.monotonic()
                self._take(payload)
                await asyncio.sleep(gathering.after(len(payload)))

    async def _answered(self, call: Awaitable[Any]) -> Any:
        """Its answer; a node that does not answer is lost. Ticks are counted, not time: a controller that was stopped
        itself loses no node for that.
        """
        answer = asyncio.ensure_future(call)
        try:
            for _ in range(self._silent_ticks):
                if (await asyncio.wait([answer], timeout=_TICK_S))[0]:
                    return answer.result()
        except Exception as error:  # noqa: BLE001 - whatever a call to another host may meet
            self.lose(str(error).strip().partition("\n")[0] or type(error).__name__)
            return None
        finally:
            answer.cancel()
        self.lose(f"it has not answered for {self._silent_ticks * _TICK_S:g} s")
        return None

    def _take(self, payload: bytes) -> None:
        try:
            messages = list(self._incoming.messages(payload))
        except msgspec.DecodeError as error:
            self.lose(f"it sent what makes no sense: {error}")
            return
        for message in messages:
            match message:
                case LinkData():
                    if channel := self._channels.get(message.link):
                        channel.arrived(message.data)
                case StreamData():
                    if program := self._programs.get(message.link):
                        program.arrived(message)
                case LinkTaken():
                    if link := self._channels.get(message.link) or self._programs.get(message.link):
                        link.credit(message.size_bytes)
                case LinkClosed():
                    if channel := self._channels.get(message.link):
                        channel.ended()
                case WardenReport():
                    self._take_report(message.report)
                case WardenGone():
                    self._gone.set()
                    self._warden_gone(message.reason)
                case FileWanted() | BlockTaken() | FileLeft():
                    self._files.take(message)
                case NodeReading():
                    self.used_bytes = message.used_bytes
                    self.on_reading(message)

    def _take_report(self, report: FromWarden) -> None:
        if isinstance(report, Death) and (program := self._programs.pop(report.worker, None)):
            report = program.ended(report)
        if self._on_report is not None:
            self._on_report(report)

    def _warden_gone(self, reason: str) -> None:
        self._has_warden = False
        for program in self._programs.values():
            program.close()
        self._programs.clear()
        if self._on_end is not None:
            self._on_end(reason)

    def _connect(self, link: int, expected: Any, on_message: OnMessage, on_end: OnEnd) -> RemoteChannel:
        channel = RemoteChannel(link, self._outgoing.post, self._close_link, expected, on_message, on_end)
        self._channels[link] = channel
        return channel

    def _close_link(self, link: int) -> None:
        if self._channels.pop(link, None) is not None and self.is_open:
            self._outgoing.post(LinkClosed(link))
