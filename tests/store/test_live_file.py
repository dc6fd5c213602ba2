"""A file while it is written: what happens to it by hand is noticed, said, and costs nothing that was journaled."""

import asyncio
import fcntl
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from headrace import Agent, AgentList, Engine, Job, Model, QuestionFreeText, Results, Survey
from headrace.errors import LogMissing, OptionError, RunFileBusy, RunFileGone
from headrace.limits import RunOptions
from headrace.store.connections import roll_back
from headrace.store.engine_file.engine_file import EngineFile
from headrace.store.kept_names import free_name
from headrace.store.live_file import LiveFile
from headrace.store.lock import WriterLock, writer_of
from headrace.store.logs import write_ahead_log
from headrace.store.logs.write_ahead_log import WriteAheadLog
from headrace.store.run_file.run_file import RunFile
from headrace.store.whole_files import copy_file
from tests.results import files
from tests.trouble.children import Child, run_child, until
from tests.trouble.programs.town import town_job

pytestmark = pytest.mark.usefixtures("forks")

PEOPLE, AT = 400, 40


def job(calls: list[str]) -> Job:
    def respond(request) -> str:
        calls.append(request.agent["name"])
        return f"I am {request.agent['name']}"

    survey = Survey([QuestionFreeText(question_name="who", question_text="Who are you?")])
    people = AgentList(Agent(name=f"p{number}", traits={"name": f"p{number}"}) for number in range(PEOPLE))
    return survey.by(people).by(Model("test", canned_response=respond, latency_s=0.02))


def names_in(path: Path) -> list[str]:
    with Results.open(path) as results:
        return [result.agent["name"] for result in results]


def run_and(path: Path, act: Callable[[], object], calls: list[str]) -> RunFileGone:
    """Run the job and do something to its file when some results are there; the error it ends with."""
    seen: list[int] = []

    def on_result(result) -> None:
        seen.append(result.ordinal)
        if len(seen) == AT:
            act()

    with pytest.raises(RunFileGone) as gone:
        job(calls).run(path, concurrency=8, on_result=on_result)
    return gone.value


def goes_on(path: Path, calls: list[str]) -> None:
    """Everything that was answered is in this file, and the rest is added to it."""
    answered = list(calls)
    assert sorted(names_in(path)) == sorted(answered)
    assert len(answered) < PEOPLE, "the run went on as if nothing had happened"
    with job(calls).run(path, concurrency=50) as results:
        assert len(results) == PEOPLE
    assert len(calls) == len(set(calls)) == PEOPLE


def test_a_removed_run_file_stops_the_run_and_is_saved_under_another_name(tmp_path: Path) -> None:
    path, calls = tmp_path / "x.run", list[str]()
    gone = run_and(path, path.unlink, calls)
    assert f"{path} was removed while it was being written" in str(gone)
    (saved,) = tmp_path.glob("*.run")
    assert str(saved) in str(gone)
    assert [entry.name for entry in tmp_path.iterdir()] == [saved.name], "something of the removed file is left"
    goes_on(saved, calls)


def test_a_moved_run_file_stops_the_run_and_is_whole_where_it_is(tmp_path: Path) -> None:
    path, other, calls = tmp_path / "x.run", tmp_path / "elsewhere.run", list[str]()
    gone = run_and(path, lambda: path.rename(other), calls)
    assert f"{path} was moved to {other}" in str(gone)
    assert [entry.name for entry in tmp_path.iterdir()] == [other.name]
    goes_on(other, calls)


def test_a_replaced_run_file_stops_the_run_and_is_saved_beside_the_new_one(tmp_path: Path) -> None:
    path, another, calls = tmp_path / "x.run", tmp_path / "another", list[str]()
    another.write_text("something else")
    gone = run_and(path, lambda: another.replace(path), calls)
    assert "replaced by another file" in str(gone)
    assert path.read_text() == "something else"
    (saved,) = tmp_path.glob("x.saved-*.run")
    goes_on(saved, calls)


def test_a_removed_log_stops_the_run_and_everything_is_in_the_file(tmp_path: Path) -> None:
    path, calls = tmp_path / "x.run", list[str]()
    gone = run_and(path, (tmp_path / "x.run-wal").unlink, calls)
    assert "its log" in str(gone)
    goes_on(path, calls)


