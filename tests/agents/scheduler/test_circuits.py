"""The circuit of a kind of run: what opens it, what closes it, and whom it leaves alone."""

import pytest

from headrace.agents.scheduler.events import (
    Cancelled,
    Closing,
    Notice,
    RecordNotice,
    Refusal,
    SchedulerCommand,
    Submitted,
)
from headrace.exit_causes import ExitCause
from headrace.limits import BreakerLimits
from tests.agents.scheduler.driver import Driver, refused, settled, starts


def opened(driver: Driver, kind: str = "bad") -> Driver:
    for _ in range(3):
        driver.end(driver.submit(kind=kind, memory=10), ExitCause.FAILED)
    assert list(driver.scheduler.snapshot().open_circuits) == [kind]
    return driver


def notices(commands: list[SchedulerCommand]) -> list[Notice]:
    return [command.notice for command in commands if isinstance(command, RecordNotice)]


def wake(driver: Driver, run: int, kind: str = "bad") -> list[SchedulerCommand]:
    return driver.tell(Submitted(now_s=driver.now_s, id=run, kind=kind, memory_bytes=10, epoch=driver.epochs[run]))


def test_failures_of_a_models_endpoint_are_not_the_kinds():
    driver = Driver()
    for _ in range(5):
        failed = driver.submit(kind="asks", memory=10)
        assert settled(driver.end(failed, ExitCause.FAILED, is_endpoints=True)) == [(failed, "FAILED")]
    assert not driver.scheduler.snapshot().open_circuits
    assert driver.submit(kind="asks", memory=10) in driver.epochs


def test_a_run_that_kills_its_worker_three_times_is_one_failure():
    driver = Driver(slots=4)
    others = [driver.submit(kind="talk", memory=10) for _ in range(3)]
    deadly = driver.submit(kind="talk", memory=10)
    for _ in range(2):
        assert starts(driver.end(deadly, ExitCause.LOST)) == [deadly]
    assert settled(driver.end(deadly, ExitCause.LOST)) == [(deadly, "LOST")]
    assert driver.scheduler.snapshot().open_circuits == {}
    assert driver.submit(kind="talk", memory=10) in starts(driver.sent)
    assert [settled(driver.end(run)) for run in others] == [[(run, "DONE")] for run in others]


def test_a_worker_that_dies_with_a_run_and_its_children_is_one_failure():
    driver = Driver(slots=2)
    driver.submit(kind="talk", memory=10)
    for child in range(10, 14):
        driver.tell(Submitted(now_s=0.0, id=child, kind="talk", parent=1))
    for run in (13, 12, 11, 10, 1):
        driver.end(run, ExitCause.LOST)
    assert driver.scheduler.snapshot().open_circuits == {}


def test_a_run_that_fails_again_each_time_it_is_tried_is_one_failure():
    driver = Driver()
    run = driver.submit(kind="bad")
    driver.end(run, ExitCause.FAILED)
    for _ in range(5):
        driver.now_s += 1.0
        wake(driver, run)
        driver.end(run, ExitCause.FAILED)
    assert notices(driver.sent) == []


def test_failures_of_three_runs_open_a_circuit_though_one_of_them_failed_before_the_window():
    driver = Driver()
    run = driver.submit(kind="bad")
    driver.end(run, ExitCause.FAILED)
    driver.now_s = 100.0
    wake(driver, run)
    driver.end(run, ExitCause.FAILED)
    for _ in range(2):
        assert notices(driver.sent) == []
        driver.end(driver.submit(kind="bad"), ExitCause.FAILED)
    assert notices(driver.sent) == [Notice.CIRCUIT_OPENED]


def test_three_failures_refuse_a_kind_until_as_many_probes_have_succeeded():
    driver = opened(Driver(slots=4))
    driver.submit(kind="bad")
    (refusal,) = refused(driver.sent)
    assert (refusal.refusal, refusal.retry_at_s) == (Refusal.CIRCUIT_OPEN, 10.0)
    driver.now_s = 10.0
    probe = driver.submit(kind="bad", memory=10)
    driver.submit(kind="bad")
    assert starts(driver.sent)[-1] == probe
    assert refused(driver.sent)[-1].retry_at_s is None
    driver.end(probe)
    assert list(driver.scheduler.snapshot().open_circuits) == ["bad"]
    two = [driver.submit(kind="bad", memory=10) for _ in range(2)]
    assert starts(driver.sent)[-2:] == two
    driver.submit(kind="bad")
    assert len(refused(driver.sent)) == 3
    assert notices(driver.end(two[0])) == []
    assert notices(driver.end(two[1])) == [Notice.CIRCUIT_CLOSED]
    assert driver.scheduler.snapshot().open_circuits == {}


def test_each_probe_that_succeeds_lets_in_two_more():
    limits = BreakerLimits(failures=8)
    driver = Driver(slots=8)
    for _ in range(8):
        driver.end(driver.submit(kind="bad", memory=10, breaker=limits), ExitCause.FAILED)
    driver.now_s = 10.0
    rounds: list[int] = []
    for _ in range(3):
        before = len(refused(driver.sent))
        probes = [driver.submit(kind="bad", memory=10, breaker=limits) for _ in range(8)]
        probes = probes[: len(probes) - (len(refused(driver.sent)) - before)]
        rounds.append(len(probes))
        for probe in probes:
            driver.end(probe, ExitCause.PARKED)
    assert rounds == [1, 2, 4]


