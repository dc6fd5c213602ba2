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


@asynccontextmanager
async def inline(directory: Path) -> AsyncIterator[AgentExecutor]:
    surroundings = Surroundings(spools=directory, register=lambda _: None, meet=lambda _: None)
    with ThreadPoolExecutor(2) as threads:
        executor = InlineAgents(agent_functions.KINDS, threads, surroundings)
        try:
            yield executor
        finally:
            await executor.close()


@asynccontextmanager
async def isolated(directory: Path) -> AsyncIterator[AgentExecutor]:
    kinds = {name: TaskKind(name=name, function=function) for name, function in agent_functions.KINDS.items()}
    async with WorkerPool(PoolOptions(preload=("headrace.agents.workers.agent_worker",))) as pool:
        executor = IsolatedAgents(pool, Lender(400_000_000, 200_000_000), kinds, directory, lambda _: None)
        try:
            yield executor
        finally:
            await executor.close()


EXECUTORS = {"inline": inline, "isolated": isolated}
