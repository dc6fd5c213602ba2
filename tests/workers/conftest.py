"""One warden for the tests of a module that need no other; a test's workers end with it."""

from collections.abc import AsyncIterator

import pytest

from headrace.execute.worker_pool import PoolOptions, WorkerPool


@pytest.fixture(scope="module")
async def module_pool(anyio_backend: str) -> AsyncIterator[WorkerPool]:
    async with WorkerPool(PoolOptions(most_idle=0, hang_s=0.5, preload=("tests.workers.entries",))) as one:
        yield one


@pytest.fixture
async def pool(module_pool: WorkerPool) -> AsyncIterator[WorkerPool]:
    yield module_pool
    await module_pool.end_workers()
