"""The scheduler in random histories: 1,000 by default, more with `pytest --histories N`; `.ci/run` plays 100,000."""

import os
import random
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.agents.scheduler.broken import Broken
from tests.agents.scheduler.histories import Action, History, broken_rule, draw, first_broken, play, shortest
from tests.agents.scheduler.rules import CheckedWorld

_ROOT = Path(__file__).parents[3]
_IN_ONE_TEST = 10_000
_IN_ONE_CALL = 500


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" in metafunc.fixturenames:
        histories = metafunc.config.getoption("histories")
        metafunc.parametrize("seeds", _parts(range(histories), _IN_ONE_TEST), ids=str)


def _parts(whole: range, size: int) -> list[range]:
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def test_random_histories_break_no_rule(seeds: range):
    parts = _parts(seeds, _IN_ONE_CALL)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        broken = [found for found in pool.map(first_broken, parts) if found is not None]
    if broken:
        pytest.fail(broken[0], pytrace=False)  # whole: the shortest history that shows it


def test_the_same_history_gives_the_same_commands_in_every_process():
    """Two processes: with another hash seed, an order that came from a set or from an address would differ."""
    told = [_commands_of_many_histories(hash_seed) for hash_seed in ("1", "2")]
    assert len(told[0].splitlines()) > 5_000
    assert told[0] == told[1]


def _commands_of_many_histories(hash_seed: str) -> str:
    program = (
        "from tests.agents.scheduler.histories import draw, play\n"
        "for seed in range(250): print(*play(draw(seed)).sent, sep='\\n')"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_history_that_breaks_a_rule_is_shrunk_to_what_shows_it(monkeypatch: pytest.MonkeyPatch):
    def check_world(world: CheckedWorld, event: object) -> None:
        if sum(run.slot is not None for run in world.runs.values()) > 1:
            raise Broken("two at once")

    monkeypatch.setattr(CheckedWorld, "check_world", check_world)
    found = next(history for history in map(draw, range(100)) if broken_rule(history) == "two at once")
    least = shortest(found)
    assert broken_rule(least) == "two at once"
    assert len(least.actions) <= 4 < len(found.actions)


def test_any_part_of_a_history_is_a_history():
    for seed in range(200):
        whole, chance = draw(seed), random.Random(seed)
        kept = tuple(action for action in whole.actions if chance.random() < 0.5)
        assert broken_rule(replace(whole, actions=kept)) is None


@pytest.mark.parametrize(
    "name", ["step", "grow", "done", "effect", "child", "cancel", "late", "park", "wake", "beat ends"]
)
def test_an_action_with_nothing_there_to_do_it_sends_nothing(name: str):
    nothing = History(0, slots=1, hosts=1, stuck_at=None, actions=())
    one = replace(nothing, actions=(Action(name, 7, 0.5),))
    assert play(one).sent == play(nothing).sent
