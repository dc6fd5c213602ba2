"""Commands and programs in forks of one process that has the library loaded (tests.fork_server), as `forks`.

Covers: words, directory, environment, the standard streams (files, pipes, terminals), signals and exit code of a
process of its own. Does not cover: how a program starts and what Python reads from the environment then, its memory,
and namespaces, for which tests start it for real. Each command is started for real by tests/docs/test_cli_document.py.
"""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# For shells: hands its words and streams to the server, and exits as the command did. It loads next to nothing.
_CLIENT = """#!{python} -IS
import json, os, socket, sys
asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asking.connect({address!r})
order = {{"place": os.getcwd(), "module": "", "program": sys.argv[0], "words": sys.argv[1:]}}
socket.send_fds(asking, [json.dumps({{**order, "environment": dict(os.environ)}}).encode()], [0, 1, 2])
pid, code = asking.recv(16), asking.recv(16)
sys.exit(int(code) & 255)
"""


class Fork:
    """One process, with what tests use of a `subprocess.Popen`."""

    def __init__(self, asking: socket.socket, args: list[str]) -> None:
        self._asking, self.args = asking, args
        self.pid = int(asking.recv(16))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._asking], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float = 120.0) -> int:
        if self.returncode is None:
            if not select.select([self._asking], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            with self._asking:
                self.returncode = int(self._asking.recv(16))
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class PipedFork(Fork):
    """One whose output is read through pipes. Both may hold 64 KB before anybody reads them."""

    def __init__(self, asking: socket.socket, args: list[str], out: int, err: int) -> None:
        super().__init__(asking, args)
        self.stdout, self.stderr = os.fdopen(out, encoding="utf-8"), os.fdopen(err, encoding="utf-8")

    def communicate(self, timeout: float = 120.0) -> tuple[str, str]:
        """What it wrote and nobody has read; nothing the second time."""
        self.wait(timeout)
        if self.stdout.closed:
            return "", ""
        with self.stdout, self.stderr:
            return self.stdout.read(), self.stderr.read()


class Forks:
    """`address` is the server's socket."""

    def __init__(self, address: str) -> None:
        self._address = address

    def start(
        self, module: str, words: list[str], environment: dict[str, str], streams: list[int], place: Path = ROOT
    ) -> Fork:
        """`python -m MODULE`, with these words and streams: in, out, errors."""
        return Fork(self._order(module, words, environment, streams, place), [module, *words])

    def start_piped(self, module: str, words: list[str], environment: dict[str, str], place: Path) -> PipedFork:
        (out, their_out), (err, their_err) = os.pipe(), os.pipe()
        with Path(os.devnull).open("rb") as nothing:
            asking = self._order(module, words, environment, [nothing.fileno(), their_out, their_err], place)
        os.close(their_out)
        os.close(their_err)
        return PipedFork(asking, [module, *words], out, err)

    def _order(
        self, module: str, words: list[str], environment: dict[str, str], streams: list[int], place: Path
    ) -> socket.socket:
        asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asking.connect(self._address)
        order = {"place": str(place), "module": module, "program": "", "words": words, "environment": environment}
        socket.send_fds(asking, [json.dumps(order).encode()], streams)
        return asking

    def write_client(self, program: Path) -> None:
        """Put a `headrace` there that a shell finds."""
        program.write_text(_CLIENT.format(python=sys.executable, address=self._address), "utf-8")
        program.chmod(0o755)


_serving: list[Forks] = []  # one, while the tests of a module that asked for it run


def serving() -> Forks | None:
    """The server, in a module that uses `forks`."""
    return _serving[0] if _serving else None


@pytest.fixture(scope="session")
def fork_server() -> Iterator[Forks]:
    place = tempfile.mkdtemp()  # the address of a socket has to be short
    lifeline, ours = os.pipe()
    command = [sys.executable, "-W", "error", "-m", "tests.fork_server", f"{place}/s"]
    try:
        with subprocess.Popen(command, cwd=ROOT, stdin=lifeline, stdout=subprocess.PIPE) as process:
            os.close(lifeline)
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        yield Forks(f"{place}/s")
    finally:
        os.close(ours)
        shutil.rmtree(place)


@pytest.fixture(scope="module")
def forks(fork_server: Forks) -> Iterator[Forks]:
    """Commands and programs of these tests are forks, where they can be."""
    _serving.append(fork_server)
    yield fork_server
    _serving.clear()
