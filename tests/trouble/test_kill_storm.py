"""A hundred kills at chosen moments; `./scripts/bench failpoints` has a thousand, at all of them."""

from pathlib import Path

from benchmarks.children.kill_scenarios import SCENARIOS
from benchmarks.kill_storm import prepared, storm

KILLS = 100
# Changes of journal mode, recovery, names: where a file is neither the old nor the new one for a moment.
BETWEEN = ("-journal", "delete", "rename", "replace", "unlink", "truncate")


def test_kills_at_a_hundred_moments_lose_double_and_block_nothing(tmp_path: Path) -> None:
    places = {name: tmp_path / str(number) for number, name in enumerate(SCENARIOS)}
    delicate: list[tuple[str, int]] = []
    plain: list[tuple[str, int]] = []
    for name, place in places.items():
        for number, moment in enumerate(prepared(name, place)):
            (delicate if any(sign in moment for sign in BETWEEN) else plain).append((name, number))
    chosen = [*delicate[:: len(delicate) // (3 * KILLS // 4) or 1], *plain[:: len(plain) // (KILLS // 4) or 1]]
    assert len(chosen) >= KILLS
    assert [(kill.scenario, kill.moment, kill.trouble) for kill in storm(chosen, places) if kill.trouble] == []
