"""Surveys on a real Ray cluster. `.ci/run` runs it; engines are in ray_engines, more trouble is in ray_trouble."""

import base64
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import HeadraceError, Model, QuestionFreeText, Ray, Survey
from tests.cluster.real_cluster import RealCluster, check_all_asked_once, hosts_on_nodes
from tests.models.server import HostileServer
from tests.pictures import png
from tests.trouble.children import Child, until
from tests.trouble.number_server import NumberServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="clusters of several nodes on one machine: Linux only")

AGENTS, WINDOW = 60, 16


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster(nodes=2) as cluster:
        yield cluster


@pytest.fixture
def server() -> Iterator[NumberServer]:
    with NumberServer(latency_s=0.02) as server:
        yield server


def test_a_survey_on_two_nodes_asks_everything_once_and_leaves_nothing(
    cluster: RealCluster, server: NumberServer, tmp_path: Path
):
    with Child("run_on_ray", tmp_path / "a.run", server.url, AGENTS, WINDOW, cluster.address) as child:
        until(lambda: server.calls > WINDOW, "calls from the nodes")
        assert len(hosts_on_nodes()) == 2
        assert child.ended()[-1]["error"] is None
    check_all_asked_once(tmp_path / "a.run", AGENTS, server)
    until(lambda: not hosts_on_nodes(), "the end of our actors")


def test_a_killed_actor_costs_what_was_in_flight_on_it(cluster: RealCluster, server: NumberServer, tmp_path: Path):
    with Child("run_on_ray", tmp_path / "a.run", server.url, AGENTS, WINDOW, cluster.address) as child:
        until(lambda: server.calls > 2 * WINDOW, "calls from the nodes")
        os.kill(hosts_on_nodes()[0], signal.SIGKILL)
        assert child.ended()[-1]["error"] is None
    check_all_asked_once(tmp_path / "a.run", AGENTS, server, lost=WINDOW)
    until(lambda: not hosts_on_nodes(), "the end of our actors")


def test_a_killed_driver_goes_on_with_the_same_command(cluster: RealCluster, server: NumberServer, tmp_path: Path):
    arguments = (tmp_path / "a.run", server.url, AGENTS, WINDOW, cluster.address)
    with Child("run_on_ray", *arguments) as child:
        until(lambda: server.calls > 2 * WINDOW, "calls from the nodes")
        child.kill()
    until(lambda: not hosts_on_nodes(), "the end of a dead driver's actors")
    with Child("run_on_ray", *arguments) as child:
        assert child.ended()[-1]["error"] is None
    check_all_asked_once(tmp_path / "a.run", AGENTS, server, lost=2 * WINDOW)


def test_the_contents_of_files_come_from_the_program(cluster: RealCluster, tmp_path: Path):
    (tmp_path / "photos").mkdir()
    photos = [png(tmp_path / "photos" / f"{n}.png", shade=n, filler_bytes=n * 1_000_000) for n in range(4)]
    with (
        HostileServer() as server,
        Child("send_on_ray", tmp_path / "a.run", server.url, tmp_path / "photos", cluster.address) as child,
    ):
        assert child.ended()[-1]["error"] is None
        urls = [call.content[1]["image_url"]["url"] for call in server.script.kept]
    sent = sorted(base64.b64decode(url.partition(",")[2]) for url in urls)
    assert sent == sorted(4 * [photo.read_bytes() for photo in photos])
    until(lambda: not hosts_on_nodes(), "the end of our actors")


def test_a_cluster_that_is_not_there_is_said_before_a_file_is_made(tmp_path: Path):
    job = Survey([QuestionFreeText(question_name="q", question_text="Who?")]).by(Model("test"))
    with pytest.raises(HeadraceError, match="No Ray cluster can be reached"):
        job.run(tmp_path / "a.run", executor=Ray("127.0.0.1:1"))
    assert not (tmp_path / "a.run").exists()
