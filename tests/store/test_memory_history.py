import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headrace import Job, Model, QuestionFreeText, Results, Survey
from headrace.errors import RunFileDamaged
from headrace.store.run_file import run_journal
from headrace.store.whole_files import copy_file, verify
from tests.results.files import city, job, opened, survey
from tests.store.kept_files import FORMATS, plain_job, unpacked
from tests.trouble.children import Child, until


def slow_job(seconds: float) -> Job:
    async def answer(_request: object) -> str:
        await asyncio.sleep(seconds)
        return "x"

    asked = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    return asked.by(Model.from_function(answer))


def edit(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "finished.run"
    plain_job().run(path).close()
    return path


def test_a_run_leaves_its_memory_in_its_file(finished: Path):
    with Results.open(finished) as results:
        points = results.memory_history()  # one for each second that it took
        point = points[-1]
        assert (points[0].second, {each.run for each in points}, point.done, int(point.level)) == (0, {1}, 12, 0)
        assert 10_000_000 < point.memory_bytes <= (results.stats().peak_memory or 0) < point.budget_bytes
        assert 0 < point.stored_bytes <= finished.stat().st_size


def test_all_runs_of_a_file_make_one_history(tmp_path: Path):
    path = tmp_path / "a.run"
    for limit in (4, 8, None):
        plain_job().run(path, limit=limit).close()
    with Results.open(path) as results:
        points = results.memory_history()
        assert {point.run: point.done for point in points} == {1: 4, 2: 8, 3: 12}
        seconds = [point.second for point in points]
        assert seconds == sorted(set(seconds))


def test_a_killed_run_has_its_history_and_its_highest_memory(tmp_path: Path):
    path = tmp_path / "killed.run"

    def points() -> int:
        if not path.exists():
            return 0
        with Results.open(path) as results:
            return len(results.memory_history())

    with Child("run_town", path, 400, 0.02, 4) as child:
        until(lambda: points() >= 2, "two points of the history", every_s=0.1)
        child.kill()
    with Results.open(path) as results:
        history, stats = results.memory_history(), results.stats()
        assert len(history) >= 2
        assert stats.peak_memory == max(point.memory_bytes for point in history)
        assert history[-1].done <= stats.interviews
    assert not verify(path).findings


def test_a_run_that_waits_long_for_a_reply_notes_its_memory_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run_journal, "IDLE_NOTED_EVERY_S", 1.1)
    slow_job(3.5).run(tmp_path / "slow.run").close()
    with Results.open(tmp_path / "slow.run") as results:
        assert len({point.at for point in results.memory_history()}) >= 3


@pytest.mark.parametrize("written_as", FORMATS)
def test_an_older_file_has_no_history_until_it_runs_again(tmp_path: Path, written_as: str):
    path = unpacked("plain", tmp_path, written_as)
    with Results.open(path) as results:
        assert results.memory_history() == []
        assert results.stats().peak_memory
    with plain_job().run(path) as results:
        points = results.memory_history()
        assert ({point.run for point in points}, points[-1].done) == ({2}, 12)
    assert not verify(path).findings


def test_a_copy_has_the_history(finished: Path, tmp_path: Path):
    copy_file(finished, tmp_path / "copy.run")
    with Results.open(finished) as one, Results.open(tmp_path / "copy.run") as other:
        assert one.memory_history() == other.memory_history()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE memory_history SET memory_bytes = memory_bytes + 1",
        "UPDATE memory_history SET checksum = NULL",
        "UPDATE memory_history SET level = 7",
        "UPDATE memory_history SET at = 'x'",
        "UPDATE memory_history SET second = -1",
        "UPDATE memory_history SET seconds = 3",
    ],
)
def test_a_damaged_history_is_found_and_keeps_no_run_from_going_on(finished: Path, tmp_path: Path, change: str):
    path = Path(shutil.copy(finished, tmp_path / "damaged.run"))
    edit(path, change)
    with Results.open(path) as results:
        with pytest.raises(RunFileDamaged, match="memory history"):
            results.memory_history()
        assert len(list(results)) == 12
    assert [*verify(path).findings] == ["memory history"]
    with plain_job().run(path, n=2) as results:
        assert {point.run for point in results.memory_history()} == {2}
    assert not verify(path).findings


@pytest.mark.parametrize(
    "code",
    [
        "CREATE TRIGGER t AFTER INSERT ON memory_history BEGIN DELETE FROM interviews; END",
        "CREATE INDEX i ON memory_history(hex(zeroblob(second)))",
    ],
)
def test_code_on_the_history_is_refused(finished: Path, tmp_path: Path, code: str):
    path = Path(shutil.copy(finished, tmp_path / "code.run"))
    edit(path, code)
    with pytest.raises(RunFileDamaged, match="code"):
        Results.open(path)


def test_another_table_of_that_name_is_refused(finished: Path, tmp_path: Path):
    path = Path(shutil.copy(finished, tmp_path / "other.run"))
    edit(path, "ALTER TABLE memory_history RENAME TO moved")
    edit(path, "CREATE VIEW memory_history AS SELECT * FROM moved")
    with pytest.raises(RunFileDamaged, match="memory_history"):
        Results.open(path)


def test_a_history_of_no_rows_costs_no_commit(tmp_path: Path):
    """Outside a run nothing is noted: the journal alone writes rows, and no history."""
    with Results.open(city(tmp_path / "city.run")) as results:
        assert results.memory_history() == []
    with opened(tmp_path / "empty.run", job(survey("q"))) as file:
        assert not file.journal.is_note_due
