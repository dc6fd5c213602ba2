"""Trouble on a real Ray cluster, with real kills. Not among the tests that run by default: Ray takes long to notice.

./scripts/test tests/cluster/ray_trouble.py
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import Results
from tests.cluster.real_cluster import RealCluster, check_all_asked_once, hosts_on_nodes, made_again, wardens_left
from tests.models.server import HostileServer
from tests.pictures import png
from tests.trouble.children import ROOT, Child, until
from tests.trouble.number_server import NumberServer

AGENTS, WINDOW = 100, 16
PATIENCE_S = 240.0


@pytest.fixture
def server() -> Iterator[NumberServer]:
    with NumberServer(latency_s=0.05) as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No actor, process, directory or file in shared memory is left of ours, whatever was killed."""
    folder = Path(tempfile.mkdtemp(prefix="hr-", dir="/tmp"))
    monkeypatch.setenv("TMPDIR", str(folder))
    shared = set(Path("/dev/shm").iterdir())
    yield
    until(lambda: not hosts_on_nodes() and not wardens_left(), "the end of what ran on nodes", within_s=60)
    until(lambda: not [*folder.glob("headrace*"), *folder.glob("tmp*")], "the end of our directories", within_s=60)
    until(lambda: set(Path("/dev/shm").iterdir()) <= shared, "the end of files in shared memory", within_s=60)
    shutil.rmtree(folder)


def test_a_killed_node_costs_what_was_in_flight_on_it(server: NumberServer, tmp_path: Path):
    with RealCluster(nodes=2) as cluster:
        with Child("run_on_ray", tmp_path / "a.run", server.url, AGENTS, WINDOW, cluster.address) as child:
            until(lambda: server.calls > 2 * WINDOW, "calls from the nodes")
            cluster.kill(0)
            assert child.ended(within_s=PATIENCE_S)[-1]["error"] is None
        check_all_asked_once(tmp_path / "a.run", AGENTS, server, lost=WINDOW)


def test_object_stores_that_are_full_are_not_noticed(tmp_path: Path):
    (tmp_path / "photos").mkdir()
    photos = [png(tmp_path / "photos" / f"{n}.png", shade=n, filler_bytes=5_000_000) for n in range(6)]
    with (
        RealCluster(nodes=2) as cluster,
        HostileServer() as server,
        Child("fill_stores", cluster.address, 2) as other,
    ):
        assert other.wait_until_told()[0] == {"filled": 2}
        with Child("send_on_ray", tmp_path / "a.run", server.url, tmp_path / "photos", cluster.address) as child:
            assert child.ended(within_s=PATIENCE_S)[-1]["error"] is None
        assert server.calls == 4 * len(photos)
        other.kill()


def test_a_killed_actor_in_the_middle_of_a_file_leaves_nothing(tmp_path: Path):
    (tmp_path / "photos").mkdir()
    photos = [png(tmp_path / "photos" / f"{n}.png", shade=n, filler_bytes=30_000_000) for n in range(2)]
    with (
        RealCluster(nodes=2) as cluster,
        HostileServer() as server,
        Child("send_on_ray", tmp_path / "a.run", server.url, tmp_path / "photos", cluster.address) as child,
    ):
        until(lambda: any(Path(os.environ["TMPDIR"]).glob("headrace-node-*/*.part")), "a file on its way")
        os.kill(hosts_on_nodes()[0], signal.SIGKILL)
        assert child.ended(within_s=PATIENCE_S)[-1]["error"] is None
        assert server.calls >= 4 * len(photos)


def test_a_node_at_work_is_not_idle_for_an_autoscaler(server: NumberServer, tmp_path: Path):
    ask = "import sys, ray.autoscaler.v2.sdk as sdk; print(len(sdk.get_cluster_status(sys.argv[1]).active_nodes))"
    with (
        RealCluster(nodes=1) as cluster,
        Child("run_on_ray", tmp_path / "a.run", server.url, AGENTS, WINDOW, cluster.address) as child,
    ):
        until(lambda: server.calls > 2 * WINDOW, "calls from the node")
        told = subprocess.run([sys.executable, "-c", ask, cluster.address], capture_output=True, text=True, check=True)
        assert told.stdout == "1\n"
        assert child.ended(within_s=PATIENCE_S)[-1]["error"] is None


