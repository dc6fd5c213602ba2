"""Runs the workload from nothing to its end: `whole_run PATH INTERVIEWS`. Everything has its default."""

import sys

import headrace
from benchmarks import workload
from benchmarks.processes import bytes_written, loop_ms, print_figures


def main(path: str, interviews: int) -> None:
    agents = headrace.AgentList(workload.each_agent(headrace, interviews))
    results = workload.job(headrace, agents).run(path)
    assert len(results) == interviews
    assert results.stats().failed == 0
    written, handed = bytes_written()
    print_figures(loop_ms=loop_ms(), written_bytes=written, handed_bytes=handed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
