import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace import Engine
from headrace.errors import RunUndecided
from headrace.store.engine_file.engine_schema import RunState
from tests.agents.engine.engine_files import warden_of
from tests.agents.engine.isolated_functions import lines
from tests.trouble.children import Child, until

pytestmark = pytest.mark.usefixtures("forks")

ROOT = Path(__file__).parents[3]
AGENTS, PEOPLE, NOTES = 6, 400, 8
KILLS = 6


def start(path: Path, effects: Path, isolation: str) -> Child:
    return Child("tests.agents.engine.programs.mix", path, effects, isolation)


def expected() -> list:
    sums = [sum(number + i for i in range(NOTES)) for number in range(AGENTS)]
    return [[total, f"receipt of agent {number}", "Well done."] for number, total in enumerate(sums)]


@pytest.mark.parametrize("isolation", ["inline", "process"])
def test_an_engine_killed_at_random_moments_ends_with_the_same_results_and_no_effect_twice(tmp_path, isolation):
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rng = random.Random(seed)
    path, effects = tmp_path / "mix.run", tmp_path / "effects"
    for _ in range(KILLS):
        with start(path, effects, isolation) as child:
            until(lambda: path.with_name("mix.run.lock").exists() or not child.is_alive, "the engine")
            give_up_at = time.monotonic() + rng.uniform(0.05, 0.35)
            while child.is_alive and time.monotonic() < give_up_at:
                time.sleep(0.005)
            child.kill()
    with start(path, effects, isolation) as child:
        told = child.ended()
    assert told == [{"results": expected(), "answered": PEOPLE}], f"seed {seed}"
    assert sorted(effects.read_text().splitlines()) == [f"agent {number}" for number in range(AGENTS)], f"seed {seed}"


async def paying(ctx, log):
    return await ctx.step("pay", pay_slowly, log, side_effect=True)


async def pay_slowly(log):
    with Path(log).open("a") as file:
        file.write("paid\n")
    await asyncio.sleep(60)


@pytest.mark.parametrize("decision", ["it happened", "cancel"])
async def test_a_side_effect_that_was_cut_short_waits_for_its_owner(tmp_path, decision):
    log = tmp_path / "log"
    program = f"""
import asyncio
from headrace import Engine
from tests.agents.engine.test_killed_engines import paying
async def main():
    async with Engine({str(tmp_path / "a.run")!r}, isolation="inline") as engine:
        await (await engine.submit(paying, {str(log)!r}, key="p")).result()
asyncio.run(main())
"""
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    with subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": paths}) as child:
        while not log.exists() or not log.read_text():
            assert child.poll() is None
            time.sleep(0.01)
        child.kill()
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.register(paying)
        run = await engine.find("p")
        assert run is not None
        with pytest.raises(RunUndecided, match="may or may not have happened") as undecided:
            await asyncio.wait_for(run.result(), 20)
        assert (undecided.value.step, run.status().state) == ("pay", RunState.UNDECIDED)
        assert log.read_text() == "paid\n"
        match decision:
            case "it happened":
                await run.resolve("pay", result="receipt")
                assert await asyncio.wait_for(run.result(), 20) == "receipt"
                assert log.read_text() == "paid\n"
            case _:
                await run.cancel()
                assert run.status().state is RunState.CANCELLED


async def test_workers_of_a_killed_engine_have_ended_before_their_runs_go_on(tmp_path):
    log = tmp_path / "log"
    program = f"""
import asyncio
from headrace import Engine
from tests.agents.engine.isolated_functions import counting
async def main():
    async with Engine({str(tmp_path / "a.run")!r}) as engine:
        await (await engine.submit(counting, {str(log)!r}, 1000, key="c")).result()
asyncio.run(main())
"""
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    with subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": paths}) as child:
        while len(lines(log)) < 5:
            assert child.poll() is None
            time.sleep(0.01)
        warden = warden_of(tmp_path / "a.run")
        standby = int(Path(f"/proc/{warden}/stat").read_text().rpartition(")")[2].split()[1])
        for pid in (standby, warden):
            os.kill(pid, signal.SIGSTOP)  # they will not notice anything for a while
        child.kill()
    opening = asyncio.ensure_future(Engine(tmp_path / "a.run").__aenter__())
    try:
        await asyncio.sleep(0.5)
        assert not opening.done()
    finally:
        for pid in (warden, standby):
            os.kill(pid, signal.SIGCONT)
    engine = await asyncio.wait_for(opening, 10)
    assert not Path(f"/proc/{warden}").exists()
    await engine.__aexit__(None, None, None)
