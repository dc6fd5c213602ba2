"""The scheduler in random histories: 10,000 by default, more with `pytest --histories N`."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.agents.scheduler.histories import Action, History, broken_rule, draw, first_broken, play, shortest
from tests.agents.scheduler.rules import Broken, CheckedWorld

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


def test_the_same_history_gives_the_same_commands():
    for seed in range(50):
        first, second = play(draw(seed)), play(draw(seed))
        assert [(run.id, run.epoch) for run in first.ended] == [(run.id, run.epoch) for run in second.ended]


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
    for name in ("step", "done", "wake", "beat ends", "cancel", "host", "close", "survey"):
        play(History(0, slots=1, hosts=1, stuck_at=None, actions=(Action(name, 7, 0.5),)))
