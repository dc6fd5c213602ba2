"""A real Ray cluster of several nodes on this machine, in a process of its own, and what of ours runs on it."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headrace import Results
from tests.trouble.children import ROOT, until
from tests.trouble.number_server import NumberServer
from tests.trouble.programs.run_numbers import CHAIN

_MARK = f"HEADRACE_TEST_CLUSTERS_OF={os.getpid()}"  # other tests may have clusters on this machine


class RealCluster:
    """Nodes are numbered as they were added. Quiet: Ray's own complaints go to its log files."""

    def __init__(self, nodes: int = 2) -> None:
        self._told, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed on exit
        paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.trouble.programs.ray_cluster", str(nodes)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0", **dict([_MARK.split("=")])},
            stdin=subprocess.PIPE,
            stdout=self._told,
            stderr=self._err,
        )
        self.pid = self._process.pid
        self.raylets: list[int] = []
        self.address = self._next(1)["address"]
        self._lines = 1
        for _ in range(nodes):
            self._take_node()

    def add(self, **environment: str) -> None:
        """One more node, whose workers have these variables."""
        self._order(f"add {json.dumps(environment)}")
        self._take_node()

    def kill(self, node: int | str) -> None:
        """End a node's raylet, and with it everything that Ray has on the node, by SIGKILL; or "head"."""
        self._order(f"kill {node}")
        self._lines += 1
        self._next(self._lines)

    def _take_node(self) -> None:
        self._lines += 1
        self.raylets.append(self._next(self._lines)["raylet"])

    def _order(self, words: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(words.encode() + b"\n")
        self._process.stdin.flush()

    def _next(self, count: int) -> Any:
        until(lambda: len(self._all()) >= count or self._process.poll() is not None, f"line {count} of the cluster")
        told = self._all()
        assert len(told) >= count, os.pread(self._err.fileno(), 1 << 20, 0).decode(errors="replace")
        return told[count - 1]

    def _all(self) -> list[Any]:
        *whole, _ = os.pread(self._told.fileno(), 1 << 20, 0).decode().split("\n")
        return [json.loads(line) for line in whole if line.startswith("{")]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._told.close()
        self._err.close()


def hosts_on_nodes() -> list[int]:
    """Our actors, on whatever node."""
    return [pid for pid, command in _processes() if command.startswith("ray::NodeHost")]


def hosts_of(cluster: RealCluster) -> list[int]:
    """Our actors on the nodes of this cluster."""
    return [pid for pid in hosts_on_nodes() if _raylet_of(pid) in cluster.raylets]


def left_on(cluster: RealCluster) -> list[int]:
    """Our actors, wardens and workers on the nodes of this cluster, whoever their parent is by now."""
    return [pid for pid in (*hosts_on_nodes(), *wardens_left()) if _raylet_of(pid) in cluster.raylets]


def _raylet_of(pid: int) -> int | None:
    """Ray tells each process that it starts, and those tell their children."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((int(each.partition(b"=")[2]) for each in variables if each.startswith(b"RAY_RAYLET_PID=")), None)


def wardens_left() -> list[int]:
    return [pid for pid, command in _processes() if "headrace.workers.warden" in command]


def _processes() -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if _MARK.encode() in (place / "environ").read_bytes().split(b"\0"):
                found.append((int(place.name), (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
        except OSError:
            continue
    return found


def check_all_asked_once(path: Path, agents: int, server: NumberServer, lost: int = 0) -> None:
    """Every interview has its row with the right answers. So many interviews were in flight where something was killed:
    of each, one call is made again at most, and one whose answer was on its way.
    """
    with Results.open(path) as results:
        rows = [(each.agent["number"], *(each.answer[f"times{factor}"] for factor in CHAIN)) for each in results]
    assert sorted(rows) == [(number, *(factor * number for factor in CHAIN)) for number in range(agents)]
    assert len(server.answered) == agents * len(CHAIN)
    again = made_again(server)
    assert len(again) <= lost
    assert again.total() <= 2 * lost


def made_again(server: NumberServer) -> Counter[int]:
    """How many calls of an interview were made again, by its number."""
    again: Counter[int] = Counter()
    for (number, _), calls in server.answered.items():
        again[number] += calls - 1
    return +again
