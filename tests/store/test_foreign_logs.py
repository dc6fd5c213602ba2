"""A log beside a file that is another file's: SQLite would replay it, and nothing in the file would show it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from headrace import Agent, Results, Scenario
from headrace.errors import LogMissing, RunFileDamaged
from headrace.store.connections import open_writer
from headrace.store.engine_file.engine_file import EngineFile
from headrace.store.kept_names import kept_logs
from headrace.store.logs import write_ahead_log
from headrace.store.logs.write_ahead_log import META_TABLE, WriteAheadLog
from headrace.store.run_file.rows import row_batch
from headrace.store.run_file.run_file import RunFile
from headrace.store.whole_files import compact_file, copy_file, verify
from tests.results import files

PEOPLE = 30


def job_about(city: str):
    people = [Agent(name=f"p{number}") for number in range(PEOPLE)]
    return files.job(files.survey("one"), people, [Scenario(city=city)])


@contextmanager
def half_done(path: Path, city: str) -> Iterator[RunFile]:
    """A run file that is open, some of its rows in its log alone."""
    asked = job_about(city)
    with files.opened(path, asked) as file:
        rows = [files.row(file, asked, ordinal, [city]) for ordinal in range(PEOPLE // 2)]
        file.journal.commit([row_batch(rows)], [])
        yield file


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def left_by_a_kill(path: Path, city: str) -> Path:
    """The file and its log as a kill in the middle of a run leaves them."""
    live = path.with_name(f"{city}-live.run")
    with half_done(live, city):
        put_both(live, path)
    return path


def put_both(path: Path, to: Path) -> None:
    to.write_bytes(path.read_bytes())
    log_of(to).write_bytes(log_of(path).read_bytes())


def answers_in(path: Path) -> set[str]:
    with Results.open(path) as results:
        return {result.answer["one"] for result in results}


def test_another_file_s_log_is_neither_read_nor_brought_in(tmp_path: Path) -> None:
    one, two = (left_by_a_kill(tmp_path / f"{city}.run", city) for city in ("Oslo", "Lima"))
    own, held = log_of(one).read_bytes(), one.read_bytes()
    log_of(one).write_bytes(log_of(two).read_bytes())
    for use in (
        lambda: Results.open(one),
        lambda: verify(one),
        lambda: copy_file(one, tmp_path / "copy.run", without_log=True),
        lambda: compact_file(one),
        lambda: open_writer(one),
        lambda: job_about("Oslo").run(one),
        lambda: job_about("Oslo").run(one, fresh=True),
    ):
        with pytest.raises(LogMissing, match=r"Oslo.run-wal is another file's log.*Move Oslo.run-wal away"):
            use()
    assert one.read_bytes() == held
    assert log_of(one).read_bytes() == log_of(two).read_bytes()
    log_of(one).write_bytes(own)
    with job_about("Oslo").run(one) as results:
        assert len(results) == PEOPLE
    assert not verify(one).findings


def test_a_file_s_log_of_an_earlier_opening_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    with half_done(path, "Oslo"):
        earlier = log_of(path).read_bytes()
    with files.opened(path, job_about("Oslo")):
        (tmp_path / "later.run").write_bytes(path.read_bytes())
    log_of(tmp_path / "later.run").write_bytes(earlier)
    with pytest.raises(LogMissing, match="one of another time"):
        Results.open(tmp_path / "later.run")


def test_an_engine_s_log_is_refused_beside_a_run_file_and_the_other_way_round(tmp_path: Path) -> None:
    run, engine = left_by_a_kill(tmp_path / "a.run", "Oslo"), tmp_path / "e.run"
    live = EngineFile.open(tmp_path / "live.run")
    put_both(tmp_path / "live.run", engine)
    live.close()
    of_run, of_engine = log_of(run).read_bytes(), log_of(engine).read_bytes()
    log_of(run).write_bytes(of_engine)
    log_of(engine).write_bytes(of_run)
    with pytest.raises(LogMissing, match="another file's log"):
        Results.open(run)
    with pytest.raises(LogMissing, match="another file's log"):
        EngineFile.open(engine)


@pytest.mark.parametrize("is_older", [False, True], ids=["closed in order", "of an earlier version"])
def test_a_file_that_says_no_salts_is_told_by_when_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_older: bool
) -> None:
    other = left_by_a_kill(tmp_path / "other.run", "Lima")
    path = tmp_path / "a.run"
    if is_older:
        with monkeypatch.context() as patched:
            patched.setattr(write_ahead_log, "_salts_of", lambda _: None)
            left_by_a_kill(path, "Oslo")
    else:
        with half_done(path, "Oslo"):
            pass
    assert answers_in(path) == {"Oslo"}
    log_of(path).write_bytes(log_of(other).read_bytes())
    with pytest.raises(LogMissing, match="another file's log"):
        Results.open(path)


def test_a_file_is_taken_with_its_log_whenever_it_was_cut_off(tmp_path: Path) -> None:
    path, cut = tmp_path / "a.run", tmp_path / "cut.run"
    asked = job_about("Oslo")
    with files.opened(path, asked) as file:
        for ordinal in range(PEOPLE):
            file.journal.commit([row_batch([files.row(file, asked, ordinal, ["Oslo"])])], [])
            if ordinal % 3 == 2:
                file.live._log.shorten(lambda: None)
            put_both(path, cut)
            with Results.open(cut) as results:
                assert len(results) == ordinal + 1


def test_a_file_says_the_salts_of_its_log_also_where_saying_so_begins_the_log_anew(tmp_path: Path) -> None:
    path, cut = tmp_path / "a.run", tmp_path / "cut.run"
    asked = job_about("Oslo")
    with files.opened(path, asked) as file:
        file.journal.commit([row_batch([files.row(file, asked, 0, ["Oslo"])])], [])
        log = WriteAheadLog(file.live.connection)
        for _ in range(3):
            with closing(apsw.Connection(str(path))) as other:
                other.wal_checkpoint()
            log.shorten(lambda: None)
            put_both(path, cut)
            assert answers_in(cut) == {"Oslo"}


def test_of_kept_logs_only_the_file_s_own_is_named(tmp_path: Path) -> None:
    logs: dict[Path, bytes] = {}
    for city in ("Oslo", "Lima"):
        path = left_by_a_kill(tmp_path / f"{city}.run", city)
        moved = path.rename(tmp_path / f"{city}-moved.run")
        logs[moved] = log_of(path).read_bytes()
        job_about("Bonn").run(path).close()
    for moved, held in logs.items():
        with pytest.raises(LogMissing) as missing:
            Results.open(moved)
        (own,) = (each for each in tmp_path.glob("*.*.run-wal") if each.read_bytes() == held)
        assert [each.name for each in tmp_path.glob("*.*.run-wal") if each.name in str(missing.value)] == [own.name]
        own.rename(log_of(moved))
        assert answers_in(moved) == {moved.name.partition("-")[0]}


def test_logs_that_cannot_be_compared_are_named_with_care_the_file_s_own_name_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.run"
    with monkeypatch.context() as patched:
        patched.setattr(write_ahead_log, "_salts_of", lambda _: None)
        left_by_a_kill(path, "Oslo")
    log_of(path).unlink()
    names = [f"{stem}.{at}.run-wal" for stem, at in (("b", "20260101-000000"), ("b", "20250101-000000-10"))]
    names += [f"{stem}.{at}.run-wal" for stem, at in (("b", "20250101-000000-9"), ("b", "20250101-000000"))]
    names += [f"{stem}.{at}.run-wal" for stem, at in (("a", "20260301-000000"), ("c", "20260201-000000"))]
    for name in sorted(names):
        (tmp_path / name).write_bytes(b"x" * 40)
    assert [each.name for each in kept_logs(path)] == names
    with pytest.raises(LogMissing, match=rf"It may be {' or '.join(names[:3])}, .*Copy the file and the log before"):
        Results.open(path)


def test_a_table_that_computes_what_it_says_is_not_read_before_it_is_refused(tmp_path):
    path = tmp_path / "a.run"
    with files.opened(path, job_about("Oslo")):
        pass
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(
            "ALTER TABLE meta RENAME TO other; CREATE TABLE meta(key, value AS (hex(zeroblob(100000000))));"
            "INSERT INTO meta(key) VALUES('log')"
        )
    log_of(path).write_bytes(bytes(1_000))
    apsw.memory_high_water(True)
    with pytest.raises(RunFileDamaged, match="table meta is not the one"):
        Results.open(path)
    assert apsw.memory_high_water() < 50_000_000


def test_the_tables_of_both_kinds_of_file_are_what_a_log_is_told_by(tmp_path):
    with files.opened(tmp_path / "a.run", job_about("Oslo")):
        pass
    EngineFile.open(tmp_path / "e.run").close()
    for name in ("a.run", "e.run"):
        with closing(apsw.Connection(str(tmp_path / name))) as connection:
            assert connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'meta'").get == META_TABLE


def test_a_refused_file_gets_no_empty_log_under_the_name_of_the_missing_one(tmp_path):
    path = left_by_a_kill(tmp_path / "a.run", "Oslo")
    log_of(path).unlink()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(LogMissing, match="is missing"):
        Results.open(path)
    with pytest.raises(LogMissing, match="is missing"):
        verify(path)
    assert sorted(tmp_path.iterdir()) == before


def killed_between_marks(path: Path) -> Path:
    """A file that says "more follows", with all of its log in it."""
    live = path.with_name("live.run")
    with half_done(live, "Oslo") as file:
        file.connection.execute("INSERT OR REPLACE INTO meta VALUES('log', 1)")
        file.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
        put_both(live, path)
    return path


def test_a_file_that_was_killed_between_two_marks_is_compacted_and_stays_readable(tmp_path):
    path = killed_between_marks(tmp_path / "a.run")
    compact_file(path)
    assert answers_in(path) == {"Oslo"}
    assert not verify(path).findings


def test_a_file_that_another_tool_took_out_of_wal_mode_is_whole(tmp_path):
    path = killed_between_marks(tmp_path / "a.run")
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    assert not log_of(path).exists()
    assert answers_in(path) == {"Oslo"}
