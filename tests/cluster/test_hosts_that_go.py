"""Hosts that join and are lost while interviews are conducted on them, without Ray: none is lost, stuck or given up."""

import asyncio
import os
import signal

import pytest

from headrace import Model
from headrace.cluster.node_host import NodeHost
from headrace.cluster.remote_warden import RemoteWarden
from headrace.exit_causes import ExitCause
from headrace.interviews.contract import Lease
from headrace.interviews.workers.interview_executor import IsolatedExecutor
from headrace.interviews.workers.worker_place import WorkerPlace
from headrace.workers.pool import PoolOptions, WorkerPool
from tests.interviews.contract_driver import Controller, chunk, spec_for

pytestmark = pytest.mark.anyio

INTERVIEWS = 40
MODEL = Model("test", canned_response="x", latency_s=0.4)
_PRELOAD = ("headrace.interviews.workers.interview_worker", "headrace.models.protocols.test_model")


class Host:
    """A host of two workers, which can be lost."""

    def __init__(self) -> None:
        self._node = NodeHost()
        self._warden = RemoteWarden(self._node, {}, lambda reason: None)
        self.place = WorkerPlace(WorkerPool(PoolOptions(preload=_PRELOAD), place=self._warden), 2, 64 << 20)

    async def lose(self) -> None:
        self._warden.lose("a test wants it")
        await self.close()

    async def close(self) -> None:
        await self.place.pool.close()
        await self._warden.close()
        await self._node.leave()


async def test_interviews_outlive_any_number_of_hosts():
    hosts = [Host()]
    executor = IsolatedExecutor([hosts[0].place], [{}])
    await executor.open(spec_for(MODEL))
    executor.lease(Lease(interviews=INTERVIEWS, buffer_bytes=1_000_000))
    controller = Controller(executor)
    starting = asyncio.create_task(executor.start(chunk(1, 0, INTERVIEWS)))
    try:
        for _ in range(5):  # each is lost before one interview can end
            await asyncio.sleep(0.3)
            hosts.append(Host())
            executor.join(hosts[-1].place)
            await hosts[-2].lose()
        await controller.read_until(lambda: 1 in controller.ended)
        await starting
    finally:
        await executor.close()
        await hosts[-1].close()
    assert sorted(row.ordinal for row in controller.rows) == list(range(INTERVIEWS))
    assert controller.ended == {1: ExitCause.DONE}
    assert controller.failures == []


async def test_a_warden_that_dies_once_as_it_starts_costs_its_host_a_moment(monkeypatch):
    start, started = NodeHost._start_warden, []

    async def killed_once(host, message):
        await start(host, message)
        started.append(host)
        if len(started) == 1:
            os.kill(host._warden._process.pid, signal.SIGKILL)

    monkeypatch.setattr(NodeHost, "_start_warden", killed_once)
    host = Host()
    executor = IsolatedExecutor([host.place], [{}], on_unusable=lambda place, reason: None)
    await executor.open(spec_for(MODEL))
    executor.lease(Lease(interviews=INTERVIEWS, buffer_bytes=1_000_000))
    controller = Controller(executor)
    starting = asyncio.create_task(executor.start(chunk(1, 0, 10)))
    try:
        await controller.read_until(lambda: 1 in controller.ended)
        await starting
    finally:
        await executor.close()
        await host.close()
    assert sorted(row.ordinal for row in controller.rows) == list(range(10))
    assert len(started) > 1


async def test_a_run_without_a_host_waits_for_the_next():
    first, second = Host(), Host()
    executor = IsolatedExecutor([first.place], [{}])
    await executor.open(spec_for(MODEL))
    executor.lease(Lease(interviews=INTERVIEWS, buffer_bytes=1_000_000))
    controller = Controller(executor)
    try:
        await first.lose()
        starting = asyncio.create_task(executor.start(chunk(1, 0, 10)))
        await asyncio.sleep(0.2)
        assert not starting.done()
        executor.join(second.place)
        await controller.read_until(lambda: 1 in controller.ended)
        await starting
    finally:
        await executor.close()
        await second.close()
    assert sorted(row.ordinal for row in controller.rows) == list(range(10))
