"""A log that has changed since it was written: SQLite reads it up to there and ignores the rest without a word."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest
from typer.testing import CliRunner

from headrace import Agent, Results
from headrace.cli.main import app
from headrace.errors import LogDamaged, RunFileGone
from headrace.store.connections import connect
from headrace.store.engine_file.engine_file import EngineFile
from headrace.store.logs import log_frames, write_ahead_log
from headrace.store.logs.log_frames import LogFrames
from headrace.store.logs.write_ahead_log import WriteAheadLog, check_log_is_whole
from headrace.store.run_file.rows import row_batch
from headrace.store.run_file.run_file import RunFile
from headrace.store.whole_files import compact_file, copy_file, verify
from tests.results import files

PEOPLE = 30
JOB = files.job(files.survey("one"), [Agent(name=f"p{number}") for number in range(PEOPLE)])


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def commit(file: RunFile, ordinal: int) -> None:
    file.journal.commit([row_batch([files.row(file, JOB, ordinal, ["yes"])])], [])


@contextmanager
def half_done(path: Path, rows: int) -> Iterator[RunFile]:
    """A run file that is open, each of its rows a commit in its log."""
    with files.opened(path, JOB) as file:
        for ordinal in range(rows):
            commit(file, ordinal)
        yield file


def left_by_a_kill(path: Path, rows: int = PEOPLE) -> Path:
    """The file and its log as a kill in the middle of a run leaves them."""
    live = path.with_name("live.run")
    with half_done(live, rows):
        path.write_bytes(live.read_bytes())
        log_of(path).write_bytes(log_of(live).read_bytes())
    return path


def change_a_bit(log: Path, at: int) -> None:
    held = bytearray(log.read_bytes())
    held[at] ^= 1
    log.write_bytes(held)


FRAME = 24 + 4096
PLACES = {
    "a page": lambda _: 32 + 3 * FRAME + 1_000,
    "a frame's salts": lambda _: 32 + 2 * FRAME + 9,
    "the middle": lambda size: size // 2,
    "the header's checksum": lambda _: 25,
    "the header's mark": lambda _: 3,
    "the header's page size": lambda _: 10,
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_log_that_changed_is_refused_and_left_as_it_is(tmp_path: Path, place: Callable[[int], int]) -> None:
    path = left_by_a_kill(tmp_path / "a.run")
    assert not verify(path).findings
    whole = log_of(path).read_bytes()
    change_a_bit(log_of(path), place(len(whole)))
    held = (path.read_bytes(), log_of(path).read_bytes())
    for use in (
        lambda: Results.open(path),
        lambda: verify(path),
        lambda: copy_file(path, tmp_path / "copy.run"),
        lambda: compact_file(path),
        lambda: JOB.run(path),
    ):
        with pytest.raises(LogDamaged, match=r"a.run-wal is damaged: .*headrace copy .* --without-log"):
            use()
    assert (path.read_bytes(), log_of(path).read_bytes()) == held
    copy_file(path, tmp_path / "rest.run", without_log=True)
    assert not verify(tmp_path / "rest.run").findings
    with JOB.run(tmp_path / "rest.run") as results:
        assert len(results) == PEOPLE
    log_of(path).write_bytes(whole)
    with Results.open(path) as results:
        assert len(results) == PEOPLE


@pytest.mark.parametrize("rows", [0, 1, 5, PEOPLE])
def test_what_a_power_cut_leaves_is_no_damage(tmp_path: Path, rows: int) -> None:
    """The last commit may lie on the disk in part; what came behind the last sync is few commits."""
    path = left_by_a_kill(tmp_path / "a.run", rows)
    change_a_bit(log_of(path), log_of(path).stat().st_size - 1_000)
    with Results.open(path) as results:
        assert len(results) >= rows - 1


def test_starting_over_keeps_a_damaged_log_with_its_file(tmp_path: Path) -> None:
    path = left_by_a_kill(tmp_path / "a.run")
    whole = log_of(path).read_bytes()
    change_a_bit(log_of(path), 32 + 3 * FRAME + 1_000)
    with JOB.run(path, fresh=True) as results:
        assert len(results) == PEOPLE
    (kept,) = tmp_path.glob("a.*.run")
    with pytest.raises(LogDamaged):
        Results.open(kept)
    log_of(kept).write_bytes(whole)
    assert len(list(Results.open(kept))) == PEOPLE


def test_what_a_writer_that_begins_the_log_anew_shows_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a moment SQLite's index says that the log is empty, and the log is still whole."""
    path = left_by_a_kill(tmp_path / "a.run")
    monkeypatch.setattr(write_ahead_log, "_pages_in", lambda _: 0)
    with Results.open(path) as results:
        assert len(results) == PEOPLE
    monkeypatch.setattr(write_ahead_log, "_pages_in", lambda _: 7)
    with Results.open(path) as results:
        assert len(results) == PEOPLE


