"""Runs the workload in steps in one process: `growing_run PATH EARLY_FROM EARLY_TO LATE_FROM LATE_TO`.

Each step is a `run` with a `limit=` on the same file, so nothing is called or sampled while interviews run. What a
step costs beyond its interviews, opening the file and sealing it at that size, is measured by running the step before
it once more, with nothing left to do, and taken off.
"""

import sys
import time
from typing import Any

import headrace
from benchmarks import workload
from benchmarks.processes import bytes_written, loop_ms, print_figures


def main(path: str, early_from: int, early_to: int, late_from: int, late_to: int) -> None:
    job = workload.job(headrace, headrace.AgentList(workload.each_agent(headrace, late_to)))
    job.run(path, limit=early_from)
    early = _step(job, path, early_from, early_to)
    job.run(path, limit=late_from)
    late = _step(job, path, late_from, late_to)
    print_figures(early=early, late=late)


def _step(job: Any, path: str, start: int, stop: int) -> dict[str, float]:
    before = _account()
    job.run(path, limit=start)
    between = _account()
    job.run(path, limit=stop)
    after = _account()
    cpu_s, written, handed = (
        (end - middle) - (middle - begin) for begin, middle, end in zip(before, between, after, strict=True)
    )
    count = stop - start
    return {
        "cpu_us": cpu_s / count * 1e6,
        "written_bytes": written / count,
        "handed_bytes": handed / count,
        "loop_ms": loop_ms(),
    }


def _account() -> tuple[float, int, int]:
    return (time.process_time(), *bytes_written())


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
