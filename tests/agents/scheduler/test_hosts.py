"""Several hosts: where a run starts, which host it waits for, and what follows when hosts leave, fall silent or lie."""

import time

from headrace.agents.scheduler.events import (
    AttemptEnded,
    DropHost,
    EndRun,
    GrantPermits,
    HostJoined,
    HostLeaving,
    HostLost,
    MemoryMeasured,
    Notice,
    RecordNotice,
    RecordShortage,
    Refusal,
    SchedulerCommand,
    StartRun,
    StepJournaled,
    SurveyOpened,
    SurveyUsage,
    Tick,
)
from headrace.exit_causes import ExitCause
from headrace.limits import MemoryLimits
from headrace.priority import Priority
from tests.agents.scheduler.driver import Driver, preempts, refused, settled, starts


def join(driver: Driver, name: str, budget: int = 1000, slots: int = 2, **more: float) -> list[SchedulerCommand]:
    limits = MemoryLimits(budget_bytes=budget)
    commands = driver.tell(HostJoined(now_s=driver.now_s, host=name, slots=slots, limits=limits, **more))
    return commands + read(driver, name)


def read(driver: Driver, name: str, used: int = 0) -> list[SchedulerCommand]:
    return driver.tell(MemoryMeasured(now_s=driver.now_s, host=name, used_bytes=used))


def hosts_of(commands: list[SchedulerCommand]) -> dict[int, str]:
    return {command.id: command.host for command in commands if isinstance(command, StartRun)}


def test_a_run_starts_where_most_memory_is_free():
    driver = Driver(slots=4)
    join(driver, "large", budget=4000, slots=4)
    first, second = driver.submit(memory=3500), driver.submit(memory=300)
    assert hosts_of(driver.sent) == {first: "large", second: "here"}


def test_a_run_too_large_for_one_host_goes_to_a_larger_one():
    driver = Driver()
    large = driver.submit(memory=900, kind="a")
    larger = driver.submit(memory=2500)
    assert refused(driver.sent)[0].refusal is Refusal.BUDGET_TOO_SMALL
    join(driver, "large", budget=4000)
    larger = driver.submit(memory=2500)
    assert hosts_of(driver.sent) == {large: "here", larger: "large"}


def test_who_waits_for_one_host_keeps_others_from_that_host_only():
    driver = Driver(slots=4)
    join(driver, "large", budget=2000, slots=4)
    filling = driver.submit(memory=1500)
    waits = driver.submit(memory=1800)  # only the large host could hold it, once the other has ended
    small = [driver.submit(memory=300) for _ in range(2)]
    assert hosts_of(driver.sent) == {filling: "large", small[0]: "here", small[1]: "here"}
    for run in small:
        driver.end(run)
    late = [driver.submit(memory=100) for _ in range(6)]
    assert all(hosts_of(driver.sent).get(run) in ("here", None) for run in late)
    assert hosts_of(driver.end(filling))[waits] == "large"


def test_a_higher_run_has_lower_work_make_room_on_the_host_where_that_helps():
    driver = Driver(slots=1)
    join(driver, "there", slots=1)
    high = driver.submit(Priority.HIGH)
    low = driver.submit(Priority.LOW)
    assert set(hosts_of(driver.sent).values()) == {"here", "there"}
    urgent = driver.submit(Priority.HIGH)
    assert preempts(driver.sent) == [low]
    driver.end(low, ExitCause.PREEMPTED)
    read(driver, hosts_of(driver.sent)[low])
    assert starts(driver.sent) == [high, low, urgent]


def test_a_host_that_is_leaving_keeps_its_runs_and_takes_no_others():
    driver = Driver(slots=4)
    first = driver.submit()
    driver.tell(HostLeaving(now_s=0.0, host="here"))
    second = driver.submit()
    assert starts(driver.sent) == [first]
    child = driver.submit(parent=first)  # its parent may wait for it
    assert hosts_of(driver.sent)[child] == "here"
    join(driver, "there")
    assert hosts_of(driver.sent)[second] == "there"
    assert settled(driver.end(child)) == [(child, "DONE")]
    assert settled(driver.end(first)) == [(first, "DONE")]
    assert driver.tell(HostLost(now_s=0.0, host="here")) == []