def test_a_log_that_another_program_is_just_emptying_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = left_by_a_kill(tmp_path / "a.run")
    with closing(connect(path, flags=apsw.SQLITE_OPEN_READONLY)) as reader:
        os.truncate(log_of(path), 0)
        monkeypatch.setattr(write_ahead_log, "_has_rows", lambda _: True)
        check_log_is_whole(reader, path)


@pytest.mark.parametrize("error", [apsw.ReadOnlyError, apsw.BusyError, apsw.LockedError])
def test_a_log_that_sqlite_cannot_be_asked_of_is_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[apsw.Error]
) -> None:
    """A reader that may not write the log may read it all the same."""

    def refuse(_: apsw.Connection) -> int:
        raise error

    path = left_by_a_kill(tmp_path / "a.run")
    monkeypatch.setattr(write_ahead_log, "_pages_in", refuse)
    with Results.open(path) as results:
        assert len(results) == PEOPLE


def test_a_shorter_file_in_the_log_s_place_does_not_keep_rows_from_being_saved(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    smaller = left_by_a_kill(tmp_path / "other.run", 3)
    with pytest.raises(RunFileGone, match="All that was journaled is saved in"):
        write_while_both_are_replaced(path, smaller)
    (saved,) = tmp_path.glob("a.saved-*.run")
    with Results.open(saved) as results:
        assert len(results) == 20


def write_while_both_are_replaced(path: Path, by: Path) -> None:
    with half_done(path, 19) as file:
        by.replace(path)
        log_of(by).replace(log_of(path))
        commit(file, 19)


def test_a_log_that_was_removed_and_made_anew_empty_is_not_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    with pytest.raises(RunFileGone, match="All that was journaled is in it"):
        write_while_the_log_is_made_anew(path)
    with Results.open(path) as results:
        assert len(results) == 20


def write_while_the_log_is_made_anew(path: Path) -> None:
    with half_done(path, 19) as file:
        log_of(path).unlink()
        log_of(path).touch()
        commit(file, 19)


@pytest.mark.parametrize("page_bytes", [0, 1_001, 4_294_967_288])
def test_a_forged_page_size_is_damage(tmp_path: Path, page_bytes: int) -> None:
    """SQLite reads nothing of such a log, though its checksum is right; nor may we, a page of that size at a time."""
    path = left_by_a_kill(tmp_path / "a.run")
    header = bytearray(log_of(path).read_bytes()[:32])
    header[8:12] = page_bytes.to_bytes(4)
    header[24:] = log_frames._SUMS.pack(*log_frames._sums(bytes(header), bytes(header[:24]), (0, 0)))
    log_of(path).write_bytes(bytes(header) + log_of(path).read_bytes()[32:])
    with pytest.raises(LogDamaged):
        Results.open(path)


def test_verify_says_what_to_do_about_a_log_that_changed(tmp_path: Path) -> None:
    path = left_by_a_kill(tmp_path / "a.run")
    change_a_bit(log_of(path), 32 + 3 * FRAME + 1_000)
    result = CliRunner().invoke(app, ["verify", str(path)])
    assert result.exit_code == 1
    assert "  log: 1: " in result.stdout
    assert "headrace copy FILE NEW --without-log" in result.stdout


def test_an_engine_s_log_that_changed_is_refused(tmp_path: Path) -> None:
    live, path = EngineFile.open(tmp_path / "live.run"), tmp_path / "e.run"
    for number in range(10):
        live.commit([("INSERT INTO meta VALUES(?, 1)", (f"n{number}",))])
    path.write_bytes(live.path.read_bytes())
    log_of(path).write_bytes(log_of(live.path).read_bytes())
    live.close()
    change_a_bit(log_of(path), 32 + FRAME + 100)
    with pytest.raises(LogDamaged, match=r"e\.run-wal is damaged"):
        EngineFile.open(path)


def test_a_writer_that_commits_meanwhile_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = LogFrames.has_commits_behind
    behind: list[bool] = []
    with half_done(tmp_path / "a.run", 3) as file:

        def look(frames: LogFrames, pages: int) -> bool:
            if not behind:
                for ordinal in range(3, PEOPLE):
                    commit(file, ordinal)
            behind.append(looked_at(frames, pages))
            return behind[-1]

        monkeypatch.setattr(LogFrames, "has_commits_behind", look)
        with Results.open(tmp_path / "a.run") as results:
            assert len(results) == PEOPLE
    assert behind[0]


def write_to_a_log_that_is_cut_off(path: Path, left: int) -> None:
    with half_done(path, 20) as file:
        file.live.check_is_in_place()
        os.truncate(log_of(path), left)
        file.live._log._due_s = 0.0
        with pytest.raises(RunFileGone, match="cut off"):
            file.live.keep_log_short()
        with pytest.raises(RunFileGone, match="cut off"):
            file.live.check_is_in_place()
        commit(file, 20)


@pytest.mark.parametrize("left", [0, 20_000, 32 + 4 * FRAME])
def test_a_log_that_is_cut_off_while_it_is_written_costs_its_own_rows_alone(tmp_path: Path, left: int) -> None:
    path = tmp_path / "a.run"
    with pytest.raises(RunFileGone, match=r"cut off by another program.*--without-log"):
        write_to_a_log_that_is_cut_off(path, left)
    copy_file(path, tmp_path / "rest.run", without_log=True)
    assert not verify(tmp_path / "rest.run").findings
    with JOB.run(tmp_path / "rest.run") as results:
        assert len(results) == PEOPLE


def test_a_log_that_another_program_has_brought_in_is_not_cut_off(tmp_path: Path) -> None:
    with half_done(tmp_path / "a.run", 20) as file, closing(apsw.Connection(str(file.path))) as other:
        other.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # now it knows of the log
        other.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        assert log_of(file.path).stat().st_size == 0
        file.live.check_is_in_place()
        commit(file, 20)
    with Results.open(file.path) as results:
        assert len(results) == 21


def test_marks_are_on_disk_where_a_reader_keeps_the_log_from_being_brought_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, int]] = []
    with half_done(tmp_path / "a.run", 3) as file:
        log, mark = file.live._log, WriteAheadLog._mark

        def marked(self: WriteAheadLog, what: int, *more) -> None:
            synced.append((what, self._connection.pragma("synchronous")))
            mark(self, what, *more)

        monkeypatch.setattr(WriteAheadLog, "_mark", marked)
        with closing(apsw.Connection(str(file.path), flags=apsw.SQLITE_OPEN_READONLY)) as reader:
            reader.execute("BEGIN; SELECT count(*) FROM interviews").fetchall()
            commit(file, 3)
            log.shorten(lambda: None)
        log.shorten(lambda: None)
    assert synced == [(1, 1), (0, 2), (1, 1), (0, 1)]
