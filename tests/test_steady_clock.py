"""A clock that goes on evenly: set, suspended, restarted and rebooted, with invented clocks."""

import pytest

from headrace.steady_clock import ClockNote, LastingClock, SteadyClock

DAY_S = 86_400.0


class Host:
    """Two clocks and a boot. `pass_s` lets time go by on both."""

    def __init__(self):
        self.wall_s, self.up_s, self.boot = 1_800_000_000.0, 500.0, "a"

    def pass_s(self, seconds):
        self.wall_s += seconds
        self.up_s += seconds

    def clock(self, noted=None):
        return LastingClock(noted, wall=lambda: self.wall_s, elapsed=lambda: self.up_s, boot=self.boot)


@pytest.mark.parametrize("set_s", [-DAY_S, DAY_S])
def test_setting_the_wall_clock_changes_nothing_and_is_noticed_once(set_s):
    host = Host()
    clock = host.clock()
    clock.note()
    until_s = clock.now() + 60
    host.wall_s += set_s
    assert clock.now() == pytest.approx(until_s - 60)
    assert clock.set_by_s() == pytest.approx(set_s)
    clock.note()
    assert clock.set_by_s() == 0
    host.pass_s(60)
    assert clock.now() == pytest.approx(until_s)


@pytest.mark.parametrize("set_s", [-DAY_S, DAY_S])
@pytest.mark.parametrize("was_noticed", [True, False])
def test_within_one_boot_a_restart_goes_on_exactly(set_s, was_noticed):
    host = Host()
    before = host.clock()
    noted = before.note()
    until_s = before.now() + 60
    host.wall_s += set_s
    if was_noticed:
        noted = before.note()
    host.pass_s(10)
    assert host.clock(noted).now() == pytest.approx(until_s - 50)


@pytest.mark.parametrize("set_s", [-DAY_S, 0, DAY_S])
def test_after_a_reboot_the_clock_goes_on_by_the_wall_clock_and_how_far_they_were_apart(set_s):
    host = Host()
    before = host.clock()
    until_s = before.now() + 3600
    host.wall_s += set_s
    noted = before.note()
    host.pass_s(600)
    host.boot, host.up_s = "b", 3.0
    assert host.clock(noted).now() == pytest.approx(until_s - 3000)


def test_where_the_platform_knows_no_boots_every_restart_counts_as_one():
    host = Host()
    host.boot = ""
    noted = ClockNote(boot="", zero_s=-5.0, ahead_s=0.0)
    assert host.clock(noted).now() == pytest.approx(host.wall_s)


def test_one_that_is_made_elsewhere_with_its_time_agrees():
    clock = SteadyClock.from_wall()
    assert SteadyClock.since(clock.now()).now() == pytest.approx(clock.now(), abs=1)
