import time

from headrace.agents.scheduler.events import Cancelled, Tick
from headrace.exit_causes import ExitCause
from headrace.priority import Priority
from tests.agents.scheduler.driver import Driver, starts


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
