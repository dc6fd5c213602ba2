import json
import sqlite3
from pathlib import Path

import pytest

from headrace import Model, QuestionFreeText, Survey
from headrace.errors import RunFileError
from headrace.store.lock import WriterLock
from headrace.store.run_file.removal import remove_run
from tests.cli.terminals import headrace, in_terminal

pytestmark = pytest.mark.usefixtures("forks")


@pytest.fixture
def runs(headrace_home: Path) -> Path:
    return headrace_home / "runs"


def run(path: Path) -> Path:
    asked = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    asked.by(Model("test", canned_response="x")).run(path, n=3, limit=2).close()
    return path


def test_run_files_are_listed_with_size_progress_and_age(runs: Path):
    run(runs / "a.run")
    (runs / "b.run").write_text("not one of ours")
    told = json.loads(headrace("runs", "--json").stdout)
    mine = next(run for run in told if run["path"].endswith("a.run"))
    assert (mine["interviews"], mine["total"], mine["failed"], mine["trouble"]) == (2, 3, 0, None)
    assert mine["size_bytes"] == (runs / "a.run").stat().st_size
    assert {run["trouble"] for run in told} == {None, f"{runs / 'b.run'} is not a run file."}
    shown = headrace("runs").stdout
    assert "2/3" in shown
    assert "unreadable" in shown
    assert f"in {runs}" in shown


def test_a_narrow_list_names_the_files_and_says_once_where_they_are(runs: Path):
    run(runs / "a.run")
    shown = in_terminal("runs", columns=40)
    assert [line for line in shown.lines if line.rstrip().endswith("now   a.run")]


def test_a_listed_name_that_is_not_in_the_current_directory_is_told_with_its_path(runs: Path):
    listed = run(runs / "demo.run")
    ended = headrace("status", "demo.run")
    assert ended.returncode == 1
    assert f"There is no run file at {Path('demo.run').resolve()}." in ended.stderr
    assert f"One of that name is in your data directory: {listed}\n" in ended.stderr


def test_no_run_files_are_no_error(runs: Path):
    ended = headrace("runs")
    assert (ended.returncode, ended.stdout) == (0, f"no run files in {runs}\n")


def test_removing_takes_the_file_and_all_that_lies_beside_it(runs: Path):
    for name in ("a.run", "b.run", "c.run"):
        run(runs / name)
    for suffix in ("-wal", "-shm", "-journal", ".making"):
        (runs / f"a.run{suffix}").write_bytes(b"")
    ended = headrace("runs", "--remove", "a.run", "--remove", str(runs / "b.run"), "--yes", "--json")
    assert [Path(gone["path"]).name for gone in json.loads(ended.stdout)] == ["a.run", "b.run"]
    assert [path.name for path in runs.iterdir()] == ["c.run"]


def test_without_a_terminal_removing_needs_yes(runs: Path):
    run(runs / "a.run")
    ended = headrace("runs", "--remove", "a.run")
    assert ended.returncode == 1
    assert "--yes" in ended.stderr
    assert (runs / "a.run").exists()


@pytest.mark.parametrize(("typed", "is_kept"), [("n\n", True), ("y\n", False)])
def test_on_a_terminal_removing_asks(runs: Path, typed: str, is_kept: bool):
    run(runs / "a.run")
    shown = in_terminal("runs", "--remove", "a.run", typed=typed)
    assert "Remove for good?" in shown.text
    assert (runs / "a.run").exists() is is_kept


def test_what_is_not_a_run_file_is_not_removed_nor_is_anything_with_it(runs: Path, tmp_path: Path):
    run(runs / "a.run")
    (tmp_path / "notes.txt").write_text("mine")
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("create table t(x)")
    other.close()
    for path in (tmp_path / "notes.txt", tmp_path / "other.db", tmp_path, tmp_path / "nowhere.run"):
        with pytest.raises(RunFileError, match=str(path)):
            remove_run(path)
    ended = headrace("runs", "--remove", "a.run", "--remove", str(tmp_path / "notes.txt"), "--yes")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "other.db"]
    assert (runs / "a.run").exists()


def test_a_file_in_use_is_not_removed(runs: Path):
    lock = WriterLock(run(runs / "a.run"))
    try:
        ended = headrace("runs", "--remove", "a.run", "--yes")
    finally:
        lock.release()
    assert ended.returncode == 1
    assert "is being written by another run" in ended.stderr
    assert (runs / "a.run").exists()
