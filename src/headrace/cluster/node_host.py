"""What runs on each node of a cluster: an actor that hosts the node's warden, and passes on what its workers say.

    controller ── deliver(payload) ──► NodeHost ── orders ──► warden ── forks ──► workers
               ◄── collect() ─────────          ◄── reports ──
                                                ══ a socket for each worker ═══════╝

Limits, watchdog and reaping are the warden's, as on one host: a worker's death costs its own work. When the controller
says nothing for a minute, or this process ends in whatever way, the warden ends everything it has forked.

Does not cover: starting actors (cluster.ray_nodes), the controller's side (cluster.remote_warden), or what workers do.
Ray imports this module on the node by its name: it imports no Ray itself.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from pathlib import Path

import msgspec
from msgspec import structs

from headrace.cluster.code_version import code_version
from headrace.cluster.links import SocketLink
from headrace.cluster.node_files import NodeFiles
from headrace.cluster.tunnel_wire import (
    EndWarden,
    FilePiece,
    FileRefused,
    LinkClosed,
    LinkData,
    LinkTaken,
    NodeHello,
    NodeReading,
    OutgoingMessages,
    StartWarden,
    ToNode,
    WardenGone,
    WardenOrder,
    WardenReport,
    decode_to_node,
)
from headrace.errors import BudgetTooSmall
from headrace.memory.budget import memory_limits
from headrace.memory.measure.own_tree import tree_bytes
from headrace.workers.limit_mechanisms import can_isolate
from headrace.workers.local_warden import LocalWarden
from headrace.workers.warden.standby import FOLDER_VARIABLE
from headrace.workers.wire import Death, ForkWorker, FromWarden, KillWorker, Ready, SetLimit, WorkerStarted

_ANSWER_WITHIN_S = 1.0
_MOST_SILENCE_S = 60.0


class NodeHost:
    """One for each run and node. Its methods are called from the controller, `collect` by one caller at a time."""

    def __init__(self) -> None:
        self._outgoing = OutgoingMessages()
        self._links: dict[int, SocketLink] = {}
        self._pids: dict[int, int] = {}
        self._warden: LocalWarden | None = None
        self._files: NodeFiles | None = None
        self._heard_at = self._read_at = time.monotonic()
        self._watch: asyncio.Task[None] | None = None

    async def hello(self, memory: str | int | None) -> bytes:
        """A `NodeHello`. `memory` is the budget of this node, as the user wrote it."""
        hello = NodeHello(
            pid=os.getpid(), host=socket.gethostname(), code=code_version(), python=sys.version.partition(" ")[0]
        )
        if not can_isolate():
            return _encode(structs.replace(hello, problem=f"{sys.platform} has no processes with limits"))
        try:
            limits = memory_limits(memory)
        except BudgetTooSmall as error:
            return _encode(structs.replace(hello, problem=error.message))
        return _encode(structs.replace(hello, budget_bytes=limits.budget_bytes, used_bytes=tree_bytes()))

    async def deliver(self, payload: bytes) -> None:
        """Carry out the controller's messages, in order."""
        self._heard_at = time.monotonic()
        if self._watch is None:
            self._watch = asyncio.create_task(self._end_with_controller())
        for message in decode_to_node(payload):
            await self._obey(message)

    async def collect(self) -> bytes:
        """What there is to say: at once, or within a second."""
        self._heard_at = time.monotonic()
        await self._outgoing.wait(_ANSWER_WITHIN_S)
        if time.monotonic() - self._read_at >= _ANSWER_WITHIN_S:
            self._read_at = time.monotonic()
            self._outgoing.post(NodeReading(tree_bytes()))
        return self._outgoing.payload()

    async def leave(self) -> None:
        """End everything that was forked here."""
        await self._end_warden()

    async def _obey(self, message: ToNode) -> None:
        match message:
            case LinkData():
                if link := self._links.get(message.link):
                    link.write(message.data)
            case LinkTaken():
                if link := self._links.get(message.link):
                    link.credit(message.size_bytes)
            case LinkClosed():
                if link := self._links.pop(message.link, None):
                    link.close()
            case FilePiece() | FileRefused():
                if self._files is not None:
                    self._files.take(message)
            case WardenOrder():
                self._order(message.order)
            case StartWarden():
                await self._end_warden()
                await self._start_warden(message)
            case EndWarden():
                await self._end_warden()
                self._outgoing.post(WardenGone("it was ended"))

    async def _start_warden(self, message: StartWarden) -> None:
        """Paths and arguments are this node's: the controller's may be of another machine."""
        self._files = await NodeFiles.start(self._outgoing.post)
        self._warden = LocalWarden({**message.environment, FOLDER_VARIABLE: self._files.folder})
        setup = structs.replace(message.setup, sys_path=[entry or str(Path.cwd()) for entry in sys.path], argv=[""])
        await self._warden.start(setup, self._take_report, self._warden_ended)

    def _order(self, order: ForkWorker | SetLimit | KillWorker) -> None:
        if self._warden is None:
            return
        if isinstance(order, ForkWorker):
            connection = self._warden.fork_with_socket(order)
            self._links[order.worker] = SocketLink(order.worker, connection, self._outgoing.post)
        else:
            self._warden.order(order)

    def _take_report(self, report: FromWarden) -> None:
        match report:
            case Ready() if self._warden is not None:
                self._warden.started(report.pid)
            case WorkerStarted():
                self._pids[report.worker] = report.pid
            case Death():
                self._pids.pop(report.worker, None)
                if link := self._links.pop(report.worker, None):
                    link.drain()  # what it wrote before its death comes before the news of it
            case _:
                pass
        self._outgoing.post(WardenReport(report))

    def _warden_ended(self, reason: str) -> None:
        if self._warden is not None:
            self._warden.end_orphans(self._pids.values())
        self._pids.clear()
        for link in self._links.values():
            link.drain()
        self._links.clear()
        self._outgoing.post(WardenGone(reason))

    async def _end_warden(self) -> None:
        warden, self._warden = self._warden, None
        for link in self._links.values():
            link.close()
        self._links.clear()
        self._pids.clear()
        if warden is not None:
            await warden.end()
        files, self._files = self._files, None
        if files is not None:
            await files.close()

    async def _end_with_controller(self) -> None:
        # Each word of the controller moves the end: waiting for one would wake this for every payload.
        while (patience_s := self._heard_at + _MOST_SILENCE_S - time.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(patience_s)
        await self._end_warden()
        os._exit(0)  # nobody is left who would end this process


_encode = msgspec.msgpack.encode