def test_a_moved_directory_takes_the_run_file_with_it(tmp_path: Path) -> None:
    path, calls = tmp_path / "here" / "x.run", list[str]()
    gone = run_and(path, lambda: path.parent.rename(tmp_path / "there"), calls)
    assert str(tmp_path / "there" / "x.run") in str(gone)
    goes_on(tmp_path / "there" / "x.run", calls)


async def greet(_ctx, name):
    return f"hello {name}"


async def test_an_engine_whose_file_is_removed_confirms_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "e.run"

    async def remove_in_the_middle() -> None:
        async with Engine(path, isolation="inline") as engine:
            assert await (await engine.submit(greet, "Ada", key="a")).result() == "hello Ada"
            path.unlink()
            with pytest.raises(RunFileGone):
                await engine.submit(greet, "Bob", key="b")

    with pytest.raises(RunFileGone, match="removed"):
        await remove_in_the_middle()
    (saved,) = tmp_path.glob("e.saved-*.run")
    async with Engine(saved, isolation="inline") as engine:
        engine.register(greet)
        found = await engine.find("a")
        assert found is not None
        assert await found.result() == "hello Ada"


# --- the log


def kill_in_the_middle(path: Path) -> None:
    with Child("run_town", path, 20, 0.01, 5, GATE=str(path.with_name("gate"))) as child:
        until(lambda: path.exists() and count_of(path) > 0, "some results")
        child.kill()
    assert path.with_name(path.name + "-wal").stat().st_size > 4_000


def count_of(path: Path) -> int:
    try:
        with Results.open(path) as results:
            return len(results)
    except Exception:  # noqa: BLE001 - it is being set up
        return 0


def test_a_file_whose_log_is_gone_is_neither_read_nor_run_nor_started_over_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "town.run"
    kill_in_the_middle(path)
    path.with_name("town.run-wal").unlink()
    with pytest.raises(LogMissing, match=r"town.run-wal is missing.*headrace copy"):
        Results.open(path)
    (tmp_path / "gate").touch()
    assert run_child("run_town", path, 20, 0.001, 50)[-1]["error"] == "LogMissing"
    with town_job(20, 0.0).run(path, fresh=True) as results:
        assert len(results) == 100
    assert len(list(tmp_path.glob("town.*.run"))) == 1, "starting over keeps what is left"


def test_the_log_of_a_file_that_was_only_moved_is_kept_and_named(tmp_path: Path, caplog) -> None:
    path, archived = tmp_path / "town.run", tmp_path / "archive" / "town.run"
    kill_in_the_middle(path)
    done = count_of(path)
    archived.parent.mkdir()
    path.rename(archived)  # and its log forgotten
    with town_job(20, 0.0).run(path) as results:
        assert len(results) == 100
    (kept,) = tmp_path.glob("town.*.run-wal")
    (told,) = caplog.records
    assert told.levelname == "WARNING"
    assert str(kept) in told.getMessage()
    with pytest.raises(LogMissing) as missing:
        Results.open(archived)
    assert "It may be" not in str(missing.value)
    beside = kept.rename(archived.with_name(kept.name))
    for name in ("town.run", "renamed.run"):
        archived = archived.rename(archived.with_name(name))
        with pytest.raises(LogMissing, match=rf"It is {kept.name}, .*: name it {name}-wal\."):
            Results.open(archived)
    beside.rename(archived.with_name("renamed.run-wal"))
    assert count_of(archived) == done > 0


def test_a_kept_log_never_gets_the_name_of_a_kept_file_nor_the_other_way_round(tmp_path: Path) -> None:
    moment = time.strptime("2026-05-12 09:30:00", "%Y-%m-%d %H:%M:%S")
    (tmp_path / "a.20260512-093000.run").touch()
    (tmp_path / "a.20260512-093000-2.run-wal").touch()
    for name in ("a.run", "a.run-wal"):
        assert free_name(tmp_path / name, moment).name == name.replace("a.", "a.20260512-093000-3.")
    (tmp_path / "a.20260512-093000-3.run").symlink_to("gone.run")
    assert free_name(tmp_path / "a.run", moment).name == "a.20260512-093000-4.run", "a link has its name"