def test_surveys_of_a_host_that_is_leaving_pause():
    driver = Driver()
    driver.tell(SurveyOpened(now_s=0.0, survey="s", host="here", wanted=8, permit_bytes=1))
    driver.wait(3.0, used=0)
    driver.tell(HostLeaving(now_s=driver.now_s, host="here"))
    grants = [command.permits for command in driver.read(0) if isinstance(command, GrantPermits)]
    assert grants == [0]


def test_runs_of_a_lost_host_go_on_elsewhere_and_its_late_news_is_refused():
    driver = Driver()
    run = driver.submit()
    join(driver, "there")
    lost = driver.tell(HostLost(now_s=1.0, host="here"))
    assert hosts_of(lost) == {run: "there"}
    for late in (
        StepJournaled(now_s=1.0, id=run, epoch=1),
        AttemptEnded(now_s=1.0, id=run, epoch=1, cause=ExitCause.DONE),
        MemoryMeasured(now_s=1.0, host="here", used_bytes=990),
    ):
        assert driver.tell(late) == []
    assert settled(driver.end(run)) == [(run, "DONE")]


def test_a_lost_host_never_counts_against_its_runs():
    driver = Driver()
    run = driver.submit()
    for number in range(10):
        driver.tell(HostLost(now_s=0.0, host="here" if not number else f"h{number - 1}"))
        join(driver, f"h{number}")
    assert starts(driver.sent) == [run] * 11
    assert settled(driver.sent) == []


def test_a_host_that_falls_silent_is_dropped_and_its_runs_go_on_elsewhere():
    driver = Driver()
    driver.tell(HostLeaving(now_s=0.0, host="here"))
    join(driver, "silent", silent_after_s=10.0)
    run = driver.submit()
    join(driver, "there", silent_after_s=10.0)
    assert driver.scheduler.next_tick_s() == 10.0
    driver.now_s = 9.0
    read(driver, "there")
    assert driver.tell(Tick(now_s=9.0)) == []
    dropped = driver.tell(Tick(now_s=10.0))
    assert [command for command in dropped if isinstance(command, DropHost)] == [DropHost(host="silent")]
    assert hosts_of(dropped) == {run: "there"}
    assert driver.scheduler.next_tick_s() == 19.0


def test_readings_keep_a_host_from_being_silent_and_impossible_ones_do_not():
    driver = Driver()
    join(driver, "there", silent_after_s=4.0)
    for second in range(1, 20):
        driver.now_s = float(second)
        read(driver, "there")
        assert driver.tell(Tick(now_s=driver.now_s)) == []
    told: list[SchedulerCommand] = []
    for second in range(20, 24):
        driver.now_s = float(second)
        told += read(driver, "there", used=-1) + driver.tell(Tick(now_s=driver.now_s))
    notices = [command for command in told if isinstance(command, RecordNotice)]
    assert [(notice.notice, notice.subject) for notice in notices] == [(Notice.IMPOSSIBLE_READING, "there")]
    assert told[-1] == DropHost(host="there")


def test_an_impossible_reading_changes_no_level():
    driver = Driver()
    run = driver.submit()
    for used, budget in ((-5, None), (5000, 0), (5000, -1)):
        lie = MemoryMeasured(now_s=0.0, host="here", used_bytes=used, budget_bytes=budget)
        assert not any(isinstance(command, StartRun | EndRun) for command in driver.tell(lie))
    assert settled(driver.end(run)) == [(run, "DONE")]


def test_a_host_that_joins_again_has_lost_its_runs():
    driver = Driver()
    run = driver.submit()
    driver.tell(HostJoined(now_s=1.0, host="here", slots=1, limits=MemoryLimits(budget_bytes=1000)))
    assert starts(driver.sent) == [run, run]
    assert driver.epochs[run] == 2


def test_a_host_without_slots_holds_surveys_and_no_run_whatever_room_it_has():
    driver = Driver()
    driver.tell(HostJoined(now_s=0.0, host="there", slots=0, limits=MemoryLimits(budget_bytes=10_000)))
    driver.tell(MemoryMeasured(now_s=0.0, host="there", used_bytes=0))
    driver.tell(SurveyOpened(now_s=0.0, survey="survey", host="there", wanted=10, permit_bytes=1))
    for number in range(10):  # permits come step by step
        driver.tell(SurveyUsage(now_s=number, survey="survey", in_use=10, permit_bytes=1))
        driver.tell(MemoryMeasured(now_s=number + 0.1, host="there", used_bytes=0))
    assert [command.permits for command in driver.sent if isinstance(command, GrantPermits)][-1] == 10
    driver.submit(memory=5000)  # more than the host with slots has
    assert starts(driver.sent) == []
    assert [command.refusal for command in refused(driver.sent)] == [Refusal.BUDGET_TOO_SMALL]


