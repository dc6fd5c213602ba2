"""Programs in forks of one process that has the library loaded: loading it takes longer than most of them run.

Covers: PROGRAMS, whose own memory no test measures, while the fixture `forks` is in use; each is a process of its own,
with its arguments, environment, output, exit status and signals. Does not cover: how a program starts, and programs in
namespaces of their own, which `tests.trouble.children` starts for real.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = {
    "tests.agents.engine.programs.mix",
    *(f"tests.trouble.programs.{name}" for name in ("run_letters", "run_numbers", "run_rows", "run_town", "stopping")),
}

# One fork for each order waits for another one, which is the program and ends like any program, with all that is done
# then. What is loaded is frozen: else each fork would go through all of it when it ends, and copy every page.
_SERVER = """
import gc, json, os, runpy, socket, sys
import headrace.agents.engine.engine
import headrace.interviews.api, headrace.interviews.session, headrace.interviews.standalone
import headrace.interviews.workers.survey_workers, headrace.models.http_client.http_provider
import headrace.models.protocols.openai_chat, headrace.models.protocols.test_model, headrace.survey.questions.kinds
import tests.trouble.programs.letters, tests.trouble.programs.telling, tests.trouble.programs.town
import aiohttp, uvloop
headrace.survey.questions.kinds.kinds_by_name()  # loads them
gc.collect()
gc.freeze()
orders = socket.socket(fileno=int(sys.argv[1]))
orders.sendall(b"ready")

def conduct(asked, streams):
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.argv[1:] = asked["arguments"]
    runpy.run_module(asked["program"], run_name="__main__", alter_sys=True)

while True:
    said, descriptors, _, _ = socket.recv_fds(orders, 1 << 20, 3)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    if not said:
        break
    if os.fork():
        for each in descriptors:
            os.close(each)
        continue
    orders.close()
    answer = socket.socket(fileno=descriptors.pop())
    if pid := os.fork():
        for each in descriptors:
            os.close(each)
        answer.sendall(b"%d" % pid)
        answer.sendall(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os._exit(0)
    answer.close()
    conduct(json.loads(said), descriptors)
    break
"""


class ForkedProgram:
    """One program, with what tests use of a `subprocess.Popen`."""

    def __init__(self, answer: socket.socket, args: list[str]) -> None:
        self._answer, self.args = answer, args
        self.pid = int(answer.recv(16))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._answer], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._answer], [], [], timeout)[0]:
                assert timeout is not None
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = int(self._answer.recv(16))
            self._answer.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


_serving: list[socket.socket] = []  # one, while the tests of a module that asked for it run


def is_forked(program: str) -> bool:
    return bool(_serving) and program in PROGRAMS


def fork(
    program: str, arguments: list[str], environment: dict[str, str], out: IO[bytes], err: IO[bytes]
) -> ForkedProgram:
    answer, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    order = {"program": program, "arguments": arguments, "environment": environment}
    with theirs:
        streams = [out.fileno(), err.fileno(), theirs.fileno()]
        socket.send_fds(_serving[0], [json.dumps(order).encode()], streams)
    return ForkedProgram(answer, [program, *arguments])


@pytest.fixture(scope="module")
def forks() -> Iterator[None]:
    """Children of these tests are forks, where they can be."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-W", "error", "-c", _SERVER, str(theirs.fileno())]
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    with theirs:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
    with server, ours:  # which is closed first: then the server ends
        assert ours.recv(16) == b"ready"
        _serving.append(ours)
        try:
            yield
        finally:
            _serving.clear()
