"""Resume: how soon a finished run is known to be finished, and what a kill at a random moment makes run again."""

import random
import signal
import time
from collections import Counter
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.processes import ChildFailed, run_child, start_python
from benchmarks.report import Line, Table, loops

_MOST_S = 1.0
_WINDOW = 64
_LATEST_KILL_S = 0.8
_PATIENCE_S = 60.0


def measure(bench: Bench) -> Table:
    interviews = bench.sizes.large_run
    _, path = bench.run_once(interviews)
    reopened = run_child("reopening", path, interviews)
    wall_s, cpu_s = reopened.figures["wall_s"], reopened.figures["cpu_s"]
    repeats = _repeats_after_kills(bench)
    interviews_again = max(len({interview for interview, _ in again}) for again in repeats)
    calls_again = max(len(again) for again in repeats)
    return Table(
        "resume",
        [
            Line(
                f"open {interviews:,} finished, wall",
                f"{wall_s:.2f} s",
                f"<= {_MOST_S:.0f} s",
                wall_s <= _MOST_S,
            ),
            Line("the same, CPU", f"{cpu_s:.2f} s"),
            Line("the same with Python's start and the import, wall", f"{reopened.wall_s:.2f} s"),
            Line(
                "most interviews repeated by one kill -9",
                str(interviews_again),
                f"<= {_WINDOW}, the window",
                interviews_again <= _WINDOW,
            ),
            Line("most calls repeated by one kill -9", str(calls_again)),
        ],
        [
            "opening is Job.open(path).run(path) in a fresh process, with the file in the page cache",
            loops([reopened.figures["loop_ms"]]),
            f"calls repeated by each of {len(repeats)} kills: {', '.join(str(len(again)) for again in repeats)}",
            "a call counts when its answer came; those still waiting for theirs at the kill are not seen here",
            "the window counts interviews, and each may have several questions under way: calls may be more",
            "peer: EDSL starts its job over and reuses cached calls; not measured here",
        ],
    )


def _repeats_after_kills(bench: Bench) -> list[list[tuple[str, str]]]:
    """One list for each kill: the calls (interview, question) that had been answered before it and were made again."""
    path, calls = bench.directory / "killed.run", bench.directory / "killed.calls"
    moments = random.Random()
    kills = 0
    while kills < bench.sizes.kills:
        if not _killed(path, calls, kills, bench.sizes.killed_run, moments.random() * _LATEST_KILL_S):
            raise ChildFailed(f"the run to be killed ended before kill {kills + 1}: make killed_run larger")
        kills += 1
    run_child("killed_run", path, calls, kills, bench.sizes.killed_run, _WINDOW)
    return _repeated(calls, kills, bench.sizes.killed_run)


def _killed(path: Path, calls: Path, attempt: int, interviews: int, delay_s: float) -> bool:
    """Start or go on with the run and kill it so long after its first answer; False where it ended by itself."""
    size_before = calls.stat().st_size if calls.exists() else 0
    process = start_python("-m", "benchmarks.children.killed_run", path, calls, attempt, interviews, _WINDOW)
    began_s = time.monotonic()
    while not (calls.exists() and calls.stat().st_size > size_before):
        if process.poll() is not None or time.monotonic() - began_s > _PATIENCE_S:
            raise ChildFailed("the run to be killed did not start")
        time.sleep(0.001)
    time.sleep(delay_s)
    process.send_signal(signal.SIGKILL)
    assert process.stdout is not None
    process.stdout.close()
    return process.wait() == -signal.SIGKILL


def _repeated(calls: Path, kills: int, interviews: int) -> list[list[tuple[str, str]]]:
    repeats: list[list[tuple[str, str]]] = [[] for _ in range(kills)]
    seen: Counter[tuple[str, str]] = Counter()
    for line in calls.read_text("ascii").splitlines():
        attempt, interview, question = line.split()
        if seen[interview, question]:
            repeats[int(attempt) - 1].append((interview, question))
        seen[interview, question] += 1
    if len(seen) != interviews * 3:
        raise ChildFailed(f"{len(seen)} calls were answered, of {interviews * 3}")
    return repeats
