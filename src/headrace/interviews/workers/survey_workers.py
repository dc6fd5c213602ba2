"""Worker processes for one survey: whether they can be had, how memory is divided, and their executor.

    budget >= this process + warden + room for this process to grow + workers x limit of each

Covers: the checks before anything starts, and the pool from its start to its end.
Does not cover: what workers do (interviews.workers.interview_executor).
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from headrace.cluster.node_states import NodeState
from headrace.display import counted
from headrace.errors import BudgetTooSmall, InvalidInput, OptionError, spelled
from headrace.interviews.job_functions import functions_of
from headrace.interviews.workers.interview_executor import IsolatedExecutor
from headrace.interviews.workers.worker_place import WorkerPlace
from headrace.limits import MemoryLimits
from headrace.memory.gauge import TreeGauge
from headrace.models.response_cache import ResponseCache
from headrace.models.shared_limiters import SharedLimiters
from headrace.plan.job import Job
from headrace.survey.known_services import SERVICES
from headrace.survey.model import MissingFunction
from headrace.units import format_bytes
from headrace.workers.functions import refer_to
from headrace.workers.lender import LEAST_WORKER_BYTES
from headrace.workers.limit_mechanisms import can_isolate
from headrace.workers.pool import PoolOptions, WorkerPool
from headrace.workers.wire import FunctionReference

_PRELOADED = (
    "headrace.interviews.workers.interview_worker",
    "headrace.models.protocols.test_model",
    "headrace.models.protocols.function",
)
_KINDS = "headrace.survey.questions."  # a program's own kinds come with its functions
_PRELOADED_FOR_NETWORK = ("headrace.models.http_client.http_provider", "uvloop")
_OWN_GROWTH_BYTES = 24_000_000  # of this process: the run file's caches, rows on their way to disk
_OWN_GROWTH_SHARE = 0.15


class SurveyWorkers:
    """Made by `survey_workers`, with its warden started."""

    def __init__(
        self, pool: WorkerPool, functions: list[dict[str, FunctionReference]], workers: int, limits: MemoryLimits
    ) -> None:
        self._pool = pool
        self._functions = functions
        self._workers = workers
        self.gauge = TreeGauge(lambda: pool.shared_bytes, lambda: pool.abandoned_bytes, has_workers=True)
        self.gauge.correct()
        self.limit_bytes = worker_limit_bytes(limits.budget_bytes, self.gauge.read(), workers)

    def states(self) -> list[NodeState]:
        return []  # this host is no node

    def executor(self, endpoints: SharedLimiters, cache: ResponseCache | None) -> IsolatedExecutor:
        place = WorkerPlace(self._pool, self._workers, self.limit_bytes)
        return IsolatedExecutor([place], self._functions, endpoints=endpoints, cache=cache)


@asynccontextmanager
async def survey_workers(job: Job, workers: int, limits: MemoryLimits) -> AsyncGenerator[SurveyWorkers]:
    """Enter it before the run file is opened: what the warden inherits, every worker does."""
    functions = functions_by_reference(job)
    async with WorkerPool(pool_options(job, functions)) as pool:
        yield SurveyWorkers(pool, functions, workers, limits)


def pool_options(job: Job, functions: list[dict[str, FunctionReference]]) -> PoolOptions:
    """What the warden of such workers imports once, for all of them."""
    has_network = any(model.service_name in SERVICES for model in job.called_models)
    modules = {f.module for each in functions for f in each.values() if not f.is_script}
    kinds = {type(question).__module__ for question in job.survey.questions}
    ours = (*_PRELOADED, *sorted(kind for kind in kinds if kind.startswith(_KINDS)))
    return PoolOptions(preload=(*ours, *(_PRELOADED_FOR_NETWORK if has_network else ()), *sorted(modules)))


def check_for_workers(job: Job) -> None:
    """Refuse, before anything starts, what workers cannot run."""
    if not can_isolate():
        raise OptionError(
            spelled(f"{{workers}} needs processes that {sys.platform} does not offer.", workers=None),
            fix=spelled("Run without {workers}.", workers=None),
        )
    for model in job.called_models:
        if model.service_name == "local":
            raise OptionError(
                f"The model {model.name!r} has a process of its own already, and each worker would load it again.",
                fix=spelled("Run without {workers}: the model's own process does the work.", workers=None),
            )
    functions_by_reference(job)


def functions_by_reference(job: Job) -> list[dict[str, FunctionReference]]:
    """The job's functions by reference; what a run file lacks is refused by its owner."""
    try:
        return [
            {name: refer_to(f) for name, f in each.items() if not isinstance(f, MissingFunction)}
            for each in functions_of(job)
        ]
    except InvalidInput as error:
        fix = spelled("Define it with `def` at the top of a .py file, or run without {workers}.", workers=None)
        raise InvalidInput(error.message, fix=fix) from None


def worker_limit_bytes(budget_bytes: int, used_bytes: int, workers: int) -> int:
    """What each worker may use, so that all of them, the warden and this process stay within the budget."""
    own_growth = max(_OWN_GROWTH_BYTES, int((budget_bytes - used_bytes) * _OWN_GROWTH_SHARE))
    limit_bytes = (budget_bytes - used_bytes - own_growth) // workers
    if limit_bytes < LEAST_WORKER_BYTES:
        least = used_bytes + _OWN_GROWTH_BYTES + workers * LEAST_WORKER_BYTES
        raise BudgetTooSmall(
            f"A budget of {format_bytes(budget_bytes)} has no room for {counted(workers, 'worker')}:"
            f" {format_bytes(used_bytes)} are in use before they start.",
            budget_bytes=budget_bytes,
            used_bytes=used_bytes,
            fix=spelled("Give {memory} or more, or use fewer workers.", memory=format_bytes(least)),
        )
    return limit_bytes
