"""Files that hold people's data are for their owner alone, and nothing is written through a link that was planted."""

import errno
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from headrace import Agent, Engine, Model, QuestionFreeText, Results, Survey
from headrace.errors import HeadraceError, NotRunning, RunFileBusy, RunFileError
from headrace.interviews.steering.client import ask
from headrace.interviews.steering.messages import ResumeRequest
from headrace.models.response_cache import ResponseCache
from headrace.store import connections, disk_errors
from headrace.store import lock as locks
from headrace.store.disk_errors import translated_errors
from headrace.store.engine_file.engine_file import EngineFile
from headrace.store.home import cache_path
from headrace.store.kept_names import kept_logs
from headrace.store.lock import WriterLock, writer_of
from tests.trouble.programs.letters import letters_job

FAULT = Path(__file__).parent / "unreadable_disk.c"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(autouse=True)
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def in_a_process(program: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """For what waits for ever where it goes wrong."""
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def job():
    return Survey([QuestionFreeText(question_name="q", question_text="Well?")]).by(Model("test", canned_response="x"))


def test_a_run_file_and_all_beside_it_are_for_their_owner_alone(tmp_path: Path) -> None:
    path, seen = tmp_path / "new" / "deeper" / "x.run", dict[str, int]()

    def look(_result) -> None:
        seen.update({entry.name: mode(entry) for entry in path.parent.iterdir()})

    job().by([Agent(name=str(number)) for number in range(20)]).run(path, on_result=look).close()
    assert {"x.run", "x.run-wal", "x.run-shm", "x.run.lock", "x.run.sock"} <= set(seen)
    assert set(seen.values()) == {0o600}
    assert [mode(place) for place in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]


def test_the_data_directory_and_the_cache_are_for_their_owner_alone(headrace_home: Path) -> None:
    job().run().close()
    ResponseCache.open(cache_path(), time.time()).close()
    places = [headrace_home, headrace_home / "runs", cache_path(), *(headrace_home / "runs").iterdir()]
    assert [mode(place) for place in places] == [0o700, 0o700, 0o600, 0o600]


async def test_an_engine_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    async with Engine(tmp_path / "new" / "e.run", isolation="inline"):
        modes = {entry.name: mode(entry) for entry in (tmp_path / "new").iterdir() if entry.is_file()}
    assert mode(tmp_path / "new") == 0o700
    assert set(modes.values()) == {0o600}, modes


def test_an_export_follows_the_user_s_umask(tmp_path: Path) -> None:
    with job().run(tmp_path / "x.run") as results:
        results.to_csv(tmp_path / "x.csv")
    assert mode(tmp_path / "x.csv") == 0o644


@pytest.mark.parametrize("name", ["x.run.lock", "x.run.making"])
def test_a_planted_link_is_not_followed(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / name).symlink_to(victim)
    if name == "x.run.lock":
        with pytest.raises(RunFileError, match="is a link"):
            job().run(tmp_path / "x.run")
        assert writer_of(tmp_path / "x.run") is None
    else:
        job().run(tmp_path / "x.run").close()  # a name of ours: it is removed, and not what it leads to
    assert victim.read_text() == "precious"


def test_a_planted_second_name_of_a_file_is_not_written_to(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "x.run.lock").hardlink_to(victim)
    with pytest.raises(RunFileError, match="second name"):
        job().run(tmp_path / "x.run")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_a_second_name_of_another_file_beside_a_run_file_is_refused_and_the_file_kept(
    tmp_path: Path, suffix: str
) -> None:
    path, victim, precious = tmp_path / "x.run", tmp_path / "victim", os.urandom(200_000)
    job().run(path, limit=1).close()
    victim.write_bytes(precious)
    Path(f"{path}{suffix}").hardlink_to(victim)
    with pytest.raises(RunFileError, match="second name"):
        job().run(path)
    with pytest.raises(RunFileError, match="second name"):
        Results.open(path)
    assert victim.read_bytes() == precious


def test_an_export_writes_to_no_name_that_could_be_foreseen(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".x.csv.{os.getpid()}.part").symlink_to(victim)
    with job().run(tmp_path / "x.run") as results:
        results.to_csv(tmp_path / "x.csv")
    assert victim.read_text() == "precious"
    assert (tmp_path / "x.csv").stat().st_size


# --- what is no plain file beside a run file


COMMAND = "from headrace.cli.main import main; main()"
ODD = {"a FIFO": os.mkfifo, "a directory": os.mkdir, "a link": lambda path: Path(path).symlink_to("/dev/zero")}
odd = pytest.mark.parametrize("make", ODD.values(), ids=ODD)


@odd
@pytest.mark.parametrize("command", ["status", "results", "verify"])
@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_what_is_no_plain_file_beside_a_run_file_is_refused_in_words(
    tmp_path: Path, suffix: str, command: str, make: Callable[[str], None]
) -> None:
    path = tmp_path / "x.run"
    job().run(path).close()
    make(f"{path}{suffix}")
    ran = in_a_process(COMMAND, command, str(path))
    assert (ran.returncode, ran.stdout) == (1, "")
    assert f"headrace: {path}{suffix} is a link, a directory, a FIFO or the like" in ran.stderr
    assert "find out who did, then move it away" in ran.stderr


@odd
def test_a_run_is_refused_beside_a_journal_that_is_no_plain_file(tmp_path: Path, make: Callable[[str], None]) -> None:
    job().run(tmp_path / "x.run").close()
    make(str(tmp_path / "x.run-journal"))
    ran = in_a_process(COMMAND, "resume", str(tmp_path / "x.run"))
    assert (ran.returncode, "x.run-journal is a link" in ran.stderr) == (1, True), ran.stderr


@odd
@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_what_is_no_plain_file_stays_where_a_run_file_is_made(
    tmp_path: Path, suffix: str, make: Callable[[str], None]
) -> None:
    beside = tmp_path / f"x.run{suffix}"
    make(str(beside))
    before = beside.lstat()
    with pytest.raises(RunFileError, match=rf"x.run{suffix} is a link, a directory"):
        job().run(tmp_path / "x.run")
    with pytest.raises(RunFileError, match=rf"x.run{suffix} is a link, a directory"):
        EngineFile.open(tmp_path / "x.run")
    assert os.path.samestat(beside.lstat(), before)
    assert [each.name for each in tmp_path.iterdir()] == [beside.name]


@odd
def test_no_kept_log_is_anything_but_a_plain_file(tmp_path: Path, make: Callable[[str], None]) -> None:
    make(str(tmp_path / "x.20260101-000000.run-wal"))
    (tmp_path / "x.20250101-000000.run-wal").touch()
    assert [kept.name for kept in kept_logs(tmp_path / "x.run")] == ["x.20250101-000000.run-wal"]


@odd
@pytest.mark.parametrize("suffix", [".lock", ".sock"])
def test_nobody_holds_a_file_whose_lock_or_socket_is_no_plain_one(
    tmp_path: Path, suffix: str, make: Callable[[str], None]
) -> None:
    job().run(tmp_path / "x.run").close()
    make(str(tmp_path / f"x.run{suffix}"))
    ran = in_a_process(COMMAND, "status", str(tmp_path / "x.run"))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "1 interview" in ran.stdout
    stopped = in_a_process(COMMAND, "stop", str(tmp_path / "x.run"))
    assert (stopped.returncode, "Nothing is running" in stopped.stderr) == (1, True), stopped.stderr


def test_a_socket_that_a_link_leads_to_is_not_asked(tmp_path: Path) -> None:
    job().run(tmp_path / "x.run").close()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(tmp_path / "other"))
        other.listen()
        other.setblocking(False)
        (tmp_path / "x.run.sock").symlink_to(tmp_path / "other")
        with pytest.raises(NotRunning):
            ask(tmp_path / "x.run", ResumeRequest())
        with pytest.raises(BlockingIOError):
            other.accept()