def test_runs_that_wait_for_a_host_change_no_zero_of_one_without_slots():
    driver = Driver()
    driver.tell(HostLost(now_s=0.0, host="here"))
    driver.tell(HostJoined(now_s=0.0, host="there", slots=0, limits=MemoryLimits(budget_bytes=10_000)))
    driver.submit()
    for second in range(1, 10):
        driver.tell(MemoryMeasured(now_s=float(second), host="there", used_bytes=9_000))
    assert driver.scheduler.zero_bytes("there") == 0
    assert starts(driver.sent) == []


def test_what_only_a_host_that_left_could_hold_waits_for_it_and_is_given_up_after_long():
    driver = Driver()
    join(driver, "large", budget=4000)
    driver.tell(HostLost(now_s=0.0, host="large"))
    waits, gives_up = driver.submit(memory=2000), driver.submit(memory=3000)
    shortages = [command.id for command in driver.sent if isinstance(command, RecordShortage)]
    assert shortages == [waits, gives_up]
    small = driver.submit(memory=100)
    assert starts(driver.sent) == [small]  # it passes them
    join(driver, "middle", budget=2500)
    assert hosts_of(driver.sent)[waits] == "middle"
    driver.now_s = MemoryLimits(budget_bytes=1).gives_up_after_s + 1.0
    assert settled(driver.tell(Tick(now_s=driver.now_s))) == [(gives_up, "BUDGET_TOO_SMALL")]


def test_without_any_host_runs_wait():
    driver = Driver()
    driver.tell(HostLost(now_s=0.0, host="here"))
    run = driver.submit(memory=900)
    driver.now_s = 10_000.0
    driver.tell(Tick(now_s=driver.now_s))
    assert starts(driver.sent) == []
    assert settled(driver.sent) == []
    join(driver, "there")
    assert starts(driver.sent) == [run]


def cost_s(hosts: int) -> float:
    """CPU seconds of some hundred decisions with all slots of so many hosts in use, and twice as many runs waiting."""
    driver = Driver(slots=2, queue_depth=10_000)
    for number in range(hosts):
        join(driver, f"host{number}")
    for _ in range(6 * hosts + 100):
        driver.submit()
    running = list(driver.epochs)[: 2 * hosts]
    began_s = time.thread_time()
    for number in range(300):
        driver.now_s += 0.001
        driver.submit()
        read(driver, f"host{number % hosts}", used=200)
        driver.tell(Tick(now_s=driver.now_s))
        running += starts(driver.end(running.pop(0)))
    return time.thread_time() - began_s


def test_a_decision_costs_hardly_more_with_five_hundred_hosts():
    few, many = (min(cost_s(hosts) for _ in range(3)) for hosts in (5, 500))
    assert many < 5 * few  # a look at each host would cost fifty times as much


def test_every_run_ends_on_hundreds_of_hosts_that_come_and_go():
    """More hosts than any decision looks at: nothing is forgotten on those that are left out."""
    driver = Driver(slots=2, queue_depth=5_000)
    for number in range(200):
        join(driver, f"host{number}", budget=500 + number)
    runs = {driver.submit(Priority(number % 4), memory=50 + number % 600) for number in range(2_000)}
    ended: set[int] = set()
    for number in range(6_000):
        if runs == ended:
            break
        driver.now_s += 0.01
        if number % 20 == 0:
            name = f"host{number // 20 % 200}"
            driver.tell(HostLost(now_s=driver.now_s, host=name))
            join(driver, name, budget=500 + number // 20 % 200)
        for run in preempts(driver.sent):
            if run not in ended:
                driver.end(run, ExitCause.PREEMPTED)
        driver.sent.clear()
        read(driver, f"host{number % 200}")
        for each in driver.scheduler.snapshot().running[:20]:
            ended |= {run for run, _ in settled(driver.end(each.id))}
    assert runs == ended
