"""What runs on each node of a cluster: an actor that hosts the node's warden, and passes on what its workers say.

    controller ── deliver(payload) ──► NodeHost ── orders ──► warden ── forks ──► workers
               ◄── collect() ─────────          ◄── reports ──
                                                ══ a socket for each worker ═══════╝
                                                ── nameless files ──► programs

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
from headrace.cluster.node_memory import NodeMemory
from headrace.cluster.program_streams import NodeProgram
from headrace.cluster.tunnel_wire import (
    EndWarden,
    FilePiece,
    FileRefused,
    IncomingMessages,
    LinkClosed,
    LinkData,
    LinkTaken,
    NodeHello,
    OutgoingMessages,
    StartWarden,
    StreamData,
    ToNode,
    WardenGone,
    WardenOrder,
    WardenReport,
    decode_to_node,
)
from headrace.errors import BudgetTooSmall, InvalidInput
from headrace.memory.budget import memory_limits
from headrace.memory.measure.own_tree import tree_bytes
from headrace.workers.limit_mechanisms import can_isolate
from headrace.workers.local_warden import LocalWarden, is_alive
from headrace.workers.warden.standby import FOLDER_VARIABLE
from headrace.workers.wire import Death, DeathKind, ForkWorker, FromWarden, KillWorker, Ready, SetLimit, SpawnProgram

_ANSWER_WITHIN_S = 1.0
_MOST_SILENCE_S = 60.0
_FORMER_END_WITHIN_S = 5.0
_LOOK_AGAIN_S = 0.01


class NodeHost:
    """One for each run and node. Its methods are called from the controller, `collect` by one caller at a time."""

    def __init__(self) -> None:
        self._outgoing = OutgoingMessages()
        self._incoming = IncomingMessages[ToNode](decode_to_node)
        self._links: dict[int, SocketLink] = {}
        self._programs: dict[int, NodeProgram] = {}
        self._memory = NodeMemory(memory_limits(None))
        self._read_every_s = _ANSWER_WITHIN_S
        self._warden: LocalWarden | None = None
        self._files: NodeFiles | None = None
        self._heard_at = self._read_at = time.monotonic()
        self._watch: asyncio.Task[None] | None = None

    async def hello(self, memory: str | int | None, read_every_s: float = _ANSWER_WITHIN_S) -> bytes:
        """A `NodeHello`. `memory` is the budget of this node, as the user wrote it; the controller wants a reading of
        it in this rhythm.
        """
        hello = NodeHello(
            pid=os.getpid(), host=socket.gethostname(), code=code_version(), python=sys.version.partition(" ")[0]
        )
        if not can_isolate():
            return _encode(structs.replace(hello, problem=f"{sys.platform} has no processes with limits"))
        try:
            limits = memory_limits(memory)
        except BudgetTooSmall as error:
            return _encode(structs.replace(hello, problem=error.message))
        self._memory, self._read_every_s = NodeMemory(limits), read_every_s
        budget = {"budget_bytes": limits.budget_bytes, "base_bytes": limits.base_bytes}
        return _encode(structs.replace(hello, **budget, used_bytes=tree_bytes()))

    async def outlive(self, warden: int) -> None:
        """Wait for the end of the warden that a killed controller had here: what its workers still do must not meet
        what their successors do.
        """
        give_up_at = time.monotonic() + _FORMER_END_WITHIN_S
        while is_alive(warden) and time.monotonic() < give_up_at:  # noqa: ASYNC110 - another process
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def deliver(self, payload: bytes) -> None:
        """Carry out the controller's messages, in order."""
        self._heard_at = time.monotonic()
        if self._watch is None:
            self._watch = asyncio.create_task(self._end_with_controller())
        for message in self._incoming.messages(payload):
            await self._obey(message)

    async def collect(self) -> list[bytes]:
        """What there is to say, as the parts of one payload: at once, or within a second."""
        self._heard_at = time.monotonic()
        await self._outgoing.wait(self._read_every_s)
        if time.monotonic() - self._read_at >= self._read_every_s:
            self._read_at = time.monotonic()
            self._outgoing.post(self._memory.read())
        return self._outgoing.payload_in_parts()

    async def leave(self) -> None:
        """End everything that was forked here."""
        await self._end_warden()

    async def _obey(self, message: ToNode) -> None:
        match message:
            case LinkData():
                if link := self._links.get(message.link):
                    link.write(message.data)
            case StreamData():
                self._program(message.link).arrived(message)
            case LinkTaken():
                if link := self._links.get(message.link) or self._programs.get(message.link):
                    link.credit(message.size_bytes)
            case LinkClosed():
                if link := self._links.pop(message.link, None) or self._programs.pop(message.link, None):
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

    def _order(self, order: ForkWorker | SpawnProgram | SetLimit | KillWorker) -> None:
        if self._warden is None:
            return
        match order:
            case ForkWorker():
                connection = self._warden.fork_with_socket(order)
                self._links[order.worker] = SocketLink(order.worker, connection, self._outgoing.post)
            case SpawnProgram():
                self._spawn(self._warden, order)
            case SetLimit() | KillWorker():
                self._warden.order(order)

    def _spawn(self, warden: LocalWarden, order: SpawnProgram) -> None:
        try:
            warden.spawn(order, self._program(order.worker).begin(order))
        except InvalidInput as error:
            reason = f"{error.message.rstrip('.')} on {socket.gethostname()}. {error.fix}".strip()
            self._take_report(Death(order.worker, DeathKind.LOST, reason=reason))

    def _program(self, number: int) -> NodeProgram:
        if number not in self._programs:
            self._programs[number] = NodeProgram(number, self._outgoing.post)
        return self._programs[number]

    def _take_report(self, report: FromWarden) -> None:
        self._memory.take(report)
        match report:
            case Ready() if self._warden is not None:
                self._warden.started(report.pid)
            case Death():
                self._take_death(report)
                return
            case _:
                pass
        self._outgoing.post(WardenReport(report))

    def _take_death(self, death: Death) -> None:
        """Send what it wrote before its death, and then the news of it."""
        self._memory.ended(death.worker)
        if link := self._links.pop(death.worker, None):
            link.drain()
        if program := self._programs.get(death.worker):
            program.ended(death, self._end_program)
        else:
            self._outgoing.post(WardenReport(death))

    def _end_program(self, death: Death) -> None:
        self._programs.pop(death.worker).close()
        self._outgoing.post(WardenReport(death))

    def _warden_ended(self, reason: str) -> None:
        if self._warden is not None:
            self._warden.end_orphans(self._memory.pids)
        for link in self._links.values():
            link.drain()
        self._forget_work()
        self._outgoing.post(WardenGone(reason))

    def _forget_work(self) -> None:
        self._links.clear()
        for program in self._programs.values():
            program.close()
        self._programs.clear()
        self._memory.all_ended()

    async def _end_warden(self) -> None:
        warden, self._warden = self._warden, None
        for link in self._links.values():
            link.close()
        self._forget_work()
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