def test_nodes_that_come_and_go(server: NumberServer, tmp_path: Path):
    with RealCluster(nodes=2) as cluster:
        with Child("run_on_ray", tmp_path / "a.run", server.url, 8 * AGENTS, WINDOW, cluster.address) as child:
            until(lambda: server.calls > WINDOW, "calls from the nodes")
            ends_at, first = time.monotonic() + 60, 0
            while time.monotonic() < ends_at and child.is_alive:
                cluster.add()
                cluster.kill(first)
                first += 1
            assert child.ended(within_s=PATIENCE_S)[-1]["error"] is None
        assert first > 1
        check_all_asked_once(tmp_path / "a.run", 8 * AGENTS, server, lost=first * WINDOW)


def test_an_actor_that_stops_answering_is_left_behind(server: NumberServer, tmp_path: Path):
    with RealCluster(nodes=2) as cluster:
        with Child("run_on_ray", tmp_path / "a.run", server.url, AGENTS, WINDOW, cluster.address) as child:
            until(lambda: server.calls > 15 * WINDOW, "calls with turns that are lent")
            os.kill(hosts_on_nodes()[0], signal.SIGSTOP)
            assert child.ended(within_s=PATIENCE_S)[-1]["error"] is None
        check_all_asked_once(tmp_path / "a.run", AGENTS, server, lost=WINDOW)
        assert max(made_again(server).values(), default=0) <= 2  # its workers lived on, and had turns for a second


def test_a_dead_head_loses_nothing(server: NumberServer, tmp_path: Path):
    with (
        RealCluster(nodes=1) as cluster,
        Child("run_on_ray", tmp_path / "a.run", server.url, AGENTS, WINDOW, cluster.address) as child,
    ):
        until(lambda: server.calls > 2 * WINDOW, "calls from the nodes")
        cluster.kill("head")
        until(lambda: not child.is_alive or server.calls >= 2 * AGENTS, "the end of the run", within_s=PATIENCE_S)
    with (
        RealCluster(nodes=1) as cluster,
        Child("run_on_ray", tmp_path / "a.run", server.url, AGENTS, WINDOW, cluster.address) as child,
    ):
        assert child.ended(within_s=PATIENCE_S)[-1]["error"] is None
    check_all_asked_once(tmp_path / "a.run", AGENTS, server, lost=2 * WINDOW)


def test_a_runaway_on_a_node_costs_its_own_interview(tmp_path: Path):
    with RealCluster(nodes=1) as cluster, Child("swell_on_ray", tmp_path / "a.run", cluster.address) as child:
        assert child.ended(within_s=PATIENCE_S)[-1]["error"] is None
    with Results.open(tmp_path / "a.run") as results:
        assert len(results) == 40
        assert [(failed.ordinal, failed.cause) for failed in results.failed()] == [(7, "out of memory")]


def test_a_node_with_other_code_takes_no_part(server: NumberServer, tmp_path: Path):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "src/headrace/units.py").open("a") as module:
        module.write("\n# another version\n")
    with RealCluster(nodes=0) as cluster:
        cluster.add(PYTHONPATH=f"{tmp_path / 'src'}{os.pathsep}{ROOT}")
        with Child("run_on_ray", tmp_path / "a.run", server.url, AGENTS, WINDOW, cluster.address) as child:
            told = child.ended(within_s=PATIENCE_S)[-1]
    assert "another version of headrace" in told["message"]
    assert server.calls == 0


def test_a_node_without_a_package_says_how_to_bring_it(server: NumberServer, tmp_path: Path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "msgspec.py").write_text("raise ModuleNotFoundError(\"No module named 'msgspec'\")\n")
    with RealCluster(nodes=0) as cluster:
        cluster.add(PYTHONPATH=f"{tmp_path / 'broken'}{os.pathsep}{ROOT}")
        with Child("run_on_ray", tmp_path / "a.run", server.url, AGENTS, WINDOW, cluster.address) as child:
            told = child.ended(within_s=PATIENCE_S)[-1]
    assert "no module 'msgspec'" in told["message"]
    assert "runtime_env" in told["message"]
    assert server.calls == 0
