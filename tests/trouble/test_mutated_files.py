"""Some seeds of the fuzzer (`./scripts/bench fuzz`): real files, changed at random, in processes of their own."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.fuzz import bases, play

# Rows out of order, which were read without end; 1.0 for 1; JSON that is nested too deeply, in SQL.
ONCE_FAILED = [4_233, 6_589, 643]


SEEDS = 80


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    share: float = metafunc.config.getoption("examples")
    metafunc.parametrize("seeds", [range(round(SEEDS * share)), ONCE_FAILED], ids=["first", "once failed"])


@pytest.mark.hypothesis  # its examples are drawn by ourselves, and `.ci/run` tries all of them, too
def test_a_changed_file_opens_right_or_is_refused_in_our_words(tmp_path: Path, seeds: Sequence[int]) -> None:
    outcomes = list(play(iter(seeds), bases(tmp_path), tmp_path))
    assert len(outcomes) == len(seeds)
    faults = [f"seed {each.seed}, {each.kind}: {fault}" for each in outcomes for fault in each.faults]
    assert not faults, "\n".join(faults)