def test_a_pipe_in_place_of_a_run_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.run")
    ran = in_a_process(COMMAND, "status", str(tmp_path / "x.run"))
    assert (ran.returncode, "x.run is not a regular file. Give the path" in ran.stderr) == (1, True), ran.stderr


def test_a_journal_that_cannot_be_read_is_named_with_a_way_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything: the refusal is the system's words, put in its mouth."""
    path = tmp_path / "x.run"
    job().run(path).close()
    (tmp_path / "x.run-journal").write_bytes(b"x")

    def refuse(_path: Path) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(connections, "open_side_file", refuse)
    with pytest.raises(RunFileError, match=r"x.run-journal cannot be read \(Permission denied\).*Check its rights"):
        job().run(path)


@odd
def test_a_cache_beside_what_is_no_plain_file_is_not_used(headrace_home: Path, make: Callable[[str], None]) -> None:
    ResponseCache.open(cache_path(), time.time()).close()
    make(f"{cache_path()}-journal")
    program = (
        "import time; from headrace.models.response_cache import ResponseCache; from headrace.store.home import"
        " cache_path; print(ResponseCache.open(cache_path(), time.time()).why_not)"
    )
    ran = in_a_process(program)
    assert "is not used" in ran.stdout, ran
    assert "-journal is a link" in ran.stdout


