"""Runs the workload with EDSL: `edsl_run INTERVIEWS`. Started by the Python of EDSL's own environment.

A few interviews with other agents come first, so that what loads on first use is not counted. Making the agents is.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import edsl

from benchmarks import workload
from benchmarks.processes import bytes_written, loop_ms, peak_resident_bytes, print_figures

_WARM_UP = 10


def main(interviews: int) -> None:
    everyone = workload.each_agent(edsl, interviews + _WARM_UP)
    run([next(everyone) for _ in range(_WARM_UP)])
    before = account()
    results = run(list(everyone))
    cpu_s, grown, written, left = (end - begin for begin, end in zip(before, account(), strict=True))
    assert len(results) == interviews
    assert results[interviews - 1]["answer"]["rating"] == int(workload.ANSWERS["rating"])
    print_figures(
        cpu_us=cpu_s / interviews * 1e6,
        resident_kb=grown / interviews / 1e3,
        written_bytes=written / interviews,
        left_bytes=left / interviews,
        loop_ms=loop_ms(),
    )


def run(agents: list[Any]) -> Any:
    return workload.job(edsl, edsl.AgentList(agents)).run(
        disable_remote_inference=True,
        disable_remote_cache=True,
        progress_bar=False,
        print_exceptions=False,
        stop_on_exception=True,
    )


def account() -> tuple[float, int, int, int]:
    """CPU, peak of resident memory, bytes written, and bytes of what lies in EDSL's home."""
    files = (file for file in Path(os.environ["HOME"]).rglob("*") if file.is_file())
    return time.process_time(), peak_resident_bytes(), bytes_written()[0], sum(file.stat().st_size for file in files)


if __name__ == "__main__":
    main(int(sys.argv[1]))
