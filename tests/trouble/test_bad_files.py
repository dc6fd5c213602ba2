import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from headrace import Job, Results
from headrace.errors import HeadraceError, NotARunFile, RunFileDamaged, RunFileError, RunFileTooNew
from tests.trouble.programs.letters import letters_job
from tests.trouble.programs.town import town_job

COUNT, CHARS = 60, 2_000


def job() -> Job:
    return letters_job(COUNT, chars=CHARS)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "finished.run"
    job().run(path).close()
    return path


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(finished, tmp_path / "copy.run"))


@contextmanager
def left_as_it_is(folder: Path) -> Iterator[None]:
    """Fails where anything in a folder changes: other bytes, or a file more or less."""
    before = {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}
    yield
    assert {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()} == before


def refused_everywhere(path: Path, error: type[HeadraceError], words: str) -> None:
    """Running, running afresh, streaming, reading and making a job of it all say the same, and change nothing."""
    ways: list[Callable[[], object]] = [
        lambda: job().run(path),
        lambda: job().run(path, fresh=True),
        lambda: next(iter(job().stream(path))),
        lambda: Results.open(path),
        lambda: Job.open(path),
    ]
    for way in ways:
        with left_as_it_is(path.parent), pytest.raises(error, match=words) as raised:
            way()
        assert type(raised.value) is error
        assert str(path) in str(raised.value)


def test_a_text_file_is_not_a_run_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.run"
    path.write_text("Dear diary, " * 1_000)
    refused_everywhere(path, NotARunFile, "not a run file")


def test_a_short_text_file_is_not_a_run_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.run"
    path.write_text("x")
    refused_everywhere(path, NotARunFile, "not a run file")


def test_a_database_of_another_program_is_not_a_run_file(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE boxes(number)")
        connection.execute("CREATE TABLE results(number)")
        connection.execute("INSERT INTO boxes VALUES(1)")
        connection.commit()
    refused_everywhere(path, NotARunFile, "another program")


def test_a_run_file_of_a_newer_headrace_is_refused_with_the_way_out(copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("PRAGMA user_version=99")
    refused_everywhere(copy, RunFileTooNew, "99.*Open it with the Headrace that wrote it")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_truncated_run_file_is_damaged(copy: Path, share: float) -> None:
    whole = copy.read_bytes()
    copy.write_bytes(whole[: int(len(whole) * share)])
    refused_everywhere(copy, RunFileDamaged, "damaged")


def test_an_empty_file_has_nothing_to_read_and_nothing_to_lose(tmp_path: Path) -> None:
    path = tmp_path / "empty.run"
    path.touch()
    with left_as_it_is(tmp_path), pytest.raises(NotARunFile, match="empty"):
        Results.open(path)
    # What a run leaves that was killed at its very first moment: the next one uses it.
    with job().run(path) as results:
        assert len(results) == COUNT


def flip_a_byte_in_the_detail_of(path: Path, ordinal: int) -> None:
    """Change one byte in the middle of a stored detail, on disk, where no page checksum would notice."""
    with closing(apsw.Connection(str(path))) as connection:
        detail: bytes = connection.execute("SELECT detail FROM details WHERE ordinal = ?", (ordinal,)).get
    # Behind the head of the cell, and before its tail may have gone to another page.
    piece = detail[20:120]
    content = bytearray(path.read_bytes())
    assert content.count(piece) == 1
    content[content.index(piece) + 50] ^= 0x10
    path.write_bytes(content)


def test_a_flipped_byte_in_a_detail_is_noticed_and_the_rest_can_be_read(copy: Path) -> None:
    flip_a_byte_in_the_detail_of(copy, 7)
    with closing(apsw.Connection(str(copy))) as connection:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
    with left_as_it_is(copy.parent), Results.open(copy) as results:
        assert len([result.answer for result in results]) == COUNT
        assert results[8].raw_responses["signed"] == "signed 8"
        with pytest.raises(RunFileDamaged, match=r"interview 7 .*damaged"):
            results[7].raw_responses  # noqa: B018
        with pytest.raises(RunFileDamaged, match=r"interview 7 .*damaged"):
            results[7].prompts  # noqa: B018


def test_a_flipped_byte_in_a_failed_interview_is_said_when_it_is_tried_again(tmp_path: Path) -> None:
    path, failing = tmp_path / "town.run", town_job(5, 0.0)
    with failing.run(path) as results:
        ordinal = next(results.failed()).ordinal
    flip_a_byte_in_the_detail_of(path, ordinal)
    with pytest.raises(RunFileDamaged, match=rf"interview {ordinal} .*damaged"):
        failing.run(path, retry_failed=True)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    for way in (lambda: job().run(folder), lambda: job().run(folder, fresh=True), lambda: Results.open(folder)):
        with left_as_it_is(tmp_path), pytest.raises(RunFileError, match=r"folder"):
            way()
    assert (folder / "mine.txt").read_text() == "mine"


def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a_file").write_text("mine")
    for path in (tmp_path / "a_file" / "x.run", tmp_path / "a_file" / "deeper" / "x.run"):
        for way in (lambda: job().run(path), lambda: Results.open(path), lambda: Job.open(path)):  # noqa: B023
            with left_as_it_is(tmp_path), pytest.raises(RunFileError, match=r"a_file"):
                way()


def test_a_place_where_nothing_can_be_written_is_refused() -> None:
    for path in (Path("/proc/x.run"), Path("/proc/nobody/x.run"), Path("/sys/x.run")):
        with pytest.raises(RunFileError, match=str(path.parent)):
            job().run(path)


def test_a_missing_file_cannot_be_read_and_is_not_made(tmp_path: Path) -> None:
    for way in (lambda: Results.open(tmp_path / "none.run"), lambda: Job.open(tmp_path / "none.run")):
        with left_as_it_is(tmp_path), pytest.raises(RunFileError, match="no run file"):
            way()
