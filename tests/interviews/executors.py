"""The executors that the contract suite runs on. A new executor joins by a line here."""

from collections.abc import Callable
from functools import partial
from typing import Any

from headrace.interviews.contract import InterviewExecutor, Spec
from headrace.interviews.inline import InlineExecutor
from headrace.interviews.workers.interview_executor import IsolatedExecutor
from headrace.workers.functions import refer_to
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
        self.pool = WorkerPool(PoolOptions(preload=(*_PRELOAD, *(_PRELOAD_FOR_NETWORK if has_network else ()))))
        references = [{name: refer_to(function) for name, function in each.items()} for each in functions]
        super().__init__(self.pool, references, **({"workers": 2, "limit_bytes": 64 << 20} | options))

    async def open(self, spec: Spec) -> None:
        await self.pool.start()
        await super().open(spec)

    async def close(self) -> None:
        await super().close()
        await self.pool.close()


EXECUTORS: dict[str, Callable[[list[dict[str, Any]]], InterviewExecutor]] = {
    "inline": InlineExecutor,
    "isolated": IsolatedWithPool,
}

# The same for models behind HTTP, with room for messages of a megabyte.
NETWORK_EXECUTORS: dict[str, Callable[[list[dict[str, Any]]], InterviewExecutor]] = {
    "inline": InlineExecutor,
    "isolated": partial(IsolatedWithPool, has_network=True, limit_bytes=160 << 20),
}
