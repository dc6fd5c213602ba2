"""The command line: how long `--help` takes, and what `headrace map` costs above the library, progress shown."""

import os
import statistics
import threading
import time
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.processes import ChildFailed, run_child, run_python, start_python
from benchmarks.report import Line, Table

_MOST_HELP_MS = 150.0
_MOST_ABOVE_US = 70.0
_TEXT = "Label the sentiment: {{ text }}"


def measure(bench: Bench) -> Table:
    return Table(
        "the command line",
        [_help(bench.sizes.imports), *_mapping(bench)],
        [
            f"--help: wall of a whole process, median of {bench.sizes.imports}",
            "map: CPU per further row, user + system, the command on a terminal, the library without",
        ],
    )


def _help(repeats: int) -> Line:
    walls_ms = [run_python("-m", "headrace", "--help", is_quiet=True).wall_s * 1000 for _ in range(repeats)]
    wall_ms = statistics.median(walls_ms)
    return Line("headrace --help", f"{wall_ms:.0f} ms", f"<= {_MOST_HELP_MS:.0f} ms", wall_ms <= _MOST_HELP_MS)


def _mapping(bench: Bench) -> list[Line]:
    sizes = bench.sizes
    command_us, library_us = list[float](), list[float]()
    for _ in range(sizes.speed_repeats):
        costs = [_both(bench.directory, rows) for rows in (sizes.speed_from, sizes.speed_to)]
        further = (sizes.speed_to - sizes.speed_from) / 1e6
        command_us.append((costs[1][0] - costs[0][0]) / further)
        library_us.append((costs[1][1] - costs[0][1]) / further)
    command, library = statistics.median(command_us), statistics.median(library_us)
    above = command - library
    return [
        Line("headrace map, a row", f"{command:.1f} us"),
        Line("Job.map in a program, a row", f"{library:.1f} us"),
        Line("above the library", f"{above:.1f} us", f"<= {_MOST_ABOVE_US:.0f} us", above <= _MOST_ABOVE_US),
    ]


def _both(directory: Path, rows: int) -> tuple[float, float]:
    """CPU seconds of the command and of the library for so many rows."""
    data = directory / f"{rows}.jsonl"
    data.write_text("".join(f'{{"id": {number}, "text": "row {number}"}}\n' for number in range(rows)))
    of_command = _on_a_terminal(
        "-m", "headrace", "map", _TEXT, "--data", data, "--model", "test,canned_response=good",
        "-o", directory / f"command-{rows}-{time.monotonic_ns()}.run",
    )  # fmt: skip
    run = directory / f"library-{rows}-{time.monotonic_ns()}.run"
    return of_command, run_child("mapped_run", run, data, _TEXT).cpu_s


def _on_a_terminal(*words: object) -> float:
    """CPU seconds of a program whose standard error is a terminal that somebody reads."""
    ours, theirs = os.openpty()
    os.set_inheritable(theirs, True)
    process = start_python(*words, env={"COLUMNS": "100", "TERM": "xterm"}, stderr=theirs)
    os.close(theirs)
    reader = threading.Thread(target=_drain, args=(ours,))
    reader.start()
    assert process.stdout is not None
    with process.stdout:
        process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    reader.join()
    os.close(ours)
    if process.returncode:
        raise ChildFailed(f"{' '.join(map(str, words))} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def _drain(terminal: int) -> None:
    try:
        while os.read(terminal, 65_536):
            pass
    except OSError:  # how a terminal says that the other end is closed
        pass
