"""The command in forks of one process that has it loaded: as typed, without loading it anew for each of many.

Covers: words, directory, environment, the standard streams (files, pipes, terminals) and exit code. Does not cover: how
the command starts, what Python reads from the environment then, and signals, for which tests start it for real
(tests.cli.live, HEADRACE in tests.cli.terminals). Each command is started for real by tests/docs/test_cli_document.py.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# One fork for each order waits for another one, which is the command and ends like any program, with all that is done
# then. The streams are made anew: Python looks once whether they are terminals. What is loaded is frozen: else each
# fork would go through all of it when it ends, and copy every page. Typer reads the signatures of all commands once,
# here: that took two thirds of the time of a short command.
_SERVER = """
import gc, io, json, os, runpy, signal, socket, sys
import headrace.cli.made_files, headrace.cli.status.run_status, headrace.cli.rich_terminal, headrace.tables
import headrace.cli.run_files, headrace.cli.file_commands, headrace.cli.job_commands, headrace.cli.demo.demo_run
import headrace.cli.output, headrace.cli.main, headrace.cli.steering_commands, headrace.interviews.api
import headrace.interviews.standalone, headrace.results.results, headrace.plan.study_files, rich.table, yaml
import headrace.cli.status.engine_status, headrace.cli.arguments, headrace.plan.yaml_text
import headrace.interviews.session, headrace.models.protocols.test_model, headrace.survey.questions.kinds, typer.main
import headrace.models.http_client.http_provider
headrace.survey.questions.kinds.kinds_by_name()  # loads them
built, build = typer.main.get_command(headrace.cli.main.app), typer.main.get_command
typer.main.get_command = lambda app: built if app is headrace.cli.main.app else build(app)
gc.collect()
gc.freeze()
serving = socket.socket(socket.AF_UNIX)
serving.bind(sys.argv[1])
serving.listen(64)
print("ready", flush=True)

def take_order(asking):
    said, streams, _, _ = socket.recv_fds(asking, 1 << 16, 3)
    while not said.endswith(b"\\n"):
        said += asking.recv(1 << 16)
    return json.loads(said), streams

def conduct(asked, streams):
    signal.alarm(120)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(asked["place"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.argv[:] = [asked["program"], *asked["words"]]
    if asked["program"]:
        headrace.cli.main.main()  # as the script that an installer writes
    else:
        runpy.run_module("headrace", run_name="__main__", alter_sys=True)

while True:
    asking, _ = serving.accept()
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    if os.fork():
        asking.close()
        continue
    serving.close()
    asked, streams = take_order(asking)
    if pid := os.fork():
        for stream in streams:
            os.close(stream)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        asking.sendall(b"%d" % code)
        os._exit(0)
    asking.close()
    conduct(asked, streams)
    break
"""
# For shells: hands its words and streams to the server, and exits as the command did. It loads next to nothing.
_CLIENT = """#!{python} -IS
import json, os, socket, sys
asking = socket.socket(socket.AF_UNIX)
asking.connect({address!r})
order = {{"place": os.getcwd(), "program": sys.argv[0], "words": sys.argv[1:], "environment": dict(os.environ)}}
socket.send_fds(asking, [json.dumps(order).encode() + b"\\n"], [0, 1, 2])
sys.exit(int(asking.recv(16)) & 255)
"""


class Forks:
    """`address` is the server's socket."""

    def __init__(self, address: str) -> None:
        self._address = address

    def start(self, place: Path, words: tuple[str, ...], environment: dict[str, str], streams: list[int]) -> "Fork":
        asking = socket.socket(socket.AF_UNIX)
        asking.connect(self._address)
        order = {"place": str(place), "program": "", "words": words, "environment": environment}
        socket.send_fds(asking, [json.dumps(order).encode() + b"\n"], streams)
        return Fork(asking)

    def write_client(self, program: Path) -> None:
        program.write_text(_CLIENT.format(python=sys.executable, address=self._address), "utf-8")
        program.chmod(0o755)


class Fork:
    """One command, while it goes on."""

    def __init__(self, asking: socket.socket) -> None:
        self._asking = asking

    def wait(self) -> int:
        with self._asking:
            return int(self._asking.recv(16))


_serving: list[Forks] = []  # one, while the tests that asked for it run


@pytest.fixture(scope="package")
def forks() -> Iterator[Forks]:
    """What `headrace` needs: one server for all modules of a package whose conftest has it."""
    place = tempfile.mkdtemp()  # the address of a socket has to be short
    command = [sys.executable, "-W", "error", "-c", _SERVER, f"{place}/s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            _serving.append(Forks(f"{place}/s"))
            yield _serving[0]
        finally:
            _serving.clear()
            process.kill()
            shutil.rmtree(place)


def start(place: Path, words: tuple[str, ...], environment: dict[str, str], streams: list[int]) -> Fork:
    return _serving[0].start(place, words, environment, streams)


def headrace(place: Path, *words: str, environment: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open("rb") as nothing:
        streams = [nothing.fileno(), out.fileno(), err.fileno()]
        code = start(place, words, dict(os.environ) if environment is None else environment, streams).wait()
        out_text, err_text = (os.pread(file.fileno(), 1 << 26, 0).decode() for file in (out, err))
    return subprocess.CompletedProcess(words, code, out_text, err_text)
