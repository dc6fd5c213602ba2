from headrace.agents.scheduler.events import (
    HeartbeatAdded,
    HeartbeatEnded,
    HeartbeatRemoved,
    KillHeartbeat,
    SchedulerCommand,
    SkipHeartbeat,
    StartHeartbeat,
    StopReason,
)
from tests.agents.scheduler.driver import Driver


def add(driver: Driver, name: str = "ping", every_s: float = 30.0, jitter: float = 0.0, limit_s: float = 10.0) -> list:
    added = HeartbeatAdded(now_s=driver.now_s, name=name, host="here", every_s=every_s, limit_s=limit_s, jitter=jitter)
    return driver.tell(added)


def end(driver: Driver, name: str = "ping", epoch: int = 1) -> list[SchedulerCommand]:
    return driver.tell(HeartbeatEnded(now_s=driver.now_s, name=name, epoch=epoch))


def beats(commands: list[SchedulerCommand]) -> list[tuple[str, int]]:
    return [(command.name, command.epoch) for command in commands if isinstance(command, StartHeartbeat)]


def test_it_beats_in_its_rhythm_without_taking_a_slot():
    driver = Driver(slots=1)
    driver.submit()
    assert beats(add(driver)) == [("ping", 1)]
    end(driver)
    assert driver.scheduler.next_tick_s() == 10.0  # the time limit of a beat that has ended does no harm
    assert beats(driver.wait(29.0)) == []
    assert beats(driver.wait(1.0)) == [("ping", 2)]


def test_jitter_spreads_a_hundred_over_the_period():
    driver = Driver(heartbeats_at_once=100)
    for number in range(100):
        add(driver, f"b{number}", jitter=number / 100)
    per_tick = [len(beats(driver.wait(0.5))) for _ in range(58)]
    assert max(per_tick) <= 2
    assert sum(per_tick) >= 95


def test_never_two_of_one_name_and_missed_beats_become_one():
    driver = Driver()
    add(driver, limit_s=1000.0)
    assert beats(driver.wait(200.0)) == []
    assert beats(end(driver)) == [("ping", 2)]
    end(driver, epoch=2)
    assert beats(driver.wait(8.0)) == []


def test_pressure_skips_it_counts_the_skips_and_lets_it_beat_when_it_has_fallen():
    driver = Driver()
    driver.read(710)
    sent = add(driver) + driver.wait(90.0, used=710)
    skips = [command for command in sent if isinstance(command, SkipHeartbeat)]
    assert [skip.skips for skip in skips] == [1, 2, 3, 4]
    assert skips[0].why is StopReason.PRESSURE
    assert skips[0].reading is not None
    assert beats(driver.wait(40.0, used=100)) == [("ping", 1)]


def test_one_that_takes_too_long_is_killed_once():
    driver = Driver()
    add(driver, limit_s=10.0)
    killed = [command for command in driver.wait(100.0) if isinstance(command, KillHeartbeat)]
    assert killed == [KillHeartbeat(name="ping", epoch=1)]


def test_the_lane_is_narrow_and_nobody_is_forgotten():
    driver = Driver(heartbeats_at_once=1)
    add(driver, "a", limit_s=1000.0)
    assert beats(add(driver, "b")) == []
    assert beats(end(driver, "a")) == [("b", 1)]


def test_one_that_the_others_leave_no_time_is_skipped_and_says_so():
    driver = Driver(heartbeats_at_once=1)
    add(driver, "long", limit_s=1000.0)
    sent = add(driver, "short") + driver.wait(90.0)
    skips = [command for command in sent if isinstance(command, SkipHeartbeat) and command.name == "short"]
    assert [(skip.skips, skip.why) for skip in skips] == [
        (1, StopReason.LANE_FULL),
        (2, StopReason.LANE_FULL),
        (3, StopReason.LANE_FULL),
    ]
    assert beats(end(driver, "long")) == [("short", 1)]


def test_one_that_does_not_stop_when_told_to_keeps_no_other_from_beating():
    driver = Driver(heartbeats_at_once=1)
    add(driver, "stuck", limit_s=10.0)
    add(driver, "well")
    assert beats(driver.wait(11.0)) == [("well", 1)]
    end(driver, "well")
    assert beats(driver.wait(60.0)) == [("well", 2)]
    end(driver, "stuck")
    assert beats(add(driver, "third", limit_s=10.0)) == []  # the lane is as narrow as it was


def test_a_removed_one_beats_no_more_and_one_of_its_name_waits_for_its_last_beat():
    driver = Driver()
    add(driver)
    driver.tell(HeartbeatRemoved(now_s=0.0, name="ping"))
    assert beats(add(driver)) == []
    assert beats(end(driver)) == [("ping", 2)]
    end(driver, epoch=2)
    driver.tell(HeartbeatRemoved(now_s=0.0, name="ping"))
    assert beats(driver.wait(100.0)) == []
