"""How many answers of a real, small model are accepted, by kind of question: Headrace beside EDSL, one local endpoint.

The model is SmolLM2-135M-Instruct, served over HTTP on loopback in the OpenAI form (children/local_server.py). Each
side asks the same questions of the same agents with the same settings, one kind after the other, and tries again as
often as it does by itself.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE, Popen

from benchmarks import edsl
from benchmarks.bench import Bench
from benchmarks.peers import installed
from benchmarks.processes import ROOT, ChildFailed, run_child
from benchmarks.report import NOT_MEASURED, Line, Table

_SLOTS = 2


def measure(bench: Bench) -> Table:
    times = bench.sizes.asked_times
    directory = bench.directory / "acceptance"
    directory.mkdir()
    with _local_server() as address:
        arguments = (address, times, directory)
        ours: dict[str, int] = run_child("acceptance_run", "headrace", *arguments).figures["accepted"]
        python = installed(f"edsl=={edsl.VERSION}", "openai")
        theirs: dict[str, int] = {}
        if python is not None:
            home = edsl.surroundings(directory)
            theirs = run_child("acceptance_run", "edsl", *arguments, python=python, env=home).figures["accepted"]
    lines = [_line(kind, count, theirs.get(kind), times) for kind, count in ours.items()]
    if theirs:
        lines.append(_line("all kinds", sum(ours.values()), sum(theirs.values()), times * len(ours)))
    return Table(
        "answers of a local model that are accepted",
        lines,
        [
            f"SmolLM2-135M-Instruct at temperature 0.7 over HTTP, {times} agents for each kind",
            f"the peer is EDSL {edsl.VERSION} there too; each side tries again as often as it does by itself",
        ],
    )


def _line(kind: str, ours: int, theirs: int | None, asked: int) -> Line:
    if theirs is None:
        return Line(kind, f"{ours} of {asked}", peer=NOT_MEASURED)
    return Line(kind, f"{ours} of {asked}", ">= the peer's", ours >= theirs, f"{theirs} of {asked}")


@contextmanager
def _local_server() -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.children.local_server", str(_SLOTS)]
    with Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise ChildFailed("the local model's server did not start")
        try:
            yield address
        finally:
            process.stdin.close()