@odd
def test_a_manifest_that_is_no_plain_file_counts_as_none(tmp_path: Path, make: Callable[[str], None]) -> None:
    make(str(tmp_path / "manifest.json"))
    program = (
        "import sys; from pathlib import Path; from headrace.results.export.part_manifest import load_manifest;"
        " print(load_manifest(Path(sys.argv[1])))"
    )
    assert in_a_process(program, str(tmp_path)).stdout == "None\n"


# --- the stack of an engine that was stuck


FRAME = '  File "{}", line 2 in x\n'


async def stuck_stacks(path: Path) -> list[str]:
    """What an engine journals of the stack that it found beside its file."""
    async with Engine(path, isolation="inline") as engine:
        events = [event.reason for event in await engine.events() if event.what == "loop stuck"]
    return [reason for reason in events if "an earlier process" in reason]


async def test_a_stack_that_came_with_an_engine_file_is_no_way_to_other_files(tmp_path: Path) -> None:
    secrets = tmp_path / "credentials"
    secrets.write_text("[default]\nkey = a-secret\n")
    (tmp_path / ".e.run-stuck").write_text(FRAME.format(secrets))
    (reason,) = await stuck_stacks(tmp_path / "e.run")
    assert f'File "{secrets}", line 2, in x' in reason
    assert "a-secret" not in reason
    assert b"a-secret" not in (tmp_path / "e.run").read_bytes()


async def test_of_a_long_stack_beside_an_engine_file_only_its_beginning_is_read(tmp_path: Path) -> None:
    (tmp_path / ".e.run-stuck").write_text(FRAME.format("first") + "x" * 100_000 + "\n" + FRAME.format("last"))
    (reason,) = await stuck_stacks(tmp_path / "e.run")
    assert '"first"' in reason
    assert '"last"' not in reason


@pytest.mark.parametrize("leads_to", ["a file", "nothing", "a device"])
async def test_a_planted_stack_that_is_a_link_is_neither_read_nor_written(tmp_path: Path, leads_to: str) -> None:
    victim, planted = tmp_path / "victim", tmp_path / ".e.run-stuck"
    if leads_to == "a file":
        victim.write_text(FRAME.format("elsewhere"))
    planted.symlink_to("/dev/null" if leads_to == "a device" else victim)
    assert await stuck_stacks(tmp_path / "e.run") == []
    assert not planted.is_symlink()
    if leads_to == "a file":
        assert victim.read_text() == FRAME.format("elsewhere")
    else:
        assert not victim.exists()


