"""`LocalNodes` stands for `RayNodes`: nodes are hosts in the engine's own process, which tests add, lose and stop."""

import asyncio

import msgspec

from headrace.cluster.node_host import NodeHost
from headrace.cluster.remote_warden import RemoteWarden
from headrace.cluster.tunnel_wire import NodeHello


class LocalNode:
    def __init__(self, number, hello, slots):
        self.id = f"node{number}"
        self.name = f"host ({self.id})"
        self.hello = hello
        self.slots = slots
        self.host = NodeHost()
        self.warden = None


class LocalNodes:
    """`Ray("2", slots_per_node=1)` has two nodes. The latest one made is `LocalNodes.latest`; its methods for tests may
    be called from any thread.
    """

    latest: "LocalNodes"

    def __init__(self, option, memory, environment, on_joined, on_failed, *, on_lost, read_every_s):
        self._option = option
        self._memory = memory
        self._on_joined = on_joined
        self._on_failed = on_failed
        self._on_lost = on_lost
        self._read_every_s = read_every_s
        self._nodes: dict[str, LocalNode] = {}
        self._loop: asyncio.AbstractEventLoop
        self._ending: set[asyncio.Task] = set()
        self._joined = 0
        self.former_wardens = {}
        self.refused: list[str] = []
        LocalNodes.latest = self

    async def connect(self):
        self._loop = asyncio.get_running_loop()

    async def start(self, check_wanted, former_wardens):
        self.former_wardens = dict(former_wardens)
        for _ in range(int(self._option.address)):
            await self._join()

    async def _join(self, number=None):
        node = LocalNode(self._joined if number is None else number, None, self._option.slots_per_node)
        self._joined += number is None
        answer = await node.host.hello(self._memory, self._read_every_s)
        node.hello = msgspec.msgpack.decode(answer, type=NodeHello)
        node.warden = RemoteWarden(node.host, {}, lambda reason: self._lost(node, reason))
        self._nodes[node.id] = node
        self._on_joined(node)

    def refuse(self, node, reason, fix):
        self.refused.append(reason)
        node.warden.lose(reason)

    def _lost(self, node, reason):
        self._on_lost(node, reason)
        self._nodes.pop(node.id, None)
        task = asyncio.get_running_loop().create_task(self._end(node))
        self._ending.add(task)

    async def _end(self, node):
        await node.warden.close()
        await node.host.leave()

    async def close(self):
        await asyncio.gather(*self._ending, *(self._end(node) for node in self._nodes.values()))

    # For tests.

    def add(self) -> None:
        asyncio.run_coroutine_threadsafe(self._join(), self._loop).result(30)

    def lose(self, number: int = 0, reason: str = "a test wants it") -> None:
        self._on_loop(lambda: list(self._nodes.values())[number].warden.lose(reason))

    def come_back(self) -> None:
        """The first node is lost, and another of its name is there before anything else happens."""

        async def come_back():
            next(iter(self._nodes.values())).warden.lose("a test wants it")
            await self._join(0)

        asyncio.run_coroutine_threadsafe(come_back(), self._loop).result(30)

    def stop_reading(self) -> None:
        self._on_loop(lambda: [setattr(node.warden, "on_reading", lambda _: None) for node in self._nodes.values()])

    def fail(self, error) -> None:
        self._on_loop(lambda: self._on_failed(error))

    def warden_pids(self) -> list[int]:
        return self._on_loop(lambda: [node.host._warden.pid for node in self._nodes.values()])

    def _on_loop(self, call):
        async def on_loop():
            return call()

        return asyncio.run_coroutine_threadsafe(on_loop(), self._loop).result(30)
