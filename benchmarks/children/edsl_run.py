"""Runs the workload with EDSL at its best: `edsl_run INTERVIEWS kept|unkept named|plain`. Started by EDSL's own Python.

Its test model is limited to 1,000 calls a minute, waited for in a busy loop: the limit is lifted. Its cache is a
fresh one in memory. `kept` runs it as `run()` does: each interview is committed to its object store. `unkept` switches
that store off in its runner, which its users cannot: nothing of the run is on disk then. `plain`: no text has a name in
it.

A few interviews with other agents come first, so that what loads on first use is not counted. Making the agents is.
"""

import os
import sys
import time
from functools import partialmethod
from pathlib import Path
from typing import Any

import edsl
from edsl.runner.runner import Runner

from benchmarks import workload
from benchmarks.processes import bytes_written, loop_ms, peak_resident_bytes, print_figures

_WARM_UP = 10


def main(interviews: int, how: str, texts: str) -> None:
    if how == "unkept":
        Runner.submit = partialmethod(_submit_unkept, Runner.submit)
    everyone = workload.each_agent(edsl, interviews + _WARM_UP)
    run([next(everyone) for _ in range(_WARM_UP)], texts)
    before = account()
    results = run(list(everyone), texts)
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


def run(agents: list[Any], texts: str) -> Any:
    model = workload.model(edsl)
    model.rpm, model.tpm = 10**9, 10**12
    has_names = texts == "named"
    job = workload.survey(edsl, has_names=has_names).by(edsl.AgentList(agents)).by(model)
    if has_names:  # without one, EDSL refuses a scenario that no text uses
        job = job.by(edsl.Scenario({"city": "Oslo"}))
    return job.run(
        cache=edsl.Cache(),
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


def _submit_unkept(runner: Runner, submit: Any, job: Any, **options: Any) -> Any:
    return submit(runner, job, **{**options, "stream_to_cas": False})


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
