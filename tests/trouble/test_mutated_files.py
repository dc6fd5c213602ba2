"""Some seeds of the fuzzer (`./scripts/bench fuzz`): real files, changed at random, in processes of their own."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.fuzz import play
from benchmarks.fuzz_bases import bases, file_without_rows, kept_bases
from headrace import Job
from headrace.cli.status.run_status import show_status
from headrace.errors import RunFileDamaged
from headrace.store.whole_files import verify

# Of the kept bases: rows out of order, which were read without end; 1.0 for 1; JSON that is nested too deeply, in SQL.
ONCE_FAILED = [4_233, 6_589, 643]


SEEDS = 80


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" not in metafunc.fixturenames:
        return
    share: float = metafunc.config.getoption("examples")
    some = [(range(round(SEEDS * share)), bases), (ONCE_FAILED, kept_bases)]
    metafunc.parametrize(("seeds", "files"), some, ids=["first", "once failed"])


@pytest.mark.hypothesis  # its examples are drawn by ourselves, and `.ci/run` tries all of them, too
def test_a_changed_file_opens_right_or_is_refused_in_our_words(
    tmp_path: Path, seeds: Sequence[int], files: Callable[[Path], list[Path]]
) -> None:
    outcomes = list(play(iter(seeds), files(tmp_path), tmp_path))
    assert len(outcomes) == len(seeds)
    faults = [f"seed {each.seed}, {each.kind}: {fault}" for each in outcomes for fault in each.faults]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("column", "value"),
    [("details.detail", "x"), ("totals.state", 10**11), ("totals.state", 2**63 - 1), ("totals.state", "x")],
)
def test_a_value_that_no_run_writes_is_refused_in_a_file_without_rows(
    tmp_path: Path, column: str, value: object
) -> None:
    path, (table, _, name) = file_without_rows(tmp_path / "a.run"), column.partition(".")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {name} = ?", (value,))
    with pytest.raises(RunFileDamaged):
        Job.open(path).run(path, retry_failed=True)
    assert verify(path).findings


@pytest.mark.parametrize("change", ["reused = 'x'", "peak_memory_bytes = 'x'", "endpoints = '[1]'", "outcome = X'00'"])
def test_what_is_refused_of_a_file_s_runs_is_found_by_verify(tmp_path: Path, change: str) -> None:
    path = file_without_rows(tmp_path / "a.run")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE runs SET {change}")
    with pytest.raises(RunFileDamaged, match="what it says of its runs"):
        show_status(path, as_json=True)
    assert list(verify(path).findings) == ["runs"]
