"""A run that is to be killed: `killed_run PATH CALLS ATTEMPT INTERVIEWS WINDOW`. Each answer adds a line to CALLS.

A line is one write at the end of a file opened to append, so a kill leaves whole lines of the calls it did not stop.
"""

import os
import sys
from typing import Any

import headrace
from benchmarks import workload
from benchmarks.processes import print_figures

_LATENCY_S = 0.01


def answer(request: Any) -> str:
    number = request.agent["agent_name"].rpartition(" ")[2]
    os.write(_calls, f"{_attempt} {number} {request.question_name}\n".encode())
    return workload.ANSWERS[request.question_name]


def main(path: str, interviews: int, window: int) -> None:
    model = headrace.Model("test", canned_response=answer, latency_s=_LATENCY_S)
    agents = headrace.AgentList(workload.each_agent(headrace, interviews))
    job = workload.survey(headrace).by(agents).by(headrace.Scenario({"city": "Oslo"})).by(model)
    results = job.run(path, concurrency=window)
    assert len(results) == interviews
    assert results.stats().failed == 0
    print_figures()


if __name__ == "__main__":
    _attempt = sys.argv[3]
    _calls = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    main(sys.argv[1], int(sys.argv[4]), int(sys.argv[5]))
