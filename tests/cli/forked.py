"""The command in forks of one process that has it loaded: as typed, without loading it anew for each of many.

Covers: words, exit code, output and errors. Does not cover: how the command starts, terminals and signals, for which
tests start it for real (tests.cli.live, tests.cli.terminals).
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# A fork does not come back into the loop: it ends like any program, with all that is done then.
_PROGRAM = """
import json, os, runpy, signal, sys
import headrace.cli.run_files, headrace.cli.file_commands, headrace.cli.job_commands
import headrace.cli.output, headrace.cli.main, headrace.cli.steering_commands, headrace.interviews.api
while order := sys.stdin.readline():
    asked = json.loads(order)
    if pid := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        continue
    signal.alarm(60)
    os.chdir(asked["place"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, name in enumerate((os.devnull, asked["out"], asked["err"])):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.argv[1:] = asked["words"]
    runpy.run_module("headrace", run_name="__main__", alter_sys=True)
    break
"""


class Forks:
    """`kept` is a directory for what the commands print."""

    def __init__(self, process: "subprocess.Popen[str]", kept: Path) -> None:
        self._process = process
        self._out, self._err = kept / "out", kept / "err"

    def __call__(self, place: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        where = {"place": str(place), "out": str(self._out), "err": str(self._err)}
        self._process.stdin.write(json.dumps({**where, "words": words, "environment": dict(os.environ)}) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        out, err = (file.read_text("utf-8") for file in (self._out, self._err))
        return subprocess.CompletedProcess(words, code, out, err)


_serving: list[Forks] = []  # the module's whose tests run


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What `headrace` needs."""
    command = [sys.executable, "-W", "error", "-c", _PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        _serving.append(Forks(process, tmp_path_factory.mktemp("forked")))
        yield
        _serving.clear()


def headrace(place: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return _serving[0](place, *words)
