"""Forks in the middle of a run, HOW the fork ends (exits, raises), and goes on: PATH HOW."""

import os
import sys
import warnings
from pathlib import Path

from headrace import Results
from headrace.results.result import Result
from tests.trouble.programs.telling import tell
from tests.trouble.programs.town import town_job

warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on Python warns of forks beside threads
path, how = Path(sys.argv[1]), sys.argv[2]
statuses: list[int] = []


def fork_once(_: Result) -> None:
    if statuses:
        return
    if (pid := os.fork()) == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # its traceback is as it should be
        if how == "exits":
            sys.exit(7)
        raise RuntimeError("in the fork")
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


town_job(20, 0.01).run(path, concurrency=5, on_result=fork_once).close()
with Results.open(path) as results:
    tell(statuses=statuses, answers=[result.answer for result in results])
