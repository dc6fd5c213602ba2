"""How often Python looks for garbage while runs are under way."""

import gc
from collections.abc import Iterator

import pytest

from headrace.memory.collector import rare_collections


@pytest.fixture(autouse=True)
def threshold() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield before
    gc.set_threshold(*before)


def test_it_is_rarer_until_the_last_run_has_ended():
    first, second = rare_collections(), rare_collections()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold()[0] > 700
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] > 700
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [0, 1_000_000])
def test_a_user_who_wants_it_rarer_still_is_heeded(chosen: int):
    gc.set_threshold(chosen, 10, 10)
    with rare_collections():
        assert gc.get_threshold()[0] == chosen
    assert gc.get_threshold()[0] == chosen


def test_a_change_meanwhile_stays():
    with rare_collections():
        gc.set_threshold(5_000, 10, 10)
    assert gc.get_threshold()[0] == 5_000
