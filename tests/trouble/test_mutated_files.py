"""Some seeds of the fuzzer (`./scripts/bench fuzz`): real files, changed at random, in processes of their own."""

from pathlib import Path

import pytest

from benchmarks.fuzz import bases, play


@pytest.mark.parametrize("first", [0, 1_000])
def test_a_changed_file_opens_right_or_is_refused_in_our_words(tmp_path: Path, first: int) -> None:
    outcomes = list(play(iter(range(first, first + 40)), bases(tmp_path), tmp_path))
    assert len(outcomes) == 40
    faults = [f"seed {each.seed}, {each.kind}: {fault}" for each in outcomes for fault in each.faults]
    assert not faults, "\n".join(faults)
