"""A file that a killed writer left half written is put in order by the next one who opens it, whoever that is."""

import asyncio
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from headrace import Engine, Job, Results
from headrace.errors import RunFileDamaged
from headrace.results.file_facts import read_facts
from headrace.store.disk_errors import cannot_roll_back_here
from tests.trouble.programs.letters import letters_job

COUNT = 40
MAGIC = bytes.fromhex("d9d505f920a163d7")


def job() -> Job:
    return letters_job(COUNT, chars=200)


def leave_half_written(path: Path, table: str, kept: Path) -> Path:
    """A copy of a file as a process leaves it that is killed in the middle of a transaction outside WAL mode."""
    connection = apsw.Connection(str(path))
    try:
        connection.execute("PRAGMA cache_size=1").fetchall()  # so that pages are written before the commit
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"DELETE FROM {table}")
        connection.execute(
            "CREATE TABLE more AS SELECT randomblob(4000) AS x FROM (VALUES(1), (2), (3), (4), (5), (6))"
        )
        for suffix in ("", "-journal"):
            shutil.copy(f"{path}{suffix}", f"{kept}{suffix}")
    finally:
        connection.execute("ROLLBACK")
        connection.close()
    reading = apsw.Connection(str(kept), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        with pytest.raises(apsw.ReadOnlyError):
            reading.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    finally:
        reading.close()
    return kept


@pytest.fixture(scope="module")
def half_written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("half")
    job().run(folder / "whole.run").close()
    return leave_half_written(folder / "whole.run", "interviews", folder / "half.run")


@pytest.fixture
def half(half_written: Path, tmp_path: Path) -> Path:
    for suffix in ("", "-journal"):
        shutil.copy(f"{half_written}{suffix}", tmp_path / f"half.run{suffix}")
    return tmp_path / "half.run"


def opened(path: Path) -> int:
    with Results.open(path) as results:
        return len(results)


def run_again(path: Path) -> int:
    with job().run(path) as results:
        return len(results)


def run_afresh(path: Path) -> int:
    with job().run(path, fresh=True) as results:
        return len(results)


def planned(path: Path) -> int:
    return read_facts(path).planned


@pytest.mark.parametrize("way", [opened, run_again, run_afresh, planned])
def test_a_half_written_run_file_is_rolled_back_by_whoever_opens_it(half: Path, way: Callable[[Path], int]) -> None:
    assert way(half) == COUNT
    assert opened(half) == COUNT
    assert not half.with_name("half.run-journal").exists()
    assert not half.with_name("half.run.lock").exists()


def test_a_reader_leaves_the_recovery_to_a_live_writer(half: Path) -> None:
    from headrace.store.lock import WriterLock

    lock = WriterLock(half)
    program = f"from headrace import Results; print(len(Results.open({str(half)!r})))"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as reading:
        with pytest.raises(subprocess.TimeoutExpired):
            reading.wait(2)  # a writer has the file and is about to recover it
        lock.release()
        assert reading.communicate(timeout=60)[0].strip() == str(COUNT)


def test_a_half_written_engine_file_is_rolled_back(tmp_path: Path) -> None:
    async def ask(path: Path) -> bool:
        async with Engine(path, isolation="inline") as engine:
            engine.register(greet)
            return (await (await engine.submit(greet, "Ada", key="g")).result()) == "hello Ada"

    assert asyncio.run(ask(tmp_path / "whole.run"))
    assert asyncio.run(ask(leave_half_written(tmp_path / "whole.run", "runs", tmp_path / "half.run")))


async def greet(_ctx, name):
    return f"hello {name}"


def test_the_command_that_copies_works_with_any_name(tmp_path: Path) -> None:
    path, there = tmp_path / "my file's.run", tmp_path / "there"
    path.write_bytes(b"x")
    path.with_name(f"{path.name}-journal").write_bytes(b"y")
    there.mkdir()
    command = cannot_roll_back_here(path).fix.partition("there: ")[2].replace("DIRECTORY", str(there))
    subprocess.run(command, shell=True, check=True, timeout=60)
    assert sorted(copied.name for copied in there.iterdir()) == [path.name, f"{path.name}-journal"]


def test_where_nothing_can_be_written_the_way_to_copy_is_told(half: Path, tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("unshare -Urm is not permitted here, so no read-only place can be mounted")
    program = f"""
import subprocess
from headrace import Results
from headrace.errors import RunFileError
place = {str(tmp_path)!r}
subprocess.run(["mount", "--bind", place, place], check=True)
subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
try:
    Results.open({str(half)!r})
except RunFileError as error:
    print(error)
"""
    done = subprocess.run(
        ["unshare", "-Urm", sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert "cannot be put in order here" in done.stdout
    assert f"cp {half} {half}-journal DIRECTORY" in done.stdout


def test_a_journal_that_names_another_file_is_never_rolled_back(half: Path, tmp_path: Path) -> None:
    """By its format's documents a super-journal is deleted with the last journal that names it."""
    victim = tmp_path / "precious"
    victim.write_bytes(b"precious")
    name = os.fsencode(victim)
    with half.with_name("half.run-journal").open("ab") as journal:
        checksum = sum(byte if byte < 128 else byte - 256 for byte in name) & 0xFFFFFFFF
        journal.write(b"\xff" * 4 + name + struct.pack(">II", len(name), checksum) + MAGIC)
    for way in (opened, run_again, run_afresh):
        with pytest.raises(RunFileDamaged, match="names another file"):
            way(half)
    assert victim.read_bytes() == b"precious"


def test_a_removed_files_journal_is_not_replayed_into_a_new_one(half: Path) -> None:
    half.unlink()
    assert run_again(half) == COUNT
    assert opened(half) == COUNT
