"""One warden for the tests of a module that need no other; a test's workers end with it, and leave nothing in it."""

import tempfile
from collections.abc import AsyncIterator, Iterator

import pytest

from headrace.execute.worker_pool import PoolOptions, WorkerPool
from tests.workers.trees import children_of, descriptors_of, soon


@pytest.fixture(scope="module")
async def module_pool(anyio_backend: str) -> AsyncIterator[WorkerPool]:
    async with WorkerPool(PoolOptions(most_idle=0, hang_s=0.5, preload=("tests.workers.entries",))) as one:
        yield one


@pytest.fixture
async def pool(module_pool: WorkerPool) -> AsyncIterator[WorkerPool]:
    warden = module_pool.warden_pid
    assert warden is not None
    before = descriptors_of(warden)
    yield module_pool
    await module_pool.end_workers()
    assert module_pool.warden_pid == warden
    assert await soon(lambda: not children_of(warden)), "the warden has children left"
    assert await soon(lambda: descriptors_of(warden) <= before), "the warden has descriptors left"


@pytest.fixture(autouse=True)
def no_temporary_file_left(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    yield
    assert list(directory.iterdir()) == []
