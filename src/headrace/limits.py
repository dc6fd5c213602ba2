"""Options as values: frozen, keyword-only, checked when made.

Does not cover: acting on them (models.endpoint, memory.governor, interviews, agents).

Structs and not dataclasses: making these classes took 13 ms of every start.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import structs
from msgspec.structs import force_setattr

from headrace.errors import OptionError, Spelled, spelled
from headrace.ray_option import Ray
from headrace.units import NONE, parse_budget

_CONCURRENCY = 200
_MOST = 10**9
_MOST_WORKERS = 256

_KINDS_OF_BAR = ("lines", "log")
ProgressBar: TypeAlias = bool | Literal["lines", "log"] | None
Lifted: TypeAlias = Literal["none"]


class Keep(StrEnum):
    """What a run file keeps of its interviews. It is chosen when the file is made, and stays."""

    EVERYTHING = "everything"
    ANSWERS = "answers"  # no prompts, no raw responses
    NOTHING = "nothing"  # which are finished, what they took, and totals


class MemoryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The budget and the levels at which the governor acts, as shares of it: enter at, leave at.

    The budget is `budget`, as `memory=` is written ("512MB", "60%", "+512MB"), or `budget_bytes`. A written one becomes
    bytes when the engine opens (memory.budget); until then its `budget_bytes` is 0. `base_bytes` are what the
    process holds before any work, where that is most of a budget on top of it: levels are shares of what is above them.

    And what protects work from the governor: a run that pressure has preempted runs at least `min_run_s` before it is
    again, and after `most_preemptions` it runs alone; neither protects it from a higher priority. A run that has not
    stopped within `stop_s` no longer keeps the next one from being stopped. Where nothing has computed for
    `hopeless_after_s`, a run that waits for an isolated child is preempted: the child, or others, may need its memory.
    A run that for `gives_up_after_s` in a row needs more than there is even beside nothing else ends without a result.
    """

    budget_bytes: int = 0
    shrink_at: float = 0.70
    shrink_until: float = 0.60
    preempt_at: float = 0.85
    preempt_until: float = 0.75
    emergency_at: float = 0.95
    emergency_until: float = 0.80
    calm_s: float = 2.0
    min_run_s: float = 10.0
    most_preemptions: int = 3
    stop_s: float = 5.0
    hopeless_after_s: float = 10.0
    budget: str | int | None = None
    gives_up_after_s: float = 600.0
    base_bytes: int = 0

    def __post_init__(self) -> None:
        self._check_types()
        self._check_budget()
        enters = (self.shrink_at, self.preempt_at, self.emergency_at)
        leaves = (self.shrink_until, self.preempt_until, self.emergency_until)
        if not (0 < enters[0] < enters[1] < enters[2] <= 1) or list(leaves) != sorted(leaves):
            raise OptionError(
                f"Memory levels must rise: shrink, preempt, emergency are entered at {_listed(enters)} and left at"
                f" {_listed(leaves)}.",
                fix="Give shares of the budget above 0 and up to 1, each above the one before.",
            )
        if not all(leave < enter for enter, leave in zip(enters, leaves, strict=True)):
            raise OptionError(
                f"Each memory level must be left below the line where it is entered: they are entered at"
                f" {_listed(enters)} and left at {_listed(leaves)}."
            )
        spans = ("calm_s", "min_run_s", "stop_s", "hopeless_after_s", "gives_up_after_s")
        for name in (*spans, "most_preemptions", "base_bytes"):
            if not getattr(self, name) >= 0:  # also what is no number
                raise OptionError(f"{name}={getattr(self, name)!r} of memory limits cannot be negative.")

    def bytes_at(self, share: float, budget_bytes: int) -> int:
        """How much is in use where a reading is this share of a budget in effect."""
        base_bytes = min(self.base_bytes, budget_bytes)
        return base_bytes + int((budget_bytes - base_bytes) * share)

    def _check_types(self) -> None:
        for name in self.__struct_fields__:
            value, is_bytes = getattr(self, name), name in ("budget_bytes", "base_bytes")
            if name == "budget":  # checked where it is read
                continue
            if isinstance(value, bool) or not isinstance(value, int if is_bytes else (int, float)):
                fix = f"Write budget={value!r}." if is_bytes and isinstance(value, str) else ""
                needed = "a whole number of bytes" if is_bytes else "a number"
                raise OptionError(f"{name}={value!r} of memory limits must be {needed}.", fix=fix)

    def _check_budget(self) -> None:
        if self.budget is not None:
            parse_budget(self.budget)
            if self.budget_bytes:
                raise OptionError(
                    f"Memory limits have one budget, not budget={self.budget!r} and budget_bytes={self.budget_bytes}.",
                    fix="Leave one of them out.",
                )
        elif self.budget_bytes <= 0:
            given = f"A memory budget of {self.budget_bytes} bytes leaves no room."
            raise OptionError(
                given if self.budget_bytes else "Memory limits need a budget.",
                fix='Write budget="512MB", "60%" of the host or container, or "+512MB" on top of what is in use.',
            )


class RetryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How often one question is asked again, and how long a call that may succeed later waits."""

    answer_attempts: int = 3
    call_attempts: int = 5
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0

    def __post_init__(self) -> None:
        if self.answer_attempts < 1 or self.call_attempts < 1:
            raise OptionError("A question must be asked at least once.")


class BreakerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """So many failures within a time open a circuit; after a pause, which grows, probes may close it.

    For a kind of agent run, each failure is another run's, and as many probes must succeed as failures opened it; for a
    model's endpoint one probe closes it.
    """

    failures: int = 3
    within_s: float = 60.0
    cool_down_s: float = 10.0
    longest_cool_down_s: float = 120.0

    def __post_init__(self) -> None:
        if self.failures < 1 or self.within_s <= 0 or not 0 < self.cool_down_s <= self.longest_cool_down_s:
            raise OptionError("A circuit breaker needs at least one failure, and times above zero.")


USUAL_BREAKER = BreakerLimits()
KindBreaker: TypeAlias = BreakerLimits | Literal["engine"] | None
"""The limits of a kind's circuit: its own, the engine's, or None where failures of the kind refuse nothing."""


class EndpointLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How a model's endpoint is treated. None is no limit but what its own replies tell.

    A busy service is left alone for `first_pause_s`, doubling to `longest_pause_s`, or for as long as it asks, up to
    `longest_asked_pause_s`. A network that is away is tried after `first_away_s`, doubling to `longest_away_s`.

    One that was closed, by a refused key for instance, is tried again after `first_closed_s`, doubling to
    `longest_closed_s`.

    Calls wait in the order of their priority; a level that has waited `aging_s` longer counts as one level higher. A
    part is reserved for HIGH and above while they ask, and for `reserve_s` after that.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    first_concurrency: int = 8
    most_concurrency: int = 500
    first_pause_s: float = 1.0
    longest_pause_s: float = 60.0
    longest_asked_pause_s: float = 600.0
    first_away_s: float = 2.0
    longest_away_s: float = 30.0
    breaker: BreakerLimits = BreakerLimits(cool_down_s=2.0)
    aging_s: float = 30.0
    reserve_s: float = 10.0
    first_closed_s: float = 30.0
    longest_closed_s: float = 1_800.0

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute"):
            _check_rate(name, getattr(self, name))
        for name in ("first_concurrency", "most_concurrency"):
            force_setattr(self, name, _whole(name, getattr(self, name), may_be_none=False))
        if self.first_concurrency > self.most_concurrency:
            force_setattr(self, "first_concurrency", self.most_concurrency)
        if not 0 < self.first_pause_s <= self.longest_pause_s <= self.longest_asked_pause_s < math.inf:
            raise OptionError("The pauses of a busy endpoint must rise: first, longest, longest asked for.")
        if not 0 < self.first_away_s <= self.longest_away_s < math.inf:
            raise OptionError("The waits for a network that is away must rise: first, longest.")
        if not 0 < self.first_closed_s <= self.longest_closed_s < math.inf:
            raise OptionError("The waits for an endpoint that is closed must rise: first, longest.")
        if not (0 < self.aging_s < math.inf and 0 <= self.reserve_s < math.inf):
            raise OptionError("aging_s and reserve_s of an endpoint are seconds.")


class CacheLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much room the response cache takes, and how much of a disk it leaves to others, to run files above all."""

    most_bytes: int = 2_000_000_000
    spare_disk_bytes: int = 200_000_000

    def __post_init__(self) -> None:
        if self.most_bytes < 1 or self.spare_disk_bytes < 0:
            raise OptionError("The response cache needs some room, and cannot leave less than nothing to others.")


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How agent runs wait and start, and how heartbeats beat.

    Waiting `aging_s` longer is worth one level of priority, in order only. `queue_depth` counts for each level, so that
    a level that is full keeps no other out. A run that ran out of memory is tried again with `oom_retry_bytes`, None
    for twice a slot's memory; where it needs more than others leave, these start before it for `passed_over_s`. A slot
    whose runs all wait is charged what it uses and `wait_margin_bytes`. `most_run_bytes` is the most that a run gets
    on its first try, where it does not declare more. Where a slot is a share, its memory is what slots have beside each
    other.
    """

    queue_depth: int = 5
    aging_s: float = 60.0
    slot_memory_bytes: int = 400_000_000
    least_run_bytes: int = 1_000_000
    passed_over_s: float = 30.0
    oom_retry_bytes: int | None = None
    most_run_bytes: int | None = None
    is_slot_a_share: bool = False
    most_losses: int = 2
    heartbeats_at_once: int = 2
    wait_margin_bytes: int = 8 << 20

    def __post_init__(self) -> None:
        force_setattr(self, "queue_depth", whole_number("queue_depth", self.queue_depth))
        if min(self.least_run_bytes, self.heartbeats_at_once) < 1:
            raise OptionError("A run needs some memory, and heartbeats one at a time.")
        if self.passed_over_s < 0 or (self.oom_retry_bytes is not None and self.oom_retry_bytes < 1):
            raise OptionError("A second try takes some memory, and a run is passed over for some time or none.")
        if self.aging_s <= 0 or self.most_losses < 0 or self.slot_memory_bytes < self.least_run_bytes:
            raise OptionError("Aging takes time, and a slot's memory holds at least the smallest run.")


class Budgets(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of one file may use together, each as the user wrote it: `"60%"` stays `"60%"`.

    None is the default: no limit of cost and tokens, this host's usual memory, 200 interviews in flight, no workers.
    """

    memory: str | int | None = None
    max_cost: float | None = None
    max_tokens_total: int | None = None
    concurrency: int | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        for name, check in _BUDGET_CHECKS.items():
            force_setattr(self, name, check(name, getattr(self, name)))

    @property
    def window(self) -> int:
        """How many interviews may be in flight."""
        return self.concurrency or _CONCURRENCY

    @property
    def sizes_in_words(self) -> list[str]:
        """How much may go on at once, as far as that is not the default."""
        numbers = (("concurrency", self.concurrency), ("workers", self.workers))
        words = [f"{name} {number:,}" for name, number in numbers if number is not None]
        return words if self.memory is None else [*words, f"memory {self.memory}"]


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What `job.run(...)` was asked for. `n` is None where the user left the choice to us.

    The five budgets (see Budgets) are None where the run file's own stay in force, and "none" where they are lifted.
    `workers` are processes that conduct the interviews; 0 is "none": this process does.
    `progress_bar` is True for one line on a terminal or in a notebook, "lines" for several, "log" for a plain line a
    minute on standard error whatever that is, False for silence. None is True at a terminal that can draw and in a
    notebook, and False elsewhere.
    `embed` keeps the contents of files in prompts in the run file. `view` starts a page beside the run.
    `keep` is None where the file's own stays in force; a new file keeps everything. `aggregate` and `group_by` are the
    totals that the file keeps beside or in place of its rows (results.totals), None for those that it has.
    `telemetry` exports the run's spans and metrics by OpenTelemetry. `executor` is a cluster that conducts the
    interviews: `memory` is then the budget of each of its nodes.
    """

    concurrency: int | Lifted | None = None
    workers: int | Lifted | None = None
    n: int | None = None
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    memory: str | int | None = None
    max_cost: float | Lifted | None = None
    max_tokens_total: int | Lifted | None = None
    cache: bool = True
    fresh: bool = False
    extend: bool = False
    retry_failed: bool = False
    stop_on_exception: bool = False
    embed: bool = False
    progress_bar: ProgressBar = None
    keep: str | None = None
    aggregate: Any = None
    group_by: str | tuple[str, ...] | None = None
    telemetry: bool = False
    view: bool = False
    executor: Ray | None = None

    def __post_init__(self) -> None:
        self._check_kept()
        self._check_executor()
        if type(self.workers) is int and self.workers == 0:
            force_setattr(self, "workers", NONE)
        for name, check in _BUDGET_CHECKS.items():
            if getattr(self, name) != NONE:
                force_setattr(self, name, check(name, getattr(self, name)))
        for name in ("n", "limit", "sample"):
            force_setattr(self, name, _whole(name, getattr(self, name), may_be_none=True))
        booleans = ("cache", "fresh", "extend", "retry_failed", "stop_on_exception", "embed", "telemetry", "view")
        for name in booleans:
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name}={getattr(self, name)!r} must be True or False.")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"seed={self.seed!r} must be a whole number.")
        if not (self.progress_bar is None or isinstance(self.progress_bar, bool) or self.progress_bar in _KINDS_OF_BAR):
            raise OptionError(
                f"progress_bar={self.progress_bar!r} is not known.",
                fix='Use True for one line, "lines" for several, "log" for a line a minute, or False.',
            )
        if self.fresh and self.extend:
            raise OptionError(
                spelled("{fresh} starts over and {extend} goes on.", fresh=True, extend=True),
                fix="Choose one of them.",
            )

    def _check_kept(self) -> None:
        if self.keep is not None and self.keep not in tuple(Keep):
            raise OptionError(
                spelled("{keep} is not known.", keep=self.keep),
                fix='Use "everything", "answers" (no prompts, no raw responses) or "nothing" (totals only).',
            )
        if self.group_by is None:
            return
        names = (self.group_by,) if isinstance(self.group_by, str) else tuple(self.group_by)
        if not names or not all(isinstance(name, str) for name in names):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"group_by={self.group_by!r} must name columns.", fix='Write group_by="agent.city".')
        if not isinstance(self.aggregate, Mapping):
            raise OptionError(
                spelled("{group_by} groups the functions of {aggregate}.", group_by=None, aggregate=None),
                fix='Write aggregate={"mean": "mean(answer.rating)"}, group_by="agent.city".',
            )
        force_setattr(self, "group_by", names)

    def _check_executor(self) -> None:
        if not isinstance(self.executor, Ray | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"executor={self.executor!r} is not known.", fix='Write executor=Ray("auto").')
        if self.executor is not None and self.workers not in {None, 0, NONE}:
            raise OptionError(
                spelled("{workers} are processes of this machine, and a cluster has its own.", workers=self.workers),
                fix=Spelled(
                    "Write Ray(..., slots_per_node=4) for how many each node has.",
                    command="Leave --workers out: each node has as many as Ray counts CPUs on it.",
                ),
            )

    def budgets(self, kept: Budgets) -> Budgets:
        """The budgets of this run: those given, and where none is given those that its file keeps."""
        given = {name: getattr(self, name) for name in Budgets.__struct_fields__}
        named = {name: None if value == NONE else value for name, value in given.items() if value is not None}
        return structs.replace(kept, **named)


def _check_rate(name: str, value: Any, fix: str = "Leave it out for no limit.") -> None:
    if value is None:
        return
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:
        raise OptionError(f"{name}={value!r} must be a number above 0.", fix=fix)


def _cost(name: str, value: Any) -> Any:
    _check_rate(name, value, fix='Write "none" for no limit.')
    return value


def _memory(_: str, value: Any) -> Any:
    if value is not None:
        parse_budget(value)
    return value


def _count(name: str, value: Any) -> int | None:
    return _whole(name, value, may_be_none=True)


def _workers(name: str, value: Any) -> int | None:
    workers = _whole(name, value, may_be_none=True)
    if workers is not None and workers > _MOST_WORKERS:
        raise OptionError(
            spelled(f"{{workers}} is more than {_MOST_WORKERS}.", workers=workers), fix="About one per core is best."
        )
    return workers


_BUDGET_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "memory": _memory,
    "max_cost": _cost,
    "max_tokens_total": _count,
    "concurrency": _count,
    "workers": _workers,
}


def _listed(shares: tuple[float, ...]) -> str:
    return ", ".join(f"{share:g}" for share in shares)


def whole_number(name: str, value: Any) -> int:
    """Refuses an option that is not a whole number from 1 on."""
    number = _whole(name, value, may_be_none=False)
    assert number is not None
    return number


def _whole(name: str, value: Any, *, may_be_none: bool) -> int | None:
    if value is None and may_be_none:
        return None
    number = 0
    with suppress(TypeError):  # refused below, with the value
        number = operator.index(value)  # pyright: ignore[reportArgumentType]
    if isinstance(value, bool) or not 1 <= number <= _MOST:
        raise OptionError(f"{name}={value!r} must be a whole number from 1 to {_MOST:,}.")
    return number
