"""Nodes of a cluster in this process, in place of Ray's: whole jobs run on them, and bytes that cross are counted."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from headrace import Ray
from headrace.cluster.node_host import NodeHost
from headrace.cluster.remote_warden import RemoteWarden
from headrace.cluster.sent_files import BlockTurns
from headrace.cluster.tunnel_wire import FilePiece, NodeHello, decode_to_node

NODES = 2


class NodeHere(NodeHost):
    """A node and its host; `file_bytes` have come to it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.file_bytes = 0

    async def deliver(self, payload: bytes) -> None:
        self.file_bytes += sum(len(each.data) for each in decode_to_node(payload) if isinstance(each, FilePiece))
        await super().deliver(payload)


class _Node:
    """As `RayNode` is."""

    def __init__(self, host: NodeHere, hello: NodeHello) -> None:
        self.id = self.name = host.name
        self.slots = 2
        self.hello = hello
        self.warden: RemoteWarden | None = None


class NodesHere:
    """As `RayNodes` is, with as many nodes as there are from the start to the end."""

    hosts: list[NodeHere]

    def __init__(
        self,
        option: Ray,
        memory: str | int | None,
        environment: dict[str, str],
        on_joined: Callable[[Any], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        self._memory, self._environment, self._on_joined = memory, environment, on_joined
        type(self).hosts = [NodeHere(f"node{number}") for number in range(NODES)]
        self._nodes: list[_Node] = []

    async def start(self, check_wanted: Callable[[], None]) -> None:
        turns = BlockTurns()
        for host in self.hosts:
            node = _Node(host, msgspec.msgpack.decode(await host.hello(self._memory), type=NodeHello))
            node.warden = RemoteWarden(host, self._environment, lambda reason: None, turns=turns)
            self._nodes.append(node)
            self._on_joined(node)

    async def close(self) -> None:
        await asyncio.gather(*(node.warden.close() for node in self._nodes if node.warden is not None))
        await asyncio.gather(*(host.leave() for host in self.hosts))


def first_word(scenario: dict[str, Any], _: dict[str, Any]) -> str:
    return scenario["report"].text.split()[0]
