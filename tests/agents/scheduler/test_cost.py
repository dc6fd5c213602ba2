import time

from headrace.agents.scheduler.events import Cancelled, Tick
from headrace.exit_causes import ExitCause
from headrace.priority import Priority
from tests.agents.scheduler.driver import Driver, preempts, starts


def cost_s(waiting: int) -> float:
    """CPU seconds of a few hundred decisions of each sort, with so many waiting."""
    driver = Driver(slots=4, queue_depth=waiting + 1000)
    levels = (Priority.LOW, Priority.NORMAL, Priority.HIGH)
    for number in range(waiting):
        driver.submit(levels[number % 3])
    running = list(driver.epochs)
    began_s = time.thread_time()
    for number in range(200):
        driver.now_s += 0.01
        run = driver.submit(levels[number % 3])
        driver.read(400)
        driver.tell(Tick(now_s=driver.now_s))
        driver.step(running[0])
        running += starts(driver.end(running.pop(0), ExitCause.DONE))
        driver.tell(Cancelled(now_s=driver.now_s, id=run))
    return time.thread_time() - began_s


def test_a_decision_costs_hardly_more_with_ten_thousand_waiting():
    few, many = (min(cost_s(waiting) for _ in range(3)) for waiting in (30, 10_000))
    assert many < 4 * few  # a scan of all that wait would cost a hundred times as much


def contended_s(slots: int) -> float:
    """CPU seconds of a few hundred ticks with all slots in use, a higher run that waits, and one that makes room."""
    driver = Driver(slots=slots, least_run_bytes=1)
    for _ in range(slots):
        driver.submit(Priority.LOW, memory=1)
    driver.submit(Priority.HIGH, memory=1)
    assert len(driver.epochs) == slots
    assert len(preempts(driver.sent)) == 1
    began_s = time.thread_time()
    for _ in range(300):
        driver.tell(Tick(now_s=driver.now_s))
    return time.thread_time() - began_s


def test_a_decision_costs_hardly_more_with_many_slots_in_use():
    few, many = (min(contended_s(slots) for _ in range(5)) for slots in (2, 400))
    assert many < 4 * few  # a look at each slot would cost thirty times as much
