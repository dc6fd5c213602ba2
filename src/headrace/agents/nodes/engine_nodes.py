"""The nodes of a cluster for one engine: on each a pool of workers, and the memory that is lent to agent runs there.

    RayNodes ── joined, reading, lost ──► EngineNodes ──► AgentHost for each ──► NodeListener: the engine's loop

Does not cover: nodes themselves (cluster.ray_nodes), what their changes mean for runs (agents.nodes.cluster_hosts), or
what runs in workers (agents.workers.agent_executor).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Protocol

from msgspec import structs

from headrace.agents.workers.agent_host import AgentHost
from headrace.agents.workers.engine_workers import WorkerOptions, agent_pool_options, room_for_workers
from headrace.cluster.node_states import NodeState
from headrace.cluster.ray_nodes import BRING_CODE, RayNode, RayNodes
from headrace.cluster.tunnel_wire import NodeReading
from headrace.errors import HeadraceError
from headrace.limits import MemoryLimits
from headrace.ray_option import Ray
from headrace.workers.lender import Lender
from headrace.workers.pool import WorkerPool
from headrace.workers.wire import Stuck

# Hard limits are held by the node's own warden: a reading only decides what may start, and whether runs must stop.
_READ_EVERY_S = 0.25


class AgentNode:
    """A node that takes part. `limits` are the memory limits that hold there, `reading` its latest."""

    def __init__(self, node: RayNode, limits: MemoryLimits, workers: WorkerOptions) -> None:
        self.node = node
        self.limits = structs.replace(
            limits, budget=None, budget_bytes=node.hello.budget_bytes, base_bytes=node.hello.base_bytes
        )
        self.reading = NodeReading(node.hello.used_bytes, node.hello.used_bytes, node.hello.budget_bytes)
        pool = WorkerPool(
            agent_pool_options(workers, node.slots), on_reading=self._read, on_stuck=self._stuck, place=node.warden
        )
        ceiling_bytes = workers.ceiling_bytes or node.hello.budget_bytes
        lender = Lender(0, ceiling_bytes, lambda: pool.abandoned_bytes)
        self.host = AgentHost(node.name, pool, lender, spools=None)

    @property
    def name(self) -> str:
        return self.host.name

    @property
    def slots(self) -> int:
        return self.node.slots

    def lend_within(self, zero_bytes: int) -> int:
        """Lend the node's workers what its last reading leaves to them; return what they can be lent together."""
        held_bytes = self.reading.held_bytes + self.host.pool.idle_bytes
        budget_bytes, lender = self.reading.budget_bytes, self.host.lender
        lender.room_bytes = room_for_workers(self.limits, budget_bytes, zero_bytes, held_bytes)
        return lender.lendable_bytes()

    def state(self, now_s: float) -> NodeState:
        return NodeState(
            name=self.name,
            slots=self.slots,
            in_flight=sum(len(slot.runs) for slot in self.host.slots.values()),
            used_bytes=self.reading.used_bytes,
            budget_bytes=self.reading.budget_bytes,
            silent_s=now_s - self.node.warden.heard_at if self.node.warden is not None else 0.0,
        )

    def _read(self, worker: int, _used_bytes: int) -> None:
        self.host.read(worker)

    def _stuck(self, report: Stuck) -> None:
        self.host.stuck(report)


class NodeListener(Protocol):
    """Hears of changes of the nodes, on the engine's loop (agents.nodes.cluster_hosts)."""

    def joined(self, node: AgentNode) -> None: ...

    def warden_started(self, node: AgentNode) -> None:
        """The warden of a node has started: workers follow."""
        ...

    def read(self, node: AgentNode) -> None:
        """There is a new reading of the node's memory."""
        ...

    def lost(self, node: AgentNode, reason: str) -> None: ...

    def failed(self, error: HeadraceError) -> None:
        """No node will ever take part any more."""
        ...


