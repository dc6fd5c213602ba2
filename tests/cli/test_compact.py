"""`headrace compact`: a smaller file in the old one's place, and damaged rows that are run again."""

import os
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace import Engine, Results
from headrace.cli.main import app
from headrace.store.run_file.dropping import DROPPABLE
from headrace.store.whole_files import compact_file, verify
from headrace.survey.agent import Agent
from tests.cli.terminals import HEADRACE, environment
from tests.results import files
from tests.store.damage import CHANGED_COUNTS, CHANGED_PLANS, CHANGED_ROWS
from tests.trouble.children import size_of


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.city(tmp_path_factory.mktemp("finished") / "city.run", people=20)


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(finished, tmp_path / "copy.run"))


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def rows_of(path: Path) -> list[dict[str, object]]:
    with Results.open(path) as results:
        return results.to_dicts(remove_prefix=False)


def compact(*words: str) -> str:
    ended = CliRunner().invoke(app, ["compact", *words])
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def test_room_that_is_not_used_is_given_back(copy: Path):
    # A table of the user's own in the file, which SQLite tools may add, leaves its room behind.
    edit(copy, "CREATE TABLE mine(x)", "INSERT INTO mine VALUES(zeroblob(500000))", "DELETE FROM mine")
    before, rows = copy.stat().st_size, rows_of(copy)
    assert f"compacted {copy}: " in compact(str(copy))
    assert copy.stat().st_size < before - 400_000
    assert copy.stat().st_mode & 0o777 == 0o600
    assert rows_of(copy) == rows
    assert verify(copy).findings == {}
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM mine").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM results").fetchone() == (40,)
    assert "is as small as it gets" in compact(str(copy))
    assert [path.name for path in copy.parent.iterdir()] == ["copy.run"]


def test_a_file_that_a_killed_run_left_with_its_log_is_gathered(tmp_path: Path):
    path = tmp_path / "killed.run"
    of = files.job(files.survey("q"), [Agent(name="ada")])
    if (pid := os.fork()) == 0:
        with files.opened(path, of) as file:
            file.journal.commit([files.row_batch([files.row(file, of, 0, ["x"])])], [])
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert path.with_name("killed.run-wal").stat().st_size
    compact(str(path))
    assert [each.name for each in tmp_path.iterdir()] == ["killed.run"]
    assert [row["answer.q"] for row in rows_of(path)] == ["x"]
    assert verify(path).findings == {}


def test_a_file_that_is_written_is_refused(copy: Path):
    of = files.job(files.survey("q"))
    live = copy.with_name("live.run")
    with files.opened(live, of):
        ended = CliRunner().invoke(app, ["compact", str(live)])
    assert ended.exit_code == 1
    assert "is being written by another run" in f"{ended.stderr}{ended.exception}"
    missing = CliRunner().invoke(app, ["compact", str(copy.parent / "nowhere" / "x.run")])
    assert "There is no run file" in f"{missing.stderr}{missing.exception}"
    assert not (copy.parent / "nowhere").exists()


MORE = [
    "UPDATE details SET detail = X'00' WHERE ordinal = 9",
    "DELETE FROM details WHERE ordinal = 9",
    "UPDATE details SET ordinal = 99 WHERE ordinal = 9",
    "UPDATE failures SET message = 'other'",
    "DELETE FROM failures",
    "DELETE FROM interviews WHERE ordinal = 9",
    "UPDATE interviews SET ordinal = 4711 WHERE ordinal = 9",
    "UPDATE questions SET kinds = 1",
    "UPDATE counters SET value = 0 WHERE name = 'failed'",
    "INSERT INTO pending VALUES(1, 0, X'93000000', 5)",
]


@pytest.mark.parametrize("change", [*CHANGED_ROWS, *CHANGED_COUNTS, *CHANGED_PLANS, *MORE])
def test_what_is_damaged_is_dropped_and_asked_again_or_refused(copy: Path, change: str):
    edit(copy, change)
    found, before = verify(copy), copy.read_bytes()
    dropped = CliRunner().invoke(app, ["compact", str(copy), "--drop-damaged"])
    if not found.findings.keys() <= DROPPABLE:
        assert dropped.exit_code == 1
        assert copy.read_bytes() == before
        return
    assert dropped.exit_code == 0, dropped.output
    (kept,) = copy.parent.glob("copy.damaged-*.run")
    assert kept.read_bytes() == before, "nothing is lost without a copy"
    assert verify(copy).findings == {}
    resumed = CliRunner().invoke(app, ["resume", str(copy)])
    assert resumed.exit_code in (0, 3), resumed.output
    assert verify(copy).findings == {}
    with Results.open(copy) as results:
        assert len(results) == 40


CHANGED_BUDGET = "INSERT INTO meta VALUES('budget.max_tokens_total', 9000000)"


def test_changed_budgets_are_in_the_way_of_no_row_and_are_given_again(copy: Path):
    edit(copy, CHANGED_BUDGET)
    told = CliRunner().invoke(app, ["verify", str(copy)]).stdout
    assert "its budgets are not as they were written" in told
    assert "the answers can be read" in told
    assert "--drop-damaged" not in told
    ended = CliRunner().invoke(app, ["compact", str(copy), "--drop-damaged"])
    assert "there is nothing to drop" in f"{ended.stderr}{ended.exception}"
    assert "its budgets are not as they were written" in CliRunner().invoke(app, ["status", str(copy)]).stdout
    edit(copy, "UPDATE interviews SET a0 = 'Goad' WHERE ordinal = 9")
    assert "dropped 1 damaged interview" in compact(str(copy), "--drop-damaged")
    refused = CliRunner().invoke(app, ["resume", str(copy)])
    assert "--max-cost and --max-tokens-total" in " ".join(refused.stderr.split())
    given = ["--max-cost", "none", "--max-tokens-total", "none"]
    assert CliRunner().invoke(app, ["resume", str(copy), *given]).exit_code in (0, 3)
    assert verify(copy).findings == {}


