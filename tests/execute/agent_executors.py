"""Executors of agent runs that have to meet the contract, each opened the same way."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from headrace.execute.agent_calls import AgentCalls
from headrace.execute.contract import AgentExecutor
from headrace.execute.endpoints import Endpoints
from headrace.execute.inline_agents import InlineAgents
from tests.execute import agent_functions


@asynccontextmanager
async def inline(directory: Path) -> AsyncIterator[AgentExecutor]:
    calls = AgentCalls(Endpoints(), lambda: None)
    with ThreadPoolExecutor(2) as threads:
        executor = InlineAgents(agent_functions.KINDS, calls, threads, directory, lambda _: None)
        try:
            yield executor
        finally:
            await executor.close()


EXECUTORS = {"inline": inline}
