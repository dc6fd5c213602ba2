"""A program that has the library loaded and runs programs in forks of itself: `python -m tests.fork_server SOCKET`.

Loading takes longer than most of what tests start. An order is one message with three streams: what to run, where, with
which words and which environment. The answers are two messages, the process's id and its exit code. It is no child of
the tests, whose memory is measured with that of their children, and ends when its standard input does.
"""

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import types
from typing import Any

import typer.main

from headrace.cli.main import app
from headrace.survey.questions.kinds import kinds_by_name

# What commands and programs import as they run.
_LOADED = """
    aiohttp rich.table uvloop yaml headrace.tables headrace.agents.engine.engine headrace.cli.arguments
    headrace.cli.demo.demo_run headrace.cli.file_commands headrace.cli.job_commands headrace.cli.made_files
    headrace.cli.output headrace.cli.rich_terminal headrace.cli.run_files headrace.cli.status.engine_status
    headrace.cli.status.run_status headrace.cli.steering_commands headrace.interviews.api headrace.interviews.session
    headrace.interviews.standalone headrace.interviews.workers.survey_workers
    headrace.models.http_client.http_provider headrace.models.protocols.openai_chat
    headrace.models.protocols.test_model headrace.plan.study_files headrace.plan.yaml_text headrace.results.results
    tests.trouble.programs.letters tests.trouble.programs.telling tests.trouble.programs.town
"""
_LONGEST_S = 600  # for a fork that nobody waits for any more


def _load() -> None:
    for name in _LOADED.split():
        importlib.import_module(name)
    kinds_by_name()  # loads them
    # Typer reads the signatures of all commands once, here: that took two thirds of the time of a short command.
    built, build = typer.main.get_command(app), typer.main.get_command
    typer.main.get_command = lambda asked: built if asked is app else build(asked)
    # Else each fork would go through all of it when it ends, and copy every page.
    gc.collect()
    gc.freeze()


def _run(order: dict[str, Any], streams: list[int]) -> None:
    """Run it here, as if this process had been started for it."""
    signal.alarm(_LONGEST_S)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(order["place"])
    sys.path[0] = order["place"]
    os.environ.clear()
    os.environ.update(order["environment"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Made anew: Python looks once whether they are terminals.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.argv[:] = [order["program"], *order["words"]]
    if order["module"]:
        runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
    else:
        sys.modules["__main__"] = types.ModuleType("__main__")
        importlib.import_module("headrace.cli.main").main()  # as the script that an installer writes


def _serve(orders: socket.socket) -> None:
    """Return in the fork that has run an order: it ends like any program, with all that is done then."""
    while 0 not in select.select([orders, 0], [], [])[0]:
        asking, _ = orders.accept()
        _forget_ended()
        if os.fork():
            asking.close()
            continue
        orders.close()
        said, streams, _, _ = socket.recv_fds(asking, 1 << 20, 3)
        if pid := os.fork():
            for stream in streams:
                os.close(stream)
            asking.sendall(b"%d" % pid)
            asking.sendall(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            os._exit(0)
        asking.close()
        _run(json.loads(said), streams)
        return


def _forget_ended() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    _load()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(sys.argv[1])
        listening.listen(64)
        if os.fork() == 0:
            print("ready", flush=True)
            _serve(listening)
