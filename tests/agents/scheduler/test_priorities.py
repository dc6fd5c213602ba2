"""A run that is submitted again with a higher priority."""

import pytest

from headrace.agents.scheduler.events import ParkRun, PriorityRaised, SchedulerCommand, SetPriority, Submitted
from headrace.exit_causes import ExitCause
from headrace.priority import Priority
from tests.agents.scheduler.driver import Driver, preempts, refused, starts


def raise_to(driver: Driver, run: int, priority: Priority) -> list[SchedulerCommand]:
    return driver.tell(PriorityRaised(now_s=driver.now_s, id=run, priority=priority))


def raised(commands: list[SchedulerCommand]) -> dict[int, Priority]:
    return {command.id: command.priority for command in commands if isinstance(command, SetPriority)}


def test_one_that_waits_moves_in_the_queue():
    driver = Driver(slots=1)
    first, high, low = driver.submit(), driver.submit(), driver.submit(Priority.LOW)
    driver.now_s = 1.0
    assert raised(raise_to(driver, low, Priority.CRITICAL)) == {low: Priority.CRITICAL}
    assert driver.scheduler.snapshot().waiting == {
        Priority.LOW: 0,
        Priority.NORMAL: 0,
        Priority.HIGH: 1,
        Priority.CRITICAL: 1,
    }
    assert starts(driver.end(first)) == [low]
    assert starts(driver.end(low)) == [high]


@pytest.mark.parametrize("priority", [Priority.LOW, Priority.NORMAL])
def test_a_priority_is_never_lowered(priority: Priority):
    driver = Driver(slots=1)
    driver.submit()
    waiting = driver.submit(Priority.NORMAL)
    assert raise_to(driver, waiting, priority) == []
    assert raise_to(driver, 99, Priority.CRITICAL) == []
    assert driver.scheduler.snapshot().waiting[Priority.NORMAL] == 1


def test_one_that_runs_keeps_its_slot_and_others_are_preempted_before_it():
    driver = Driver(slots=2)
    runs = [driver.submit(Priority.LOW) for _ in range(2)]
    for run in runs:
        driver.step(run)
    assert raised(raise_to(driver, runs[1], Priority.HIGH)) == {runs[1]: Priority.HIGH}
    driver.submit(Priority.CRITICAL)
    assert preempts(driver.sent) == [runs[0]]  # the newer one would have gone first


def test_one_that_becomes_critical_makes_room_for_itself():
    driver = Driver(slots=1)
    low, waiting = driver.submit(Priority.LOW), driver.submit(Priority.LOW)
    driver.step(low)
    assert preempts(raise_to(driver, waiting, Priority.CRITICAL)) == [low]


def test_children_are_raised_with_their_parent_wherever_they_are():
    driver = Driver(slots=2)
    parent = driver.submit(Priority.LOW)
    child, isolated, grandchild = 10, 11, 12
    driver.tell(Submitted(now_s=0.0, id=child, kind="known", memory_bytes=100, parent=parent))
    driver.tell(Submitted(now_s=0.0, id=isolated, kind="known", memory_bytes=100, parent=child, is_isolated=True))
    driver.tell(Submitted(now_s=0.0, id=grandchild, kind="known", memory_bytes=100, parent=isolated))
    high = Priority.HIGH
    assert raised(raise_to(driver, parent, high)) == dict.fromkeys((parent, child, isolated, grandchild), high)
    assert {run.priority for run in driver.scheduler.snapshot().running} == {high}


def test_a_child_that_waits_for_its_parent_is_raised_with_it():
    driver = Driver(slots=1)
    parent, child = driver.submit(Priority.LOW), 10
    driver.tell(Submitted(now_s=0.0, id=child, kind="known", parent=parent))
    critical = driver.submit(Priority.CRITICAL)
    driver.end(parent, ExitCause.PREEMPTED)
    assert starts(driver.end(child, ExitCause.PREEMPTED)) == [critical]
    assert raised(raise_to(driver, parent, Priority.NORMAL)) == {parent: Priority.NORMAL, child: Priority.NORMAL}


def test_one_for_which_the_higher_queue_has_no_room_waits_on_disk():
    driver = Driver(slots=1, queue_depth=1)
    driver.submit()
    _, low = driver.submit(), driver.submit(Priority.LOW)
    commands = raise_to(driver, low, Priority.HIGH)
    assert raised(commands) == {low: Priority.HIGH}
    assert [command.id for command in commands if isinstance(command, ParkRun)] == [low]
    driver.submit(Priority.LOW)
    assert refused(driver.sent) == []
    shown = driver.scheduler.snapshot().waiting
    assert (shown[Priority.HIGH], shown[Priority.LOW]) == (1, 1)
