"""The nodes of a cluster for one survey: how memory is divided on each, and their executor.

    budget of a node >= its host + warden + room for the host to grow + slots x limit of each

The same executor as for workers on one machine: a node is one more host of workers (interviews.workers.worker_place).
Does not cover: nodes themselves (cluster.ray_nodes), or what workers do (interviews.workers.interview_executor).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from msgspec import structs

from headrace.cluster.node_states import NodeState
from headrace.cluster.ray_nodes import BRING_CODE, FIT_MEMORY, RayNode, RayNodes
from headrace.errors import BudgetTooSmall, HeadraceError
from headrace.interviews.contract import Spec
from headrace.interviews.workers.interview_executor import IsolatedExecutor
from headrace.interviews.workers.survey_workers import functions_by_reference, pool_options, worker_limit_bytes
from headrace.interviews.workers.worker_place import WorkerPlace
from headrace.models.contacts import contacts_of
from headrace.models.keys import looked_up
from headrace.models.response_cache import ResponseCache
from headrace.models.shared_limiters import SharedLimiters
from headrace.plan.job import Job
from headrace.ray_option import Ray
from headrace.store.run_file.stored_job.embedded_files import EmbeddedFiles
from headrace.workers.pool import WorkerPool

_GATHER_S = 0.05  # turns are lent and interviews wait in each worker: messages need not hurry


class NodesExecutor(IsolatedExecutor):
    """The executor of interviews on nodes. They get the contents of files from this process, which reads those that the
    run file embeds where the run file is.
    """

    _embedded: EmbeddedFiles | None = None

    async def open(self, spec: Spec) -> None:
        self._embedded = EmbeddedFiles.use(spec.embedded_in)
        await super().open(structs.replace(spec, embedded_in=""))

    async def close(self) -> None:
        await super().close()
        if self._embedded is not None:
            self._embedded.close()
            self._embedded = None


class SurveyNodes:
    """Made by `survey_nodes`, with nodes that take part."""

    def __init__(self, job: Job, option: Ray, memory: str | int | None) -> None:
        self._job = job
        self._option = option
        self._functions = functions_by_reference(job)
        self._places: dict[WorkerPlace, RayNode] = {}
        self._executor: NodesExecutor | None = None
        self.gauge = None  # of this process alone: each node keeps to a budget of its own
        self.nodes = RayNodes(option, memory, _key_variables(job), self._joined, self._failed, gather_s=_GATHER_S)

    def executor(self, endpoints: SharedLimiters, cache: ResponseCache | None) -> NodesExecutor:
        self._executor = NodesExecutor(
            [place for place in self._places if place.pool.lost is None],
            self._functions,
            endpoints=endpoints,
            cache=cache,
            on_unusable=self._unusable,
        )
        return self._executor

    def states(self) -> list[NodeState]:
        """How each node stands."""
        now_s = time.monotonic()
        return [
            NodeState(
                name=node.name,
                slots=node.slots,
                in_flight=0 if self._executor is None else self._executor.in_flight_at(place),
                used_bytes=node.warden.used_bytes or node.hello.used_bytes,
                budget_bytes=node.hello.budget_bytes,
                silent_s=now_s - node.warden.heard_at,
            )
            for place, node in self._places.items()
            if node.warden is not None and node.warden.lost is None
        ]

    async def close(self) -> None:
        await asyncio.gather(*(place.pool.close() for place in self._places))
        await self.nodes.close()

    def _joined(self, node: RayNode) -> None:
        self._forget_lost()
        try:
            limit_bytes = worker_limit_bytes(node.hello.budget_bytes, node.hello.used_bytes, node.slots)
        except BudgetTooSmall as error:
            self.nodes.refuse(node, error.message.rstrip("."), FIT_MEMORY)
            return
        limit_bytes = min(limit_bytes, self._option.slot_bytes or limit_bytes)
        pool = WorkerPool(pool_options(self._job, self._functions), place=node.warden)
        place = WorkerPlace(pool, node.slots, limit_bytes, node.name)
        self._places[place] = node
        if self._executor is not None:
            self._executor.join(place)

    def _failed(self, error: HeadraceError) -> None:
        if self._executor is not None:
            self._executor.fail(error)

    def _unusable(self, place: WorkerPlace, reason: str) -> None:
        self.nodes.refuse(self._places[place], reason, BRING_CODE)

    def _forget_lost(self) -> None:
        for place in [place for place in self._places if place.pool.lost is not None]:
            del self._places[place]


@asynccontextmanager
async def survey_nodes(
    job: Job, option: Ray, memory: str | int | None, check_wanted: Callable[[], None]
) -> AsyncGenerator[SurveyNodes]:
    """`check_wanted` raises where the run was stopped before any node took part."""
    nodes = SurveyNodes(job, option, memory)
    try:
        await nodes.nodes.start(check_wanted)
        yield nodes
    finally:
        await nodes.close()


def _key_variables(job: Job) -> dict[str, str]:
    """The keys that this user's environment holds for the job's models: nodes have environments of their own."""
    names = {contact.key for model in job.called_models for contact in contacts_of(model)}
    found = {name: looked_up(name)[0] for name in names if name is not None}
    return {name: value for name, value in found.items() if value}
