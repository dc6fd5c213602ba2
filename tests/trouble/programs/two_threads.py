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
has_begun, first = threading.Event(), dict[str, Any]()


def run_first() -> None:
    first.update(outcome_of(lambda: job.run(path, concurrency=10, on_result=lambda _: has_begun.set()).close()))


thread = threading.Thread(target=run_first)
thread.start()
has_begun.wait()
second = outcome_of(lambda: job.run(path).close())
thread.join()
with Results.open(path) as results:
    tell(pid=os.getpid(), first=first, second=second, answers=[result.answer for result in results])
