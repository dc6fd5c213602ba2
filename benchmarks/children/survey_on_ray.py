"""Runs a survey on a Ray cluster, in two workers, or inline.

`survey_on_ray PATH INTERVIEWS IN_FLIGHT URL WHERE CLUSTER`.

URL is `-` for canned answers. WHERE is the address of a cluster whose processes descend from CLUSTER, or `workers` or
`inline`. Tells the CPU of this process, of our actors, of wardens and workers, and of Ray's own processes; the most
that this process had resident; and the most that was in Ray's object store.
"""

import sys
import threading
from pathlib import Path
from typing import Any, Self

import headrace
from benchmarks import workload
from benchmarks.cluster_cpu import CpuWatch
from benchmarks.processes import print_figures

_LOOK_EVERY_S = 0.5


class StoreWatch:
    """The most that was in the object stores of all nodes together; 0 without a cluster."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(_LOOK_EVERY_S):
            ray: Any = sys.modules.get("ray")
            if getattr(ray, "is_initialized", bool)():  # not while it is being imported
                name = "object_store_memory"
                held = ray.cluster_resources().get(name, 0) - ray.available_resources().get(name, 0)
                self.peak_bytes = max(self.peak_bytes, int(held))


def job_for(interviews: int, url: str) -> headrace.Job:
    agents = headrace.AgentList(workload.each_agent(headrace, interviews))
    if url == "-":
        return workload.job(headrace, agents)
    asked = headrace.Survey([headrace.QuestionFreeText(question_name="q", question_text="{{ agent.name }}, tell me.")])
    return asked.by(agents).by(headrace.Model("m", base_url=url, service_name="openai_compatible"))


def main(path: str, interviews: int, in_flight: int, url: str, where: str, cluster: int) -> None:
    job = job_for(interviews, url)
    options: dict[str, Any] = {"inline": {}, "workers": {"workers": 2}}.get(where, {"executor": headrace.Ray(where)})
    with CpuWatch(*([cluster] if cluster else [])) as cpu, StoreWatch() as store:
        results = job.run(path, concurrency=in_flight, cache=False, **options)
    stats = results.stats()
    assert (stats.interviews, stats.failed) == (interviews, 0)
    print_figures(
        seconds=stats.seconds,
        resident_bytes=_peak_bytes(),
        store_bytes=store.peak_bytes,
        **cpu.figures(),
    )


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5], int(sys.argv[6]))
