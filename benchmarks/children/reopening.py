"""Opens a run file whose interviews are all finished, and runs it: `reopening PATH INTERVIEWS`."""

import sys
import time

from benchmarks.processes import loop_ms, print_figures
from headrace import Job


def main(path: str, interviews: int) -> None:
    began_s, cpu_before_s = time.perf_counter(), time.process_time()
    results = Job.open(path).run(path)
    found = len(results)
    wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_before_s
    assert found == interviews
    print_figures(wall_s=wall_s, cpu_s=cpu_s, loop_ms=loop_ms())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