def test_what_cannot_be_dropped_is_named(copy: Path):
    edit(copy, "UPDATE meta SET value = 5 WHERE key = 'created_at'")
    ended = CliRunner().invoke(app, ["compact", str(copy), "--drop-damaged"])
    assert "there is damage in its plan." in " ".join(ended.stderr.split())


def test_verify_names_what_to_run_again_and_the_commands_do_it(copy: Path):
    edit(copy, "UPDATE interviews SET a0 = 'Goad' WHERE ordinal IN (5, 6, 9)")
    told = CliRunner().invoke(app, ["verify", str(copy)]).stdout
    assert "to run again: 3 interviews (5-6, 9)" in told
    assert f"compact {copy} --drop-damaged" in told
    assert f"resume {copy}" in told
    whole = {row["interview.ordinal"]: row for row in rows_of_whole(copy)}
    assert "dropped 3 damaged interviews" in compact(str(copy), "--drop-damaged")
    assert CliRunner().invoke(app, ["resume", str(copy)]).exit_code in (0, 3)
    after = {row["interview.ordinal"]: row for row in rows_of(copy)}
    assert [after[ordinal]["answer.mood"] for ordinal in (5, 6, 9)] == ["x", "x", "x"]
    assert {ordinal: after[ordinal] for ordinal in whole} == whole


def rows_of_whole(path: Path) -> list[dict[str, object]]:
    with Results.open(path) as results:
        return results.filter("interview.ordinal not in [5, 6, 9]").to_dicts(remove_prefix=False)


def test_a_whole_file_has_nothing_to_drop(copy: Path):
    ended = CliRunner().invoke(app, ["compact", str(copy), "--drop-damaged"])
    assert "there is nothing to drop" in f"{ended.stderr}{ended.exception}"
    assert [path.name for path in copy.parent.iterdir()] == ["copy.run"]


async def _one_step(ctx):
    return await ctx.step("one", len, [1])


async def test_an_engine_file_is_compacted_too(tmp_path: Path):
    path = tmp_path / "agents.run"
    async with Engine(path, memory="+512MB", slots=1, isolation="inline") as engine:
        assert await (await engine.submit(_one_step)).result() == 1
    edit(path, "CREATE TABLE mine(x)", "INSERT INTO mine VALUES(zeroblob(100000))", "DROP TABLE mine")
    done = compact_file(path)
    assert done.after_bytes < done.before_bytes
    assert verify(path).findings == {}
    async with Engine(path, memory="+512MB", slots=1, isolation="inline") as engine:
        assert await (await engine.submit(_one_step)).result() == 1


@pytest.mark.parametrize("words", [[], ["--drop-damaged"]])
def test_a_killed_compact_leaves_the_file_whole(tmp_path: Path, words: list[str]):
    path = tmp_path / "big.run"
    agents = (Agent({"n": n, "note": os.urandom(150).hex()}) for n in range(8_000))
    files.write(path, files.job(files.survey("q"), agents), lambda n: [f"answer {n}"])
    edit(path, "CREATE TABLE mine(x)", "INSERT INTO mine VALUES(zeroblob(3000000))", "DROP TABLE mine")
    if words:
        edit(path, "UPDATE interviews SET a0 = 'other' WHERE ordinal = 7")
    before = path.read_bytes()
    making, command = tmp_path / "big.run.making", [*HEADRACE, "compact", str(path), *words]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until and not size_of(making):
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert path.read_bytes() == before or not making.exists()
    again = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert again.returncode == 0 or "nothing to drop" in again.stderr
    assert verify(path).findings == {}
    assert not making.exists()


def test_what_a_killed_compaction_left_is_removed_when_the_file_is_written_next(copy: Path):
    for left in ("copy.run.making", "copy.run.making-journal", "copy.run.making-wal", "copy.run.making-shm"):
        copy.with_name(left).write_bytes(b"half of it")
    assert CliRunner().invoke(app, ["resume", str(copy)]).exit_code in (0, 3)
    assert [path.name for path in copy.parent.iterdir()] == ["copy.run"]


def test_a_compaction_that_was_killed_before_the_last_step_keeps_one_copy_when_it_is_repeated(copy: Path):
    edit(copy, "UPDATE interviews SET a0 = 'Goad' WHERE ordinal = 9")
    before, kept = copy.read_bytes(), copy.with_name("copy.damaged-20260101-000000.run")
    os.link(copy, kept)
    assert f"{kept}" in compact(str(copy), "--drop-damaged")
    assert {path.name for path in copy.parent.iterdir()} == {copy.name, kept.name}
    assert kept.read_bytes() == before
    assert verify(copy).findings == {}


@pytest.mark.parametrize("leads_to", ["copy.run", "gone.run"])
def test_a_link_is_not_taken_for_the_copy_of_a_damaged_file(copy: Path, monkeypatch: pytest.MonkeyPatch, leads_to: str):
    edit(copy, "UPDATE interviews SET a0 = 'Goad' WHERE ordinal = 9")
    before = copy.read_bytes()
    monkeypatch.setattr("headrace.store.whole_files.time.strftime", lambda *_: "20260101-000000")
    link = copy.with_name("copy.damaged-20260101-000000.run")
    link.symlink_to(leads_to)
    kept = copy.with_name("copy.damaged-20260101-000000-2.run")
    assert f"{kept}" in compact(str(copy), "--drop-damaged")
    assert kept.read_bytes() == before
    assert str(link.readlink()) == leads_to
    assert {path.name for path in copy.parent.iterdir()} == {copy.name, link.name, kept.name}