async def test_an_engine_keeps_the_log_of_an_earlier_file_and_clears_an_empty_one_away(tmp_path: Path, caplog) -> None:
    for name, held in (("full.run", b"x" * 33), ("empty.run", b"x" * 32)):
        (tmp_path / f"{name}-wal").write_bytes(held)
        async with Engine(tmp_path / name, memory="+512MB", slots=1, isolation="inline"):
            pass
    (kept,) = tmp_path.glob("*-wal")
    assert (kept.name.partition(".")[0], kept.read_bytes()) == ("full", b"x" * 33)
    assert sum("is kept as" in record.getMessage() for record in caplog.records) == 1


def test_the_command_says_that_it_keeps_a_log(tmp_path: Path) -> None:
    (tmp_path / "a.run-wal").write_bytes(b"x" * 5_000)
    (tmp_path / "study.yaml").write_text(
        "questions:\n  - {kind: free_text, name: q, text: Well}\nmodels: 'test,canned_response=Good'\n"
    )
    command = [sys.executable, "-m", "headrace", "run", "study.yaml", "-o", "a.run"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    (kept,) = tmp_path.glob("a.*.run-wal")
    assert f"is kept as {kept.name}" in ran.stderr.replace(f"{tmp_path}/", "")


def test_what_is_left_without_the_log_goes_on_as_a_copy(tmp_path: Path) -> None:
    path, rest = tmp_path / "town.run", tmp_path / "rest.run"
    kill_in_the_middle(path)
    path.with_name("town.run-wal").unlink()
    with pytest.raises(LogMissing):
        copy_file(path, rest)
    copy_file(path, rest, without_log=True)
    with town_job(20, 0.01).run(rest) as results:
        assert len(results) == 100


def test_a_copy_has_what_is_in_the_log_and_is_one_plain_file(tmp_path: Path) -> None:
    path, copies = tmp_path / "town.run", tmp_path / "copies"
    copies.mkdir()
    with Child("run_town", path, 20, 0.01, 5, GATE=str(tmp_path / "gate")) as child:
        until(lambda: path.exists() and count_of(path) > 0, "some results")
        copy_file(path, copies / "live.run")
        child.kill()
    copy_file(path, copies / "killed.run")
    assert path.with_name("town.run-wal").exists(), "the source stays as it is"
    assert 0 < count_of(copies / "live.run") <= count_of(copies / "killed.run") == count_of(path)
    assert sorted(entry.name for entry in copies.iterdir()) == ["killed.run", "live.run"]
    with town_job(20, 0.01).run(copies / "killed.run") as results:
        assert len(results) == 100
    with pytest.raises(OptionError, match="there already"):
        copy_file(path, copies / "live.run")


async def test_an_engine_s_file_can_be_copied_while_it_is_open(tmp_path: Path) -> None:
    async with Engine(tmp_path / "e.run", isolation="inline") as engine:
        assert await (await engine.submit(greet, "Ada", key="a")).result() == "hello Ada"
        await asyncio.to_thread(copy_file, tmp_path / "e.run", tmp_path / "copy.run")
    async with Engine(tmp_path / "copy.run", isolation="inline") as engine:
        engine.register(greet)
        assert await engine.find("a") is not None


def test_a_log_that_another_tool_has_gathered_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "town.run"
    kill_in_the_middle(path)
    with closing(sqlite3.connect(path)) as other:
        before = other.execute("SELECT count(*) FROM interviews").fetchone()[0]
    assert not path.with_name("town.run-wal").exists(), "closing the last connection gathers the log"
    assert count_of(path) == before > 0


def test_rolling_a_transaction_back_does_not_take_the_log_from_a_file_that_says_more_follows(tmp_path: Path) -> None:
    path, cut = tmp_path / "a.run", tmp_path / "cut.run"

    def cut_off() -> None:
        for suffix in ("", "-wal"):
            Path(f"{cut}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())

    with files.opened(path, files.job(files.survey("one"))) as file:
        WriteAheadLog(file.live.connection).shorten(cut_off)  # last where "this is the end" is not committed yet
    Path(f"{cut}-journal").touch()
    roll_back(cut)
    assert names_in(cut) == []


def test_the_log_is_brought_into_the_file_after_some_seconds_of_writing(tmp_path: Path) -> None:
    now = [0.0]
    path = tmp_path / "a.db"
    path.touch()
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        connection.execute("CREATE TABLE meta(key PRIMARY KEY, value)")
        log = WriteAheadLog(connection, lambda: now[0])
        assert not log.is_due
        connection.execute("INSERT INTO meta VALUES('a', 1)")
        assert not log.is_due
        now[0] = 5.0
        assert log.is_due
        log.shorten(lambda: None)
        assert not log.is_due
        now[0] = 60.0
        assert not log.is_due, "nothing was written meanwhile"
        alone = tmp_path / "alone.db"
        alone.write_bytes(path.read_bytes())
    with closing(apsw.Connection(str(alone))) as copy:
        assert copy.execute("SELECT value FROM meta WHERE key = 'a'").get == 1
        assert copy.execute("SELECT value FROM meta WHERE key = 'log'").get == 1, "the file itself says: more follows"


def test_a_reader_in_the_way_when_the_log_begins_is_waited_for(tmp_path: Path) -> None:
    path, alone = tmp_path / "a.db", tmp_path / "alone.db"
    path.touch()
    with closing(apsw.Connection(str(path))) as connection, closing(apsw.Connection(str(path))) as reader:
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        connection.execute("CREATE TABLE meta(key PRIMARY KEY, value)")
        reader.execute("BEGIN; SELECT count(*) FROM meta").fetchall()
        waits: list[float] = []

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                reader.execute("COMMIT")

        WriteAheadLog(connection).begin(lambda: None, wait)
        alone.write_bytes(path.read_bytes())
    assert len(waits) == 3
    with closing(apsw.Connection(str(alone))) as copy:
        assert copy.execute("SELECT value FROM meta WHERE key = 'log'").get == 1, "the file itself says: more follows"


# --- one writer


def test_a_deleted_lock_file_lets_no_second_writer_in_and_comes_back(tmp_path: Path) -> None:
    path, lock = tmp_path / "town.run", tmp_path / "town.run.lock"
    with Child("run_town", path, 20, 0.01, 5, GATE=str(tmp_path / "gate")) as first:
        until(lambda: path.exists() and count_of(path) > 0, "the first results")
        for _ in range(3):
            lock.unlink()
            refused = run_child("run_town", path, 20, 0.01, 5)[-1]
            assert refused["error"] == "RunFileBusy"
            assert f"process {first.pid})" in refused["message"]
            until(lambda: lock.exists() and lock.read_text() == str(first.pid), "the lock file to come back")
        (tmp_path / "gate").touch()
        assert first.ended()[-1]["error"] is None
    assert not lock.exists()


def test_a_writer_whose_file_was_claimed_by_another_commits_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "e.run"
    file = EngineFile.open(path)
    try:
        with closing(apsw.Connection(str(path))) as other:
            other.execute("UPDATE meta SET value = replace(value, 'token', 'nekot') WHERE key = 'writer'")
        with pytest.raises(RunFileBusy, match="taken over"):
            file.commit([("INSERT INTO meta VALUES('mine', 1)", ())])
        assert file.connection.execute("SELECT count(*) FROM meta WHERE key = 'mine'").get == 0
    finally:
        file.close()


def test_a_claim_of_a_dead_process_or_another_host_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "e.run"
    EngineFile.open(path).close()
    for left in (
        '{"token":"a","pid":999999999,"started":"1","host":"x","file":"1:1"}',
        '{"pid":1}',
        "nonsense",
        7,
        None,
    ):
        with closing(apsw.Connection(str(path))) as other:
            other.execute("INSERT OR REPLACE INTO meta VALUES('writer', ?)", (left,))
        EngineFile.open(path).close()
        with closing(apsw.Connection(str(path))) as other:
            assert other.execute("SELECT count(*) FROM meta WHERE key = 'writer'").get == 0, left


def test_a_copy_of_a_live_file_by_hand_is_not_taken_for_the_file_itself(tmp_path: Path) -> None:
    path, copy = tmp_path / "e.run", tmp_path / "copy.run"
    first = EngineFile.open(path)
    try:
        for suffix in ("", "-wal"):
            copy.with_name(copy.name + suffix).write_bytes(path.with_name(path.name + suffix).read_bytes())
        second = EngineFile.open(copy)
        assert second.token == first.token
        second.close()
    finally:
        first.close()


def test_a_file_moved_away_from_its_lock_lets_no_second_writer_in(tmp_path: Path) -> None:
    path, moved = tmp_path / "e.run", tmp_path / "moved.run"
    program = f"""
from pathlib import Path
from headrace.store.engine_file.engine_file import EngineFile
try:
    EngineFile.open(Path({str(moved)!r}))
except Exception as error:
    print(type(error).__name__)
"""
    first = EngineFile.open(path)
    try:
        path.rename(moved)
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
        assert ran.stdout.strip() in ("RunFileBusy", "LogMissing")
    finally:
        with pytest.raises(RunFileGone):
            first.close()
    EngineFile.open(moved).close()


def test_a_file_opened_twice_by_one_process_is_refused_although_its_lock_file_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "e.run"
    first = EngineFile.open(path)
    try:
        (tmp_path / "e.run.lock").unlink()
        with pytest.raises(RunFileBusy, match=f"process {os.getpid()}"):
            EngineFile.open(path)
        first.commit([("INSERT INTO meta VALUES('mine', 1)", ())])
    finally:
        first.close()
    EngineFile.open(path).close()


def test_looking_after_a_file_costs_microseconds(tmp_path: Path) -> None:
    EngineFile.open(tmp_path / "e.run").close()
    live = LiveFile(tmp_path / "e.run", WriterLock(tmp_path / "e.run"), lambda _: None)
    try:
        began_s = time.process_time()
        for _ in range(1_000):
            live.check_is_in_place()
        assert time.process_time() - began_s < 0.1, "ten times a second is to be nothing"
    finally:
        live.close()


READER = """
import sqlite3, sys
file = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
print(file.execute("select count(*) from interviews").fetchone(), flush=True)
sys.stdin.read()
file.close()
"""


@pytest.mark.parametrize("leaves", [True, False])
def test_a_reader_that_leaves_while_a_run_ends_leaves_no_log_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves: bool
):
    path = tmp_path / "a.run"
    job([]).run(path, limit=1).close()
    reading = [sys.executable, "-c", READER, str(path)]
    live = LiveFile(path, WriterLock(path), lambda _: None)
    with subprocess.Popen(reading, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "(1,)\n"
        waits: list[float] = []

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if leaves and reader.poll() is None:
                reader.communicate()

        monkeypatch.setattr("headrace.store.live_file.time.sleep", wait)
        live.close()
        monkeypatch.undo()
        assert 0 < sum(waits) < 1  # nobody waits long for a reader that stays
        assert Path(f"{path}-wal").exists() != leaves


def test_extending_long_lists_keeps_the_log_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_ahead_log, "_MOST_PAGES", 50)
    path, asked = tmp_path / "a.run", files.survey("one")
    with files.opened(path, files.job(asked)):
        pass
    longer = files.job(asked, [Agent(name="ada"), *(Agent(name=f"p{number}") for number in range(50_000))])
    log_bytes: list[int] = []
    log = path.with_name("a.run-wal")
    file = RunFile.open(path, longer, RunOptions(extend=True), lambda: log_bytes.append(log.stat().st_size))
    file.close()
    assert len(log_bytes) >= 5
    assert max(log_bytes) < 3 * log_bytes[0]


def test_a_writer_waits_for_whoever_only_looks_who_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    lock_file = path.with_name("a.run.lock")
    lock_file.touch(0o600)
    looking = os.open(lock_file, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    leaving = threading.Timer(2.0, os.close, [looking])  # on a busy machine one read may take so long
    leaving.start()
    lock = WriterLock(path)
    assert writer_of(path) == str(os.getpid())
    lock.release()
    leaving.join()


def test_a_process_that_got_no_time_tries_again_before_it_gives_a_lock_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.run"
    other = os.open(tmp_path / "a.run.lock", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(other, fcntl.LOCK_EX)
    real, sleeps = time.sleep, list[float]()

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) == 1:
            real(1.5)  # longer than a writer is waited for
        elif len(sleeps) == 2:
            os.close(other)

    monkeypatch.setattr("headrace.store.lock.time.sleep", sleep)
    lock = WriterLock(path)
    assert writer_of(path) == str(os.getpid())
    lock.release()
    assert len(sleeps) == 2


def test_two_writers_that_wait_for_the_same_lock_both_get_it(tmp_path: Path) -> None:
    path, seen = tmp_path / "a.run", list[int]()

    def take() -> None:
        for _ in range(20):
            WriterLock(path).release()
            seen.append(1)

    takers = [threading.Thread(target=take) for _ in range(3)]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()
    assert len(seen) == 60
