"""A hundred kills at chosen moments; `./scripts/bench failpoints` has a thousand, at all of them."""

from pathlib import Path

import pytest

from benchmarks.children.kill_scenarios import SCENARIOS
from benchmarks.kill_storm import prepared, storm

KILLS, EACH = 100, 5
SHORT = {"a read after a kill": 2}  # have no more moments
# Changes of journal mode, recovery, names: where a file is neither the old nor the new one for a moment.
BETWEEN = ("-journal", "delete", "rename", "replace", "link", "truncate")


def spread(moments: list[int], count: int) -> set[int]:
    """So many of them, from the first to the last."""
    step = max(1.0, (len(moments) - 1) / max(1, count - 1))
    return {moments[round(number * step)] for number in range(count) if round(number * step) < len(moments)}


def chosen(moments: list[str]) -> list[int]:
    delicate = [number for number, moment in enumerate(moments) if any(sign in moment for sign in BETWEEN)]
    plain = [number for number in range(len(moments)) if number not in delicate]
    found = spread(plain, EACH - len(spread(delicate, EACH - 2)))
    return sorted(found | spread(delicate, EACH - len(found)))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_kill_at_any_moment_loses_doubles_and_blocks_nothing(name: str, tmp_path: Path) -> None:
    kills = [(name, moment) for moment in chosen(prepared(name, tmp_path))]
    assert len(kills) == SHORT.get(name, EACH)
    assert [(kill.moment, kill.trouble) for kill in storm(kills, {name: tmp_path}) if kill.trouble] == []


def test_there_are_a_hundred_of_them() -> None:
    assert sum(SHORT.get(name, EACH) for name in SCENARIOS) >= KILLS
