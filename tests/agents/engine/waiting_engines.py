"""Engines with little room, a model server, and waiting for what they do: for tests of runs that wait."""

import asyncio

import pytest

from headrace import Engine
from tests.models.server import HostileServer

LONG_S = 30


@pytest.fixture(params=["inline", "process"])
def isolation(request):
    return request.param


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
