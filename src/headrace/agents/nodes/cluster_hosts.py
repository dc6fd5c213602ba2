"""The nodes of an engine's cluster as hosts of its scheduler: joining, readings, losses.

    EngineNodes ── joined ──► HostJoined, and its first reading
                ── read ────► what may be lent there, and MemoryMeasured
                ── lost ────► HostLeaving: nothing more starts there. When all that its workers have said is journaled,
                              the attempts there are given up, and HostLost has their runs start elsewhere

This process holds no agent runs then: it is a host without slots, for surveys. Does not cover: nodes themselves
(cluster.ray_nodes), their workers (agents.nodes.engine_nodes), or which run starts where (agents.scheduler).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from headrace.agents.commands import AgentCommands
from headrace.agents.contract import AgentEvent
from headrace.agents.engine.engine_parts import EngineParts
from headrace.agents.engine.run_events import RunEvents
from headrace.agents.nodes.engine_nodes import AgentNode, EngineNodes
from headrace.agents.scheduler.events import HostJoined, HostLeaving, HostLost, MemoryMeasured
from headrace.agents.workers.agent_executor import IsolatedAgents
from headrace.errors import HeadraceError
from headrace.workers.lender import KEPT_BACK_BYTES

# As long as a node goes on without a word from here: one that answers and never reads its memory is no use.
_READS_WITHIN_S = 60.0


class ClusterHosts:
    """`take` journals what executors have said; `fail` ends the engine with an error."""

    def __init__(
        self,
        nodes: EngineNodes,
        parts: EngineParts,
        executor: IsolatedAgents,
        run_events: RunEvents,
        take: Callable[[list[AgentEvent]], None],
        fail: Callable[[HeadraceError], None],
    ) -> None:
        self._nodes = nodes
        self._parts = parts
        self._executor = executor
        self._run_events = run_events
        self._take = take
        self._fail = fail
        self._giving_up: dict[str, asyncio.Task[None]] = {}  # by the name of the node

    def joined(self, node: AgentNode) -> None:
        """A node that has come back joins when all that it had before is given up: it has the same name."""
        if former := self._giving_up.get(node.name):
            self._parts.spawn(self._join_after(former, node))
        else:
            self._join(node)

    async def _join_after(self, former: asyncio.Task[None], node: AgentNode) -> None:
        await asyncio.wait([former])
        if not node.host.is_lost:
            self._join(node)

    def _join(self, node: AgentNode) -> None:
        self._executor.join(node.host)
        joined = HostJoined(
            now_s=time.monotonic(),
            host=node.name,
            slots=node.slots,
            limits=node.limits,
            kept_back_bytes=KEPT_BACK_BYTES,
            silent_after_s=_READS_WITHIN_S,
        )
        self._parts.driver.send(joined)
        self._parts.log.record("node joined", node.name)
        self.warden_started(node)  # it may have been started before anybody listened
        self.read(node)

    def read(self, node: AgentNode) -> None:
        parts, reading = self._parts, node.reading
        zero_bytes = parts.driver.scheduler.zero_bytes(node.name)
        measured = MemoryMeasured(
            now_s=time.monotonic(),
            host=node.name,
            used_bytes=reading.used_bytes,
            budget_bytes=reading.budget_bytes,
            by_run=parts.runs.memory_on(node.name),
            lendable_bytes=node.lend_within(zero_bytes),
        )
        parts.driver.send(measured)

    def warden_started(self, node: AgentNode) -> None:
        """Write the nodes' wardens to the file: an engine that opens it after a kill waits for them to end."""
        self._parts.writer.write(self._parts.writes.notes.node_wardens(self._nodes.wardens()))
        for name, why in node.host.pool.not_preloaded.items():
            self._parts.log.record("not preloaded", f"{name} on {node.name}: {why}")

    def lost(self, node: AgentNode, reason: str) -> None:
        self._parts.log.record("node lost", f"{node.name}: {reason}")
        self._parts.driver.send(HostLeaving(now_s=time.monotonic(), host=node.name))
        task = self._parts.spawn(self._give_up(node, reason, self._giving_up.get(node.name)))
        self._giving_up[node.name] = task
        task.add_done_callback(partial(self._given_up, node.name))

    def _given_up(self, name: str, task: asyncio.Task[None]) -> None:
        if self._giving_up.get(name) is task:
            del self._giving_up[name]

    def failed(self, error: HeadraceError) -> None:
        self._fail(error)

    def drop(self, name: str) -> None:
        """The scheduler has given a host up, of which no reading came any more, and starts its runs elsewhere now."""
        reason = f"it has sent no reading of its memory for {_READS_WITHIN_S:g} s"
        self._run_events.host_lost(name, reason)
        self._nodes.drop(name, reason)

    async def _give_up(self, node: AgentNode, reason: str, former: asyncio.Task[None] | None) -> None:
        """Wait for `former`, the loss of an earlier node of the same name: the scheduler knows hosts by name only."""
        if former is not None:
            await asyncio.wait([former])
        self._take(await self._executor.lose(node.host))
        self._run_events.host_lost(node.name, reason)
        self._parts.driver.send(HostLost(now_s=time.monotonic(), host=node.name))


class NodeCommands:
    """The programs of agent runs, each on the node of its run."""

    def __init__(self, nodes: EngineNodes, spools: Path) -> None:
        self._nodes = nodes
        self._spools = spools

    def of(self, host: str) -> AgentCommands:
        for node in self._nodes.nodes:
            if node.name == host:
                return AgentCommands(node.host.pool, node.host.lender, self._spools)
        raise HeadraceError(f"The node {host} is lost.", fix="The run goes on elsewhere by itself.")
