"""Executors of agent runs that have to meet the contract, each opened the same way."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from headrace.agents.context import Surroundings
from headrace.agents.contract import AgentExecutor
from headrace.agents.inline_agents import InlineAgents
from headrace.agents.task import TaskKind
from headrace.agents.workers.agent_executor import IsolatedAgents
from headrace.agents.workers.agent_host import AgentHost
from headrace.cluster.node_host import NodeHost
from headrace.cluster.remote_warden import RemoteWarden
from headrace.workers.lender import Lender
from headrace.workers.pool import PoolOptions, WorkerPool
from tests.agents import agent_functions
from tests.workers.tasks import end_workers

OPTIONS = PoolOptions(preload=("headrace.agents.workers.agent_worker", "tests.agents.agent_functions"))


class AgentPools(NamedTuple):
    here: WorkerPool
    on_node: WorkerPool  # behind the messages that cross to another host; Ray would only carry them


@asynccontextmanager
async def pools_for_agents() -> AsyncIterator[AgentPools]:
    """One warden serves many executors in turn, each of which has workers of its own."""
    warden = RemoteWarden(NodeHost(), {}, lambda _: None)
    async with WorkerPool(OPTIONS) as here, WorkerPool(OPTIONS, place=warden) as on_node:
        yield AgentPools(here, on_node)
    await warden.close()


@asynccontextmanager
async def inline(directory: Path, _pools: AgentPools) -> AsyncIterator[AgentExecutor]:
    surroundings = Surroundings(spools=directory, register=lambda _: None, meet=lambda _: None)
    with ThreadPoolExecutor(2) as threads:
        executor = InlineAgents(agent_functions.KINDS, threads, surroundings)
        try:
            yield executor
        finally:
            await executor.close()


@asynccontextmanager
async def isolated(directory: Path, pools: AgentPools) -> AsyncIterator[AgentExecutor]:
    host = AgentHost("", pools.here, Lender(400_000_000, 200_000_000), directory)
    async with _executor_on(host) as executor:
        yield executor
        await end_workers(pools.here)


@asynccontextmanager
async def on_node(_directory: Path, pools: AgentPools) -> AsyncIterator[AgentExecutor]:
    host = AgentHost("", pools.on_node, Lender(400_000_000, 200_000_000), None)
    async with _executor_on(host) as executor:
        yield executor
        await end_workers(pools.on_node)


@asynccontextmanager
async def _executor_on(host: AgentHost) -> AsyncIterator[IsolatedAgents]:
    kinds = {name: TaskKind(name=name, function=function) for name, function in agent_functions.KINDS.items()}
    executor = IsolatedAgents(kinds, lambda _: None)
    executor.join(host)
    try:
        yield executor
    finally:
        await executor.close()


EXECUTORS = {"inline": inline, "isolated": isolated, "on a node": on_node}
