"""Engines on a real Ray cluster, with real kills. `.ci/run` runs it: ./scripts/test tests/cluster/ray_engines.py"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.real_cluster import RealCluster, hosts_of, left_on
from tests.trouble.children import ROOT, Child, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="clusters of several nodes on one machine: Linux only")

RUNS, STEPS, SLOTS = 8, 12, 4
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster(nodes=2) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def nothing_is_left(cluster: RealCluster) -> Iterator[None]:
    yield
    until(lambda: not left_on(cluster), "the end of what ran on nodes", within_s=60)


def engine_on(cluster: RealCluster, directory: Path) -> Child:
    return Child("engine_on_ray", directory / "a.run", directory / "log", RUNS, STEPS, cluster.address)


def lines(directory: Path) -> list[str]:
    log = directory / "log"
    return log.read_text().splitlines() if log.exists() else []


def check(told: dict, directory: Path, most_again: int) -> None:
    """Every step was taken, at most so many twice, and no side effect."""
    assert told["results"] == [len(f"{number}-paid") + len("done\n") for number in range(RUNS)]
    taken = lines(directory)
    steps = [line for line in taken if not line.endswith("paid")]
    assert set(steps) == {f"{number}-{step}" for number in range(RUNS) for step in range(STEPS)}
    assert len(steps) - len(set(steps)) <= most_again
    assert sorted(set(taken) - set(steps)) == sorted(line for line in taken if line.endswith("paid"))


def test_agent_runs_on_two_nodes_take_every_step_once(cluster: RealCluster, tmp_path: Path):
    with engine_on(cluster, tmp_path) as child:
        until(lambda: len(lines(tmp_path)) > SLOTS, "steps on the nodes")
        assert len(hosts_of(cluster)) == 2
        check(child.ended(within_s=PATIENCE_S)[-1], tmp_path, most_again=0)


def test_a_killed_actor_costs_each_run_there_a_step(cluster: RealCluster, tmp_path: Path):
    with engine_on(cluster, tmp_path) as child:
        until(lambda: len(lines(tmp_path)) > 2 * SLOTS, "steps on the nodes")
        os.kill(hosts_of(cluster)[0], signal.SIGKILL)
        told = child.ended(within_s=PATIENCE_S)[-1]
    check(told, tmp_path, most_again=SLOTS)
    assert "node lost" in told["events"]


def test_a_killed_engine_goes_on_with_the_same_program(cluster: RealCluster, tmp_path: Path):
    with engine_on(cluster, tmp_path) as child:
        until(lambda: len(lines(tmp_path)) > 2 * SLOTS, "steps on the nodes")
        child.kill()
    with engine_on(cluster, tmp_path) as child:  # at once: the nodes may still have what the first one started
        check(child.ended(within_s=PATIENCE_S)[-1], tmp_path, most_again=SLOTS)


def test_a_killed_node_and_a_new_one(cluster: RealCluster, tmp_path: Path):
    with engine_on(cluster, tmp_path) as child:
        until(lambda: len(lines(tmp_path)) > 2 * SLOTS, "steps on the nodes")
        cluster.kill(0)
        cluster.add()
        check(child.ended(within_s=PATIENCE_S)[-1], tmp_path, most_again=SLOTS)


def run_program(code: str, cluster: RealCluster, directory: Path) -> subprocess.CompletedProcess[str]:
    (directory / "program.py").write_text(code)
    return subprocess.run(
        [sys.executable, "program.py", cluster.address, directory / "log"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


PROGRAM = """
import asyncio, sys
from pathlib import Path
from headrace import Engine, Ray

async def agent(ctx):
    return [Path("note.txt").read_text(), str(Path.cwd())]

async def main():
    ray = Ray(sys.argv[1], slots_per_node=1, runtime_env={"working_dir": "."})
    async with Engine("a.run", executor=ray, memory="+300MB") as engine:
        print(*await (await engine.submit(agent)).result())

if __name__ == "__main__":
    asyncio.run(main())
"""


TWO_ENGINES = """
import asyncio, sys
from headrace import Engine, Ray
from tests.trouble.programs.engine_on_ray import walk

async def main():
    ray = Ray(sys.argv[1], slots_per_node=1)
    async with Engine("b.run", executor=ray, memory="+300MB") as second:
        async with Engine("a.run", executor=ray, memory="+300MB") as first:
            going_on = await second.submit(walk, sys.argv[2], 1, 40)
            print(await (await first.submit(walk, sys.argv[2], 2, 2)).result())
        print(await going_on.result(), [event.what for event in await second.events()].count("node lost"))

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_an_engine_that_closes_leaves_another_of_its_program_alone(cluster: RealCluster, tmp_path: Path):
    ran = run_program(TWO_ENGINES, cluster, tmp_path)
    assert ran.stdout.split() == ["11", "11", "0"], ran.stderr


def test_ray_brings_the_program_and_its_files_to_the_nodes(cluster: RealCluster, tmp_path: Path):
    (tmp_path / "note.txt").write_text("brought")
    ran = run_program(PROGRAM, cluster, tmp_path)
    word, _, where = ran.stdout.strip().partition(" ")
    assert word == "brought", ran.stderr
    assert where != str(tmp_path)