def test_a_probe_that_fails_opens_the_circuit_again_and_the_other_probes_decide_nothing_any_more():
    driver = opened(Driver(slots=4))
    driver.now_s = 10.0
    driver.end(driver.submit(kind="bad", memory=10))
    bad, good = (driver.submit(kind="bad", memory=10) for _ in range(2))
    assert notices(driver.end(bad, ExitCause.LOST)) == [Notice.CIRCUIT_OPENED]
    driver.now_s = 30.0  # twice as long as before
    probe = driver.submit(kind="bad", memory=10)
    driver.end(good)
    driver.end(bad, ExitCause.LOST)
    driver.submit(kind="bad")
    assert len(refused(driver.sent)) == 1
    driver.end(probe)
    assert driver.submit(kind="bad", memory=10) == starts(driver.sent)[-1]


def test_parking_is_a_success():
    driver = Driver(slots=4)
    for _ in range(4):  # with a parked run between them, failures never add up
        driver.end(driver.submit(kind="bad", memory=10), ExitCause.FAILED)
        driver.end(driver.submit(kind="bad", memory=10), ExitCause.FAILED)
        driver.end(driver.submit(kind="bad", memory=10), ExitCause.PARKED)
    assert notices(driver.sent) == []
    opened(driver)
    driver.now_s = 10.0
    for _ in range(3):
        driver.end(driver.submit(kind="bad", memory=10), ExitCause.PARKED)
    assert notices(driver.sent) == [Notice.CIRCUIT_OPENED, Notice.CIRCUIT_CLOSED]


def test_what_was_parked_before_the_circuit_opened_comes_back_and_starts():
    driver = Driver(slots=2)
    talk = driver.submit(kind="bad", memory=10)
    driver.end(talk, ExitCause.PARKED)
    opened(driver)
    assert starts(wake(driver, talk)) == [talk]
    assert refused(driver.sent) == []


def test_a_run_that_came_back_is_not_held_by_the_circuit_that_it_opened():
    driver = Driver(slots=3)
    runs = [driver.submit(kind="crashing", memory=10) for _ in range(3)]
    for run in runs[:2]:
        assert starts(driver.end(run, ExitCause.LOST)) == [run]
    ended = driver.end(runs[2], ExitCause.LOST)
    assert (notices(ended), starts(ended)) == ([Notice.CIRCUIT_OPENED], [runs[2]])


def test_a_child_is_not_held_by_the_circuit_of_its_kind():
    driver = opened(Driver(slots=2))
    parent = driver.submit(kind="good", memory=10)
    assert starts(driver.tell(Submitted(now_s=0.0, id=99, kind="bad", parent=parent))) == [99]


def test_runs_accepted_before_their_kind_failed_wait_for_the_probes():
    driver = Driver(slots=1)
    bad = [driver.submit(kind="bad") for _ in range(5)]
    good = driver.submit(kind="good")
    for run in bad[:3]:
        driver.end(run, ExitCause.FAILED)
    assert starts(driver.sent) == [*bad[:3], good]
    driver.end(good)
    assert driver.scheduler.next_tick_s() == 10.0
    assert starts(driver.wait(10.0)) == [bad[3]]
    driver.submit(kind="bad")
    assert refused(driver.sent)[-1].refusal is Refusal.CIRCUIT_OPEN  # those that were accepted come first
    assert starts(driver.end(bad[3])) == [bad[4]]


def test_a_probe_that_is_cancelled_lets_another_one_in():
    driver = opened(Driver(slots=2))
    driver.now_s = 10.0
    probe = driver.submit(kind="bad", memory=10)
    driver.tell(Cancelled(now_s=10.0, id=probe))
    assert notices(driver.end(probe, ExitCause.PREEMPTED)) == []
    assert driver.submit(kind="bad", memory=10) in starts(driver.sent)


def test_deaths_by_memory_open_no_circuit():
    driver = Driver(slots=1)
    for _ in range(3):
        run = driver.submit(kind="big")
        driver.end(run, ExitCause.OUT_OF_MEMORY)
        driver.end(run, ExitCause.OUT_OF_MEMORY)
    assert driver.scheduler.snapshot().open_circuits == {}


def test_a_kind_without_a_breaker_is_never_refused():
    driver = Driver()
    for _ in range(20):
        driver.end(driver.submit(kind="bad", memory=10, breaker=None), ExitCause.FAILED)
    assert (notices(driver.sent), refused(driver.sent)) == ([], [])


def test_a_kind_has_limits_of_its_own():
    own = BreakerLimits(failures=1, cool_down_s=3.0)
    driver = Driver()
    driver.end(driver.submit(kind="frail", memory=10, breaker=own), ExitCause.FAILED)
    driver.end(driver.submit(kind="usual", memory=10), ExitCause.FAILED)
    assert driver.scheduler.snapshot().open_circuits == {"frail": 3.0}
    driver.now_s = 3.0
    driver.end(driver.submit(kind="frail", memory=10, breaker=own))
    assert driver.scheduler.snapshot().open_circuits == {}


@pytest.mark.parametrize("breaker", [None, BreakerLimits(failures=5)])
def test_other_limits_than_before_begin_with_a_closed_circuit(breaker: BreakerLimits | None):
    driver = Driver(slots=1)
    bad = [driver.submit(kind="bad", memory=10) for _ in range(4)]
    for run in bad[:3]:
        driver.end(run, ExitCause.FAILED)
    assert driver.scheduler.refuses("bad", "engine", 0.0)
    assert not driver.scheduler.refuses("bad", breaker, 0.0)
    driver.submit(kind="bad", memory=10, breaker=breaker)
    assert notices(driver.sent) == [Notice.CIRCUIT_OPENED, Notice.CIRCUIT_CLOSED]
    assert starts(driver.sent)[-1] == bad[3]


def test_closing_says_nothing_about_a_kind():
    driver = opened(Driver())
    driver.now_s = 10.0
    probe = driver.submit(kind="bad", memory=10)
    driver.tell(Closing(now_s=10.0))
    assert notices(driver.end(probe, ExitCause.PREEMPTED)) == []
