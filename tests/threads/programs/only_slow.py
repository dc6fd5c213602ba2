"""A thread that works while its stack is asked for again and again: ends when it was told twenty times."""

import json
import sys
import threading
import time
from pathlib import Path

from headrace.threads.traceback_timer import TracebackTimer


def deep(depth: int) -> int:
    return depth and deep(depth - 1)


def work(made: list[TracebackTimer | None], is_over: threading.Event) -> None:
    made.append(TracebackTimer.take(Path(sys.argv[1])))
    while not is_over.is_set():
        deep(50)
        json.dumps([{"deep": deep(5)}])


made: list[TracebackTimer | None] = []
is_over = threading.Event()
worker = threading.Thread(target=work, args=(made, is_over))
worker.start()
while not made:
    time.sleep(0.01)
timer, told = made[0], 0
assert timer is not None
until = time.monotonic() + 40
while told < 20 and time.monotonic() < until:
    timer.arm(0.0002)
    time.sleep(0.002)
    told += "in work\n" in (timer.stack() or "")
is_over.set()
worker.join()
timer.close()
print(told)
