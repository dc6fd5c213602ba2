"""One warden for the tests of a module that need no other; a test's workers end with it, and leave nothing in it."""

from collections.abc import AsyncIterator

import pytest

from headrace.workers.pool import PoolOptions, WorkerPool
from tests.temporary_files import no_temporary_file_left
from tests.workers.tasks import end_workers
from tests.workers.trees import children_of, descriptors_of, soon


@pytest.fixture(scope="module")
async def module_pool(anyio_backend: str) -> AsyncIterator[WorkerPool]:
    async with WorkerPool(PoolOptions(most_idle=0, hang_s=3.0, preload=("tests.workers.entries",))) as one:
        yield one


@pytest.fixture
async def pool(module_pool: WorkerPool) -> AsyncIterator[WorkerPool]:
    warden = module_pool.warden_pid
    assert warden is not None
    before = descriptors_of(warden)
    yield module_pool
    await end_workers(module_pool)
    assert module_pool.warden_pid == warden
    assert await soon(lambda: not children_of(warden)), "the warden has children left"
    assert await soon(lambda: descriptors_of(warden) <= before), "the warden has descriptors left"


__all__ = ["module_pool", "no_temporary_file_left", "pool"]
