"""The simulation has teeth: with one rule of the scheduler changed for the worse, some history breaks."""

from collections.abc import Iterable
from typing import NamedTuple

import pytest

from headrace.agents.scheduler import heartbeats, lifecycle, placing, preemption, relief, tenants, verdicts
from headrace.agents.scheduler.board import Board
from headrace.agents.scheduler.host import Host
from headrace.agents.scheduler.passed_over import PassedOver
from headrace.agents.scheduler.task_states import NEVER_KEPT_OUT, Family, Task
from headrace.agents.scheduler.waiting import Entry, Waiting
from headrace.limits import MemoryLimits
from headrace.memory.governor import Governor, Pressure
from headrace.priority import Priority
from tests.agents.scheduler.histories import broken_rule, draw
from tests.agents.scheduler.world import BUDGET

_HISTORIES = 4000

waiting_heads = Waiting.heads  # as it is without a mutation


def first_come(waiting: Waiting) -> list[Entry]:
    return sorted(waiting_heads(waiting), key=lambda entry: entry[2].arrival)


def without_aging(waiting: Waiting) -> list[Entry]:
    return sorted(waiting_heads(waiting), key=lambda entry: (-entry[2].priority, entry[2].arrival))


def without_hysteresis(governor: Governor, used_bytes: int, now_s: float) -> Pressure:
    governor.share = (used_bytes - governor.zero_bytes) / max(1, governor.budget_bytes - governor.zero_bytes)
    governor.pressure = governor._entered(governor.share)
    return governor.pressure


def inside_side_effects_too(family: Family, limits: MemoryLimits, now_s: float) -> bool:
    leader = family.leader
    may_go = family.priority is not Priority.CRITICAL and not family.is_stopping() and not family.is_alone
    has_run = not leader.preemptions or now_s - family.started_s >= limits.min_run_s
    return may_go and has_run and leader.preemptions < limits.most_preemptions and leader.has_progress


def right_after_the_start(family: Family, limits: MemoryLimits, now_s: float) -> bool:
    leader = family.leader
    may_go = family.priority is not Priority.CRITICAL and not family.is_stopping() and not family.is_alone
    is_inside = any(task.side_effects for task in family.running.values())
    return may_go and leader.preemptions < limits.most_preemptions and leader.has_progress and not is_inside


def highest_first(families: list[Family]) -> Family | None:
    return max(families, key=lambda family: (family.priority, family.serial), default=None)


def any_attempt(board: Board, run: int, epoch: int) -> Task | None:
    task = board.tasks.get(run)
    return task if task is not None and task.family is not None else None


def told_with_every_reading(passed_over: PassedOver, waiting: Iterable[Task]) -> list[Task]:
    return list(waiting)


class Mutation(NamedTuple):
    where: object
    name: str
    changed: object
    found_by: str


MUTATIONS = {
    "one slot too many": Mutation(Host, "slots_now", lambda host: host.slots + 1, "never above the slots"),
    "reservations are not counted": Mutation(
        Host, "room_bytes", lambda host: BUDGET, "admitted reservations never above the budget"
    ),
    "first come, whatever its priority": Mutation(Waiting, "heads", first_come, "CRITICAL never waits behind others"),
    "age counts for nothing": Mutation(
        Waiting, "heads", without_aging, "nobody passes who has waited longer, age counted"
    ),
    "levels are left at once": Mutation(
        Governor, "observe", without_hysteresis, "no level is left faster than hysteresis allows"
    ),
    "the floor never becomes the zero": Mutation(
        relief, "_start_over", lambda board, host: None, "everything ends, under pressure that never falls too"
    ),
    "pressure keeps nobody out": Mutation(Host, "admits", lambda host, task: True, "pressure keeps its levels out"),
    "what was preempted comes back at once": Mutation(
        lifecycle,
        "_returns_below",
        lambda task: NEVER_KEPT_OUT,
        "what pressure pushed out comes back when it has fallen",
    ),
    "what was pushed out is passed for ever": Mutation(
        placing,
        "_is_passed_no_more",
        lambda board, task, now_s: False,
        "what was pushed out is not passed for ever",
    ),
    "side effects are cut short": Mutation(
        preemption, "may_be_preempted", inside_side_effects_too, "never inside a side effect"
    ),
    "no minimum run time": Mutation(
        preemption, "may_be_preempted", right_after_the_start, "a minimum run time before being preempted again"
    ),
    "the highest goes first": Mutation(
        preemption, "_lowest_newest", highest_first, "the lowest priority goes first, and of it the newest"
    ),
    "many are preempted at once": Mutation(relief, "may_preempt_another", lambda host, now_s: True, "one at a time"),
    "memory is never the run's own fault": Mutation(
        verdicts, "_died", lambda task: verdicts.Again.AGAIN, "after it ran out of memory it runs alone"
    ),
    "a child's want of memory is its own": Mutation(
        Task, "has_died", property(lambda task: task.deaths > 0), "after it ran out of memory it runs alone"
    ),
    "nobody has to be alone": Mutation(
        placing, "is_first_of_its_kind", lambda board, task: False, "a kind's first run starts alone"
    ),
    "old news is believed": Mutation(Board, "running", any_attempt, "nothing is settled while it runs"),
    "surveys keep all they want": Mutation(
        tenants, "_credits", lambda tenant, pressure, squeeze, room: tenant.wanted, "credits never above the budget"
    ),
    "LOW is passed over in silence": Mutation(
        placing, "_pass_over", lambda board, task: None, "LOW work that pressure keeps out is told so"
    ),
    "who comes later is passed over in silence": Mutation(
        PassedOver, "came", lambda passed_over, task: None, "LOW work that pressure keeps out is told so"
    ),
    "LOW is told with every reading": Mutation(
        PassedOver, "take", told_with_every_reading, "skipped once in each episode"
    ),
    "an episode never ends": Mutation(
        PassedOver, "end", lambda passed_over: None, "LOW work that pressure keeps out is told so"
    ),
    "heartbeats are never skipped": Mutation(
        heartbeats, "may_beat", lambda reading: True, "heartbeats are skipped above the first level"
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_rule_is_found(name: str, monkeypatch: pytest.MonkeyPatch):
    mutation = MUTATIONS[name]
    monkeypatch.setattr(mutation.where, mutation.name, mutation.changed)
    found: set[str] = set()
    for seed in range(_HISTORIES):
        if rule := broken_rule(draw(seed)):
            found.add(rule)
        if mutation.found_by in found:
            return
    pytest.fail(f"{_HISTORIES} histories did not notice that {name}; found: {sorted(found)}", pytrace=False)
