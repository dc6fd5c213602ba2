"""The executors that the contract suite runs on. A new executor joins by a line here."""

from collections.abc import Callable
from functools import partial
from typing import Any

from headrace.cluster.node_host import NodeHost
from headrace.cluster.remote_warden import RemoteWarden
from headrace.interviews.contract import InterviewExecutor, Spec
from headrace.interviews.inline import InlineExecutor
from headrace.interviews.workers.interview_executor import IsolatedExecutor
from headrace.interviews.workers.worker_place import WorkerPlace
from headrace.workers.functions import refer_to
from headrace.workers.local_warden import WardenPlace
from headrace.workers.pool import PoolOptions, WorkerPool

_PRELOAD = (
    "headrace.interviews.workers.interview_worker",
    "headrace.models.protocols.test_model",
    "headrace.models.protocols.function",
)
_PRELOAD_FOR_NETWORK = ("headrace.models.http_client.http_provider", "uvloop")


class IsolatedWithPool(IsolatedExecutor):
    """With a warden of its own, from `open` to `close`."""

    def __init__(self, functions: list[dict[str, Any]], *, has_network: bool = False, **options: Any) -> None:
        options_of_pool = PoolOptions(preload=(*_PRELOAD, *(_PRELOAD_FOR_NETWORK if has_network else ())))
        self.pool = WorkerPool(options_of_pool, place=self.place_of_warden())
        references = [{name: refer_to(function) for name, function in each.items()} for each in functions]
        place = WorkerPlace(self.pool, options.pop("workers", 2), options.pop("limit_bytes", 64 << 20))
        super().__init__([place], references, **options)

    def place_of_warden(self) -> WardenPlace | None:
        return None  # this host

    async def open(self, spec: Spec) -> None:
        await self.pool.start()
        await super().open(spec)

    async def close(self) -> None:
        await super().close()
        await self.pool.close()


class RemoteWithPool(IsolatedWithPool):
    """With its warden behind the messages that cross to another host; how they get there is left out."""

    def place_of_warden(self) -> RemoteWarden:
        self.warden = RemoteWarden(NodeHost(), {}, on_lost=lambda reason: None)
        return self.warden

    async def close(self) -> None:
        await super().close()
        await self.warden.close()


EXECUTORS: dict[str, Callable[[list[dict[str, Any]]], InterviewExecutor]] = {
    "inline": InlineExecutor,
    "isolated": IsolatedWithPool,
    "remote": RemoteWithPool,
}

# The same for models behind HTTP, with room for messages of a megabyte.
NETWORK_EXECUTORS: dict[str, Callable[[list[dict[str, Any]]], InterviewExecutor]] = {
    "inline": InlineExecutor,
    "isolated": partial(IsolatedWithPool, has_network=True, limit_bytes=160 << 20),
    "remote": partial(RemoteWithPool, has_network=True, limit_bytes=160 << 20),
}
