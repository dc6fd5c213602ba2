"""Nodes of a cluster in this process, in place of Ray's: whole jobs and engines run on them. Their wardens and workers
are real; tests add and lose nodes, and count the bytes that cross.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from headrace import Ray
from headrace.cluster.node_host import NodeHost
from headrace.cluster.remote_warden import RemoteWarden
from headrace.cluster.sent_files import BlockTurns
from headrace.cluster.tunnel_wire import FilePiece, NodeHello, decode_to_node

NODES, SLOTS = 2, 2
PATIENCE_S = 30.0
Answer = TypeVar("Answer")


class HostHere(NodeHost):
    """A node's host; `file_bytes` have come to it."""

    file_bytes = 0

    async def deliver(self, payload: bytes) -> None:
        self.file_bytes += sum(len(each.data) for each in decode_to_node(payload) if isinstance(each, FilePiece))
        await super().deliver(payload)


class NodeHere:
    """As `RayNode` is."""

    def __init__(self, number: int, hello: NodeHello, slots: int, host: HostHere) -> None:
        self.id = f"node{number}"
        self.name = f"host ({self.id})"
        self.hello = hello
        self.slots = slots
        self.host = host
        self.warden: RemoteWarden


class NodesHere:
    """As `RayNodes` is. `Ray("3", slots_per_node=1)` has three nodes with a slot each, `Ray()` two with two. The one
    made last is `NodesHere.latest`; what tests do with it they may do from any thread.
    """

    latest: "NodesHere"

    def __init__(
        self,
        option: Ray,
        memory: str | int | None,
        environment: dict[str, str],
        on_joined: Callable[[Any], None],
        on_failed: Callable[[Any], None],
        *,
        on_lost: Callable[[Any, str], None] = lambda _node, _reason: None,
        read_every_s: float = 1.0,
        gather_s: float = 0.0,
    ) -> None:
        self._option, self._memory, self._environment = option, memory, environment
        self._on_joined, self._on_failed, self._on_lost = on_joined, on_failed, on_lost
        self._read_every_s = read_every_s
        self._nodes: dict[str, NodeHere] = {}
        self._loop: asyncio.AbstractEventLoop
        self._turns = BlockTurns()
        self._ending: set[asyncio.Task[None]] = set()
        self._joined = 0
        self.hosts: list[HostHere] = []  # all that there were
        self.former_wardens: dict[str, int] = {}
        NodesHere.latest = self

    async def connect(self) -> None:
        pass

    async def start(self, check_wanted: Callable[[], None], former_wardens: Mapping[str, int] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self.former_wardens = dict(former_wardens or {})
        for _ in range(int(self._option.address or NODES)):
            await self._join()

    def refuse(self, node: NodeHere, reason: str, fix: str) -> None:
        node.warden.lose(reason)

    async def close(self) -> None:
        await asyncio.gather(*self._ending, *(self._end(node) for node in self._nodes.values()))

    async def _join(self, number: int | None = None) -> None:
        host = HostHere()
        self.hosts.append(host)
        hello = msgspec.msgpack.decode(await host.hello(self._memory, self._read_every_s), type=NodeHello)
        slots = self._option.slots_per_node or SLOTS
        node = NodeHere(self._joined if number is None else number, hello, slots, host)
        self._joined += number is None
        node.warden = RemoteWarden(host, self._environment, lambda reason: self._lost(node, reason), turns=self._turns)
        self._nodes[node.id] = node
        self._on_joined(node)

    def _lost(self, node: NodeHere, reason: str) -> None:
        self._on_lost(node, reason)
        self._nodes.pop(node.id, None)
        self._ending.add(asyncio.get_running_loop().create_task(self._end(node)))

    async def _end(self, node: NodeHere) -> None:
        await node.warden.close()
        await node.host.leave()

    # For tests.

    def add(self) -> None:
        asyncio.run_coroutine_threadsafe(self._join(), self._loop).result(PATIENCE_S)

    def lose(self, number: int = 0, reason: str = "a test wants it") -> None:
        self._on_loop(lambda: list(self._nodes.values())[number].warden.lose(reason))

    def come_back(self) -> None:
        """The first node is lost, and another of its name is there before anything else happens."""

        async def come_back() -> None:
            next(iter(self._nodes.values())).warden.lose("a test wants it")
            await self._join(0)

        asyncio.run_coroutine_threadsafe(come_back(), self._loop).result(PATIENCE_S)

    def stop_reading(self) -> None:
        self._on_loop(lambda: [setattr(node.warden, "on_reading", lambda _: None) for node in self._nodes.values()])

    def fail(self, error: Exception) -> None:
        self._on_loop(lambda: self._on_failed(error))

    def warden_pids(self) -> list[int]:
        """Of the wardens that have started."""
        wardens = self._on_loop(lambda: [node.host._warden for node in self._nodes.values()])
        return [warden.pid for warden in wardens if warden is not None and warden.pid is not None]

    def _on_loop(self, call: Callable[[], Answer]) -> Answer:
        async def on_loop() -> Answer:
            return call()

        return asyncio.run_coroutine_threadsafe(on_loop(), self._loop).result(PATIENCE_S)


def first_word(scenario: dict[str, Any], _: dict[str, Any]) -> str:
    return scenario["report"].text.split()[0]
