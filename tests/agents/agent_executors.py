"""Executors of agent runs that have to meet the contract, each opened the same way."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from headrace.agents.context import Surroundings
from headrace.agents.contract import AgentExecutor
from headrace.agents.inline_agents import InlineAgents
from headrace.agents.task import TaskKind
from headrace.agents.workers.agent_executor import IsolatedAgents
from headrace.workers.lender import Lender
from headrace.workers.pool import PoolOptions, WorkerPool
from tests.agents import agent_functions
from tests.workers.tasks import end_workers


@asynccontextmanager
async def pool_for_agents() -> AsyncIterator[WorkerPool]:
    """One warden serves many executors in turn, each of which has workers of its own."""
    preload = ("headrace.agents.workers.agent_worker", "tests.agents.agent_functions")
    async with WorkerPool(PoolOptions(preload=preload)) as pool:
        yield pool


@asynccontextmanager
async def inline(directory: Path, _pool: WorkerPool) -> AsyncIterator[AgentExecutor]:
    surroundings = Surroundings(spools=directory, register=lambda _: None, meet=lambda _: None)
    with ThreadPoolExecutor(2) as threads:
        executor = InlineAgents(agent_functions.KINDS, threads, surroundings)
        try:
            yield executor
        finally:
            await executor.close()


@asynccontextmanager
async def isolated(directory: Path, pool: WorkerPool) -> AsyncIterator[AgentExecutor]:
    kinds = {name: TaskKind(name=name, function=function) for name, function in agent_functions.KINDS.items()}
    executor = IsolatedAgents(pool, Lender(400_000_000, 200_000_000), kinds, directory, lambda _: None)
    try:
        yield executor
    finally:
        await executor.close()
        await end_workers(pool)


EXECUTORS = {"inline": inline, "isolated": isolated}