async def test_a_planted_stack_with_a_second_name_is_neither_read_nor_written(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text(FRAME.format("elsewhere"))
    (tmp_path / ".e.run-stuck").hardlink_to(victim)
    assert await stuck_stacks(tmp_path / "e.run") == []
    assert victim.read_text() == FRAME.format("elsewhere")


ENGINE = """
import asyncio, sys
from headrace import Engine

async def main():
    async with Engine(sys.argv[1], isolation="inline") as engine:
        print([event for event in await engine.events() if event.what == "loop stuck"])

asyncio.run(main())
"""


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_planted_stack_that_is_no_plain_file_is_not_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / ".e.run-stuck")
    ran = in_a_process(ENGINE, str(tmp_path / "e.run"))
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


# --- the lock


def test_a_fork_that_outlives_its_parent_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "x.run"
    program = f"""
import os, sys, time
from pathlib import Path
from headrace.store.lock import WriterLock
lock = WriterLock(Path({str(path)!r}))
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
    os._exit(0)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            with pytest.raises(RunFileBusy, match=f"process {parent.pid}"):
                WriterLock(path)
            parent.kill()
            parent.wait()
            assert Path(f"/proc/{child}").exists() or sys.platform != "linux"
            WriterLock(path).release()
        finally:
            os.kill(child, 9)


def test_a_file_system_without_locks_is_named_with_a_way_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_locks(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    assert locks.fcntl is not None
    monkeypatch.setattr(locks.fcntl, "flock", no_locks)
    with pytest.raises(RunFileError, match=r"cannot lock files.*local disk.*HEADRACE_NO_LOCK=1"):
        job().run(tmp_path / "x.run")
    with pytest.raises(HeadraceError, match="cannot lock files"):
        EngineFile.open(tmp_path / "e.run")
    monkeypatch.setenv("HEADRACE_NO_LOCK", "1")
    with job().run(tmp_path / "x.run") as results:
        assert len(results) == 1
    assert "written without a lock" in caplog.text
    first = EngineFile.open(tmp_path / "e.run")
    try:
        with pytest.raises(RunFileBusy):  # by what the file itself says
            EngineFile.open(tmp_path / "e.run")
    finally:
        first.close()


def test_locks_that_sqlite_cannot_have_are_not_called_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        with translated_errors(tmp_path / "x.run"):
            raise apsw.BusyError("database is locked")

    with pytest.raises(RunFileBusy, match="another process"):
        fails()

    def no_locks(_file: object, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    assert disk_errors.fcntl is not None
    monkeypatch.setattr(disk_errors.fcntl, "lockf", no_locks)
    with pytest.raises(RunFileError, match=r"cannot lock files.*local disk"):
        fails()


# --- the disk


@pytest.fixture(scope="module")
def failing_reads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that has reads of one file fail as those of a broken disk do."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("there is no C compiler here, so no read can be made to fail")
    built = tmp_path_factory.mktemp("fault") / "unreadable_disk.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", built, FAULT, "-ldl"], check=True)
    return built


def test_a_disk_that_cannot_be_read_is_not_called_damage_of_the_file(tmp_path: Path, failing_reads: Path) -> None:
    path = tmp_path / "x.run"
    letters_job(60, chars=2_000).run(path).close()
    program = f"""
from headrace import Results
from headrace.errors import HeadraceError
try:
    with Results.open({str(path)!r}) as results:
        [result.raw_responses for result in results]
except HeadraceError as error:
    print(type(error).__name__, error)
"""
    for first in (0, 8_192, 131_072):
        faults = {"LD_PRELOAD": str(failing_reads), "FAIL_READS_OF": str(path), "FAIL_READS_FROM": str(first)}
        ran = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **faults},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.stdout.startswith("RunFileError"), ran
        assert "cannot be read: " in ran.stdout
        assert "malformed" not in ran.stdout
    with Results.open(path) as results:
        assert len(results) == 60
