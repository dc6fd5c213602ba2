"""Runs a program in a fresh process and reads what it cost. Covers: both ends, the parent's and the child's."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_LOOP_TURNS = 500_000


class ChildFailed(Exception):
    """A measured program ended badly, or could not be set up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A process that ended: `figures` are what it printed, the rest is the kernel's account of its whole life.

    `peak_bytes` starts at what its parent holds when it forks, so the parent imports nothing that is measured.
    """

    figures: dict[str, Any]
    cpu_s: float
    wall_s: float
    peak_bytes: int


def run_child(
    program: str, *arguments: object, python: str | Path = sys.executable, env: dict[str, str] | None = None
) -> Ended:
    """Run `benchmarks.children.<program>` to its end."""
    return run_python("-m", f"benchmarks.children.{program}", *arguments, python=python, env=env)


def run_python(
    *arguments: object,
    python: str | Path = sys.executable,
    env: dict[str, str] | None = None,
    is_quiet: bool = False,
) -> Ended:
    """`is_quiet` where what it prints are no figures."""
    began_s = time.perf_counter()
    process = start_python(*arguments, python=python, env=env)
    assert process.stdout is not None
    with process.stdout:
        printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began_s
    process.returncode = os.waitstatus_to_exitcode(status)  # wait4 took it from Popen
    if process.returncode:
        raise ChildFailed(f"{' '.join(map(str, arguments))} ended with {process.returncode}")
    return Ended(
        figures=json.loads(printed.splitlines()[-1]) if printed.strip() and not is_quiet else {},
        cpu_s=usage.ru_utime + usage.ru_stime,
        wall_s=wall_s,
        peak_bytes=usage.ru_maxrss * 1024,
    )


def start_python(
    *arguments: object,
    python: str | Path = sys.executable,
    env: dict[str, str] | None = None,
    stderr: int | None = None,
) -> subprocess.Popen[str]:
    # Where byte code may not be written, every start would compile everything, and that would be measured.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [str(python), *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment | (env or {}), stdout=subprocess.PIPE, stderr=stderr, text=True
    )


def print_figures(**figures: object) -> None:
    """The child's end: what `Ended.figures` will hold."""
    print(json.dumps(figures), flush=True)


def loop_ms() -> float:
    """CPU of a fixed amount of pure Python: what this machine, as busy as it is now, makes of Python code."""
    began_s, total = time.process_time(), 0
    for number in range(_LOOP_TURNS):
        total += number % 7
    return (time.process_time() - began_s) * 1000


def bytes_written() -> tuple[int, int]:
    """(sent towards the disk, handed to the kernel) by this process so far. The first is 0 where no disk is behind."""
    lines = (line.split(": ") for line in Path("/proc/self/io").read_text("ascii").splitlines())
    account = {name: int(value) for name, value in lines}
    return account["write_bytes"], account["wchar"]


def peak_resident_bytes() -> int:
    """The peak of this process since it started its program."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ChildFailed("the kernel tells no peak of resident memory")