class EngineNodes:
    """`memory` is the budget of each node, as the user wrote it; `limits` has the levels that hold on all of them."""

    def __init__(
        self,
        option: Ray,
        memory: str | int | None,
        limits: MemoryLimits,
        workers: WorkerOptions,
    ) -> None:
        self._limits = limits
        self._workers = workers
        self._by_id: dict[str, AgentNode] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._listener: NodeListener | None = None
        self._failure: HeadraceError | None = None
        self._nodes = RayNodes(
            option,
            memory,
            {},
            self._joined,
            self._failed,
            on_lost=self._lost,
            read_every_s=_READ_EVERY_S,
        )

    async def connect(self) -> None:
        """Reach the cluster; raises where there is none."""
        await self._nodes.connect()

    async def start(self, former_wardens: Mapping[str, int]) -> None:
        """Return when every node that was there at the start takes part, or was refused. `former_wardens` are those of
        a killed engine, by node: a node joins when they have ended.
        """
        await self._nodes.start(lambda: None, former_wardens)

    @property
    def nodes(self) -> list[AgentNode]:
        return list(self._by_id.values())

    @property
    def largest_share_bytes(self) -> int:
        """The most that a slot has as its equal share of a node."""
        return max((node.limits.budget_bytes - node.reading.used_bytes) // node.slots for node in self.nodes)

    def listen(self, listener: NodeListener) -> None:
        """Tell of each node that is there, and of all changes from now on."""
        self._listener = listener
        for node in self.nodes:
            listener.joined(node)
        if self._failure is not None:
            listener.failed(self._failure)

    def drop(self, name: str, reason: str) -> None:
        """Give up a node that does not do what it should, by its name."""
        for node in self.nodes:
            if node.name == name and node.node.warden is not None:
                node.node.warden.lose(reason)

    def states(self) -> list[NodeState]:
        now_s = time.monotonic()
        return [node.state(now_s) for node in self.nodes]

    def layers(self) -> dict[str, str]:
        """The mechanisms that hold workers to their limits on the first node, by name, each with its state."""
        for node in self.nodes:
            return dict(node.host.pool.layers)
        return {"nodes": "none takes part now"}

    def wardens(self) -> dict[str, int]:
        """The wardens' processes, by the id of the node."""
        wardens = {name: node.node.warden for name, node in self._by_id.items()}
        return {name: each.warden_pid for name, each in wardens.items() if each is not None and each.warden_pid}

    async def close(self) -> None:
        for task in self._starting:
            task.cancel()
        self._listener = None
        await asyncio.gather(*(node.host.pool.close() for node in self.nodes))
        await self._nodes.close()

    def _joined(self, node: RayNode) -> None:
        assert node.warden is not None
        joined = self._by_id[node.id] = AgentNode(node, self._limits, self._workers)
        joined.host.on_unusable = lambda reason: self._nodes.refuse(node, reason.rstrip("."), BRING_CODE)
        node.warden.on_reading = lambda reading: self._read(joined, reading)
        node.warden.on_started = lambda: self._warden_started(joined)
        # A worker that is wanted would start the warden too: by then its modules are imported.
        starting = asyncio.get_running_loop().create_task(self._start_warden(joined))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        if self._listener is not None:
            self._listener.joined(joined)

    async def _start_warden(self, node: AgentNode) -> None:
        """A warden that does not start may do so later: the node is lost for now, and joins again after a rest."""
        try:
            await node.host.pool.start()
        except HeadraceError as error:
            self.drop(node.name, error.message.rstrip("."))

    def _warden_started(self, node: AgentNode) -> None:
        if self._listener is not None:
            self._listener.warden_started(node)

    def _read(self, node: AgentNode, reading: NodeReading) -> None:
        node.reading = reading
        if self._listener is not None:
            self._listener.read(node)

    def _lost(self, node: RayNode, reason: str) -> None:
        lost = self._by_id.pop(node.id, None)
        if lost is not None:
            lost.host.is_lost = True
            if self._listener is not None:
                self._listener.lost(lost, reason)

    def _failed(self, error: HeadraceError) -> None:
        self._failure = error
        if self._listener is not None:
            self._listener.failed(error)
