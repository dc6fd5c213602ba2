"""Totals after kills: they are those of exactly the interviews that are finished, whatever moment a kill hit."""

import random
from pathlib import Path
from typing import Any

import pytest

from headrace import Results
from headrace.store.whole_files import verify
from tests.trouble.children import Child, until
from tests.trouble.number_server import NumberServer
from tests.trouble.programs.run_numbers import FACTORS, GROUPS

pytestmark = pytest.mark.usefixtures("forks")

AGENTS, WINDOW, LATENCY_S = 240, 16, 0.01


def expected() -> list[dict[str, Any]]:
    groups = [[number for number in range(AGENTS) if number % GROUPS == group] for group in range(GROUPS)]
    return [
        {
            "group": group,
            "n": len(numbers),
            "three": 3 * sum(numbers),
            "five": 5 * sum(numbers),
            "most": 5 * max(numbers),
        }
        for group, numbers in enumerate(groups)
    ]


def check_at_rest(path: Path, server: NumberServer) -> None:
    """What a killed run left: totals of as many interviews as are finished, each of which the server has answered."""
    with Results.open(path) as results:
        finished, added = results.stats().interviews, sum(row["n"] for row in results.aggregate().to_dicts())
    whole = sum(all((number, factor) in server.answered for factor in FACTORS) for number in range(AGENTS))
    assert added == finished <= whole
    assert not verify(path).findings


@pytest.mark.parametrize(("workers", "keep", "kills"), [(0, "nothing", 6), (2, "nothing", 3), (0, "answers", 3)])
def test_totals_are_exact_after_every_kill(workers: int, keep: str, kills: int, tmp_path: Path) -> None:
    path, rng = tmp_path / "numbers.run", random.Random(workers)
    with NumberServer(LATENCY_S) as server:
        arguments = (path, server.url, AGENTS, WINDOW, workers, keep)
        for _ in range(kills):
            with Child("run_numbers", *arguments) as child:
                aim = server.calls + rng.randint(12, 66)
                until(lambda: server.calls >= aim or not child.is_alive, f"{aim} calls")  # noqa: B023 - used at once
                child.kill()
            if path.exists():
                check_at_rest(path, server)
        with Child("run_numbers", *arguments) as child:
            assert child.ended()[-1]["error"] is None
        again = sum(times - 1 for times in server.answered.values())
        assert set(server.answered) == {(number, factor) for number in range(AGENTS) for factor in FACTORS}
        assert again <= kills * WINDOW * len(FACTORS)
    with Results.open(path) as results:
        assert results.aggregate().to_dicts() == expected()
        assert (len(results), results.stats().failed) == (AGENTS, 0)
    assert not verify(path).findings
