"""Runs one job into one file from two threads of a process: PATH."""

import os
import sys
import threading
from pathlib import Path
from typing import Any

from headrace import Results
from tests.trouble.programs.telling import outcome_of, tell
from tests.trouble.programs.town import town_job

path, job = Path(sys.argv[1]), town_job(20, 0.02)
has_begun, second_has_ended, first = threading.Event(), threading.Event(), dict[str, Any]()


def run_first() -> None:
    first.update(outcome_of(lambda: job.run(path, concurrency=10, on_result=wait_for_second).close()))


def wait_for_second(_: object) -> None:
    has_begun.set()
    second_has_ended.wait(60)


thread = threading.Thread(target=run_first)
thread.start()
has_begun.wait()
second = outcome_of(lambda: job.run(path).close())
second_has_ended.set()
thread.join()
with Results.open(path) as results:
    tell(pid=os.getpid(), first=first, second=second, answers=[result.answer for result in results])
