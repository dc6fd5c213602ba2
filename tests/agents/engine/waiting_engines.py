"""Engines with little room or a small warden, a model server, and waiting for what they do: for runs that wait."""

import asyncio

import pytest

from headrace import Engine
from tests.models.server import HostileServer

LONG_S = 30


@pytest.fixture(params=["inline", "process"])
def isolation(request):
    return request.param


@pytest.fixture
def small_warden(monkeypatch):
    """The warden of an engine imports what agents of our support modules need, and no more: 0.15 s of CPU in place of
    0.4 each time. They import no Engine, as users' modules do: test_forked_workers has the whole warden.
    """
    needed = ("headrace.agents.workers.agent_worker",)
    monkeypatch.setattr("headrace.agents.workers.engine_workers._NEEDED_BY_ALL", needed)


@pytest.fixture
def server():
    with HostileServer() as running:
        yield running


def engine_at(path, isolation, **options):
    given = {"memory": "+500MB", "slot_memory": "100MB", "grace_s": 0.3, "slots": 1, **options}
    return Engine(path, isolation=isolation, **given)


async def results(*runs):
    return await asyncio.wait_for(asyncio.gather(*(run.result() for run in runs)), LONG_S)


async def until(condition):
    async with asyncio.timeout(LONG_S):
        while not condition():
            await asyncio.sleep(0.01)
