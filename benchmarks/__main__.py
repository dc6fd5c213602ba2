"""`./scripts/bench [NAME ...] [--quick]`: runs the measures and prints a table for each.

A missed target is a finding, not a failure: the exit code is 0 unless a benchmark itself breaks.
"""

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    acceptance,
    bad_days,
    calls,
    cluster,
    command,
    disk,
    edsl_files,
    engine,
    failpoints,
    fairness,
    files,
    fuzz,
    growth,
    isolated_engine,
    killed_engine,
    large_plans,
    lists,
    memory,
    overshoot,
    page,
    page_clicks,
    results,
    resume,
    scheduler_hosts,
    services,
    small,
    speed,
    survey_language,
    survey_workers,
    workers,
    writer,
)
from benchmarks.bench import FULL, QUICK, Bench
from benchmarks.processes import ChildFailed
from benchmarks.report import Table

MEASURES: dict[str, Callable[[Bench], Table]] = {
    "memory": memory.measure,
    "speed": speed.measure,
    "survey_language": survey_language.measure,
    "growth": growth.measure,
    "disk": disk.measure,
    "resume": resume.measure,
    "results": results.measure,
    "page": page.measure,
    "page_clicks": page_clicks.measure,
    "edsl_files": edsl_files.measure,
    "lists": lists.measure,
    "large_plans": large_plans.measure,
    "writer": writer.measure,
    "small": small.measure,
    "command": command.measure,
    "calls": calls.measure,
    "cluster": cluster.measure,
    "services": services.measure,
    "files": files.measure,
    "bad_days": bad_days.measure,
    "engine": engine.measure,
    "scheduler_hosts": scheduler_hosts.measure,
    "isolated_engine": isolated_engine.measure,
    "killed_engine": killed_engine.measure,
    "fairness": fairness.measure,
    "failpoints": failpoints.measure,
    "workers": workers.measure,
    "overshoot": overshoot.measure,
    "fuzz": fuzz.measure,
    "survey_workers": survey_workers.measure,
    "acceptance": acceptance.measure,
}


def main() -> int:
    arguments = _arguments()
    broken: list[str] = []
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", dir=arguments.directory) as directory:
        print(_machine(Path(directory)))
        bench = Bench(QUICK if arguments.quick else FULL, Path(directory))
        for name in arguments.names or MEASURES:
            print(f"\n{name} ...", flush=True)
            try:
                print(MEASURES[name](bench), flush=True)
            except ChildFailed as error:
                print(f"BROKEN: {error}", flush=True)
                broken.append(name)
    if broken:
        print(f"broken: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(MEASURES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="smaller sizes: shows that it works, proves no target")
    parser.add_argument("--directory", type=Path, help="where the run files go; must be a real disk")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in MEASURES]:
        parser.error(f"no measure named {', '.join(unknown)}; there are {', '.join(MEASURES)}")
    return arguments


def _machine(directory: Path) -> str:
    load = os.getloadavg()[0]
    python = f"Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, load {load:.1f}, {python}; run files in {directory} ({_filesystem(directory)})"


def _filesystem(directory: Path) -> str:
    """On tmpfs nothing reaches a disk: a reader of the figures must know."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text("utf-8").splitlines()]
    holding = [(len(place), kind) for place, kind in mounts if directory.is_relative_to(place)]
    return max(holding)[1]


if __name__ == "__main__":
    sys.exit(main())
