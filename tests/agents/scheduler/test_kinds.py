"""What runs of a kind need is learned from those before."""

from tests.agents.scheduler.driver import Driver, starts


def test_a_kinds_first_run_starts_alone_and_later_ones_reserve_what_was_seen():
    driver = Driver(slots=3)
    first, second, third = (driver.submit(kind="new", memory=None) for _ in range(3))
    assert starts(driver.sent) == [first]
    driver.end(first, peak=150)
    assert starts(driver.sent) == [first, second, third]
    shown = driver.scheduler.snapshot().running
    assert [run.reserved_bytes for run in shown] == [150, 150]


def test_others_join_a_kinds_first_run_once_it_has_shown_what_it_needs():
    driver = Driver(slots=2)
    first, second = (driver.submit(kind="new", memory=None) for _ in range(2))
    driver.wait(9.0, used=150)
    assert starts(driver.sent) == [first]
    driver.wait(1.0, used=150)
    assert starts(driver.sent) == [first, second]


def test_runs_that_nobody_can_tell_apart_show_what_they_need_on_average():
    driver = Driver(slots=3)
    first, second, third = (driver.submit(kind="new", memory=None) for _ in range(3))
    driver.end(first, peak=100)
    driver.read(150)  # no more than they were promised
    driver.end(second)
    fourth = driver.submit(kind="new", memory=None)
    driver.read(500)
    driver.read(300)
    driver.end(third)
    driver.submit(kind="new", memory=None)
    shown = {run.id: run.reserved_bytes for run in driver.scheduler.snapshot().running}
    assert shown == {fourth: 100, fourth + 1: 250}


def test_a_kinds_first_run_waits_to_be_alone_for_so_long_and_then_starts_beside_others():
    driver = Driver(slots=3)
    long = driver.submit()
    new, behind = driver.submit(kind="new", memory=None), driver.submit()
    driver.wait(9.0, used=100)
    assert starts(driver.sent) == [long]
    driver.wait(1.0, used=100)
    assert starts(driver.sent) == [long, new, behind]
    assert {run.id: run.reserved_bytes for run in driver.scheduler.snapshot().running}[new] == 400


def test_runs_of_a_kind_that_take_hours_do_not_keep_others_of_it_waiting():
    driver = Driver(slots=4)
    runs = [driver.submit(kind="new", memory=None) for _ in range(4)]
    driver.wait(10.0, used=50)
    assert starts(driver.sent) == runs[:3]
    driver.wait(10.0, used=150)
    assert starts(driver.sent) == runs


def test_of_a_kind_no_more_than_twice_as_many_begin_at_once_as_have_ended():
    driver = Driver(slots=5, queue_depth=10)
    runs = [driver.submit(kind="new", memory=None) for _ in range(8)]
    assert starts(driver.sent) == runs[:1]
    assert starts(driver.end(runs[0], peak=10)) == runs[1:3]
    assert starts(driver.end(runs[1])) == runs[3:6]
    assert starts(driver.end(runs[2], peak=10)) == runs[6:]


def test_what_was_only_seen_gets_no_further_than_the_level_that_preempts_and_what_is_declared_does():
    driver = Driver(slots=4)
    driver.end(driver.submit(kind="new", memory=None), peak=300)
    driver.end(driver.submit(kind="new", memory=None), peak=300)
    seen = [driver.submit(kind="new", memory=None) for _ in range(3)]
    assert starts(driver.sent)[2:] == seen[:2]
    driver = Driver(slots=4)
    declared = [driver.submit(memory=300) for _ in range(3)]
    assert starts(driver.sent) == declared
