"""`EngineOptions`: an engine's options, checked before anything starts. Covers: their errors.

Does not cover: what they lead to (loop), how memory is written (units).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import structs

from headrace.agents.workers.engine_workers import Isolation, WorkerOptions
from headrace.errors import OptionError
from headrace.limits import BreakerLimits, MemoryLimits, QueueLimits, whole_number
from headrace.memory.budget import memory_limits
from headrace.memory.measure.own_tree import tree_bytes
from headrace.priority import Priority
from headrace.ray_option import Ray
from headrace.units import format_bytes, parse_budget, parse_bytes
from headrace.workers.lender import LEAST_WORKER_BYTES
from headrace.workers.limit_mechanisms import can_isolate

_LEAST_SLOT_BYTES = 1_000_000
_USUAL_SLOTS = 2


class ClusterOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster that agent runs are on. `memory` is the budget of each node, as it was written; `limits` has the
    levels that hold on all of them.
    """

    ray: Ray
    memory: str | int | None
    limits: MemoryLimits


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine was asked for. `memory` are the limits of this process and what it starts."""

    memory: MemoryLimits
    queue: QueueLimits
    breaker: BreakerLimits | None
    workers: WorkerOptions
    grace_s: float
    stuck_after_s: float
    is_strict: bool
    telemetry: bool
    cluster: ClusterOptions | None = None

    def with_slot_share(self, share_bytes: int) -> EngineOptions:
        """These options for nodes whose slots have equal shares of this size, unless `slot_memory` was given."""
        if not self.queue.is_slot_a_share:
            return self
        share_bytes = max(share_bytes, self.queue.least_run_bytes)
        return structs.replace(self, queue=structs.replace(self.queue, slot_memory_bytes=share_bytes))

    @classmethod
    def checked(
        cls,
        *,
        memory: str | int | MemoryLimits | None,
        slots: int | None,
        slot_memory: str | int | None,
        oom_retry_memory: str | int | None,
        queue_depth: int,
        isolation: Isolation | None,
        preload: Sequence[str],
        largest_file: str | int,
        grace_s: float,
        stuck_after_s: float,
        breaker: BreakerLimits | None,
        strict: bool,
        telemetry: bool,
        executor: Ray | None,
    ) -> EngineOptions:
        """From what a program has written."""
        cluster = _checked_cluster(executor, memory, slots, slot_memory, isolation)
        if cluster is not None:
            memory, slot_memory = None, cluster.ray.slot_memory  # this process has a budget of its own
        isolation = _checked_isolation(isolation)
        slots = whole_number("slots", _USUAL_SLOTS if slots is None else slots)
        stuck_after_s = checked_seconds("stuck_after_s", stuck_after_s)
        limits = memory_limits(memory)
        return cls(
            memory=limits,
            queue=_queue_limits(
                limits, slots, slot_memory, oom_retry_memory, queue_depth, isolation, is_elsewhere=cluster is not None
            ),
            breaker=_checked_breaker(breaker),
            cluster=cluster,
            workers=WorkerOptions(
                isolation=isolation,
                slots=slots if cluster is None else 0,
                ceiling_bytes=0 if slot_memory is None else parse_bytes(slot_memory),
                preload=_checked_preload(preload),
                largest_file_bytes=parse_bytes(largest_file),
                stuck_after_s=stuck_after_s,
            ),
            grace_s=checked_seconds("grace_s", grace_s, may_be_zero=True),
            stuck_after_s=stuck_after_s,
            is_strict=_checked_flag("strict", strict),
            telemetry=_checked_telemetry(telemetry),
        )


def checked_priority(given: Any) -> Priority:
    try:
        return Priority(given)
    except ValueError:
        levels = ", ".join(f"Priority.{level.name}" for level in sorted(Priority, reverse=True))
        raise OptionError(f"priority={given!r} is not known.", fix=f"Use one of {levels}.") from None


def checked_key(given: Any) -> str | None:
    if given is not None and not isinstance(given, str):
        raise OptionError(f"key={given!r} is not text.", fix="Give text, or None for a new run each time.")
    return given


def checked_name(given: Any) -> str | None:
    if given is not None and not isinstance(given, str):
        raise OptionError(f"name={given!r} is not text.", fix="Give text, or leave it out for the function's own name.")
    return given


def checked_job(given: Any) -> None:
    from headrace.plan.job import Job

    if not isinstance(given, Job):
        raise OptionError(
            f"What is run here is a survey's job, not {given!r:.50}.",
            fix="Make one with survey.by(...). Agent functions are for engine.submit(...).",
        )


def checked_seconds(name: str, given: Any, *, may_be_zero: bool = False) -> float:
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if not is_number or not 0 <= given < math.inf or not (given or may_be_zero):
        raise OptionError(f"{name}={given!r} must be a number of seconds{'' if may_be_zero else ' above 0'}.")
    return float(given)


def _queue_limits(
    limits: MemoryLimits,
    slots: int,
    slot_memory: str | int | None,
    oom_retry_memory: str | int | None,
    queue_depth: int,
    isolation: Isolation,
    *,
    is_elsewhere: bool,
) -> QueueLimits:
    """Where runs are elsewhere, the share of a slot is not known before there are nodes."""
    least = LEAST_WORKER_BYTES if isolation == "process" else _LEAST_SLOT_BYTES
    share = max(0, limits.budget_bytes - tree_bytes()) // slots
    given = max(share, least) if slot_memory is None else parse_bytes(slot_memory)
    if given < least:
        raise OptionError(
            f"slot_memory={slot_memory!r} is less than the {format_bytes(least)} that every run takes.",
            fix="Give more." if isolation == "inline" else 'Give more, or use isolation="inline".',
        )
    return QueueLimits(
        queue_depth=queue_depth,
        slot_memory_bytes=given,
        most_run_bytes=None if slot_memory is None else given,
        is_slot_a_share=slot_memory is None,
        least_run_bytes=least,
        oom_retry_bytes=_checked_retry(
            oom_retry_memory, None if is_elsewhere else limits.budget_bytes, None if slot_memory is None else given
        ),
    )


def _checked_retry(oom_retry_memory: str | int | None, budget_bytes: int | None, slot_bytes: int | None) -> int | None:
    if oom_retry_memory is None:
        return None
    given = parse_bytes(oom_retry_memory)
    if slot_bytes is not None and given < slot_bytes:
        raise OptionError(
            f"oom_retry_memory={oom_retry_memory!r} is less than slot_memory=, {format_bytes(slot_bytes)}: a second try"
            " with less would end as the first.",
            fix="Give more, or write oom_retry=False in the @task of what should not be tried again.",
        )
    if budget_bytes is not None and given > budget_bytes:
        raise OptionError(
            f"oom_retry_memory={oom_retry_memory!r} is more than the engine's memory=, {format_bytes(budget_bytes)}.",
            fix="Give less, or leave it out: then it is twice slot_memory=, or what there is.",
        )
    return given


def _checked_cluster(
    executor: Any, memory: str | int | MemoryLimits | None, slots: Any, slot_memory: Any, isolation: Any
) -> ClusterOptions | None:
    if executor is None:
        return None
    if not isinstance(executor, Ray):
        raise OptionError(f"executor={executor!r} is not known.", fix='Write executor=Ray("auto").')
    if isolation == "inline":
        raise OptionError("On a cluster, agents run in worker processes.", fix='Leave isolation="inline" out.')
    for name, given, fix in (
        ("slots", slots, "Write Ray(..., slots_per_node=4) for how many each node has."),
        ("slot_memory", slot_memory, 'Write Ray(..., slot_memory="2GB") for the most that each of them may use.'),
    ):
        if given is not None:
            raise OptionError(f"{name}= is for agents on this machine.", fix=fix)
    if isinstance(memory, MemoryLimits):
        return ClusterOptions(ray=executor, memory=memory.budget or memory.budget_bytes, limits=memory)
    if memory is not None:
        parse_budget(memory)  # a mistake in it is told here already, not by each node
    return ClusterOptions(ray=executor, memory=memory, limits=MemoryLimits(budget_bytes=1))


def _checked_isolation(isolation: Isolation | None) -> Isolation:
    if isolation is None:
        return "process" if can_isolate() else "inline"
    if isolation not in ("process", "inline"):
        raise OptionError(f"isolation={isolation!r} is not known.", fix='Use "process" or "inline".')
    if isolation == "process" and not can_isolate():
        raise OptionError(f"Agents cannot have processes of their own on {sys.platform}.", fix='Use "inline".')
    return isolation


def _checked_preload(preload: Sequence[str]) -> tuple[str, ...]:
    if isinstance(preload, str):
        raise OptionError(f"preload={preload!r} is not a list.", fix=f"Write preload=[{preload!r}].")
    for name in list[object](preload):
        if not isinstance(name, str):
            raise OptionError(f"preload= holds {name!r}, which is not text.", fix='Name modules: preload=["mymodule"].')
    return tuple(preload)


def _checked_flag(name: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise OptionError(f"{name}={given!r} is neither True nor False.")
    return given


def _checked_telemetry(given: Any) -> bool:
    if _checked_flag("telemetry", given):
        from headrace.interviews.session import check_telemetry

        check_telemetry()
    return given


def _checked_breaker(breaker: Any) -> BreakerLimits | None:
    if breaker is not None and not isinstance(breaker, BreakerLimits):
        raise OptionError(
            f"breaker={breaker!r} is not BreakerLimits(...).",
            fix="Leave it out for the usual ones; None is for never refusing a kind whose runs fail.",
        )
    return breaker
