import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace import Engine
from headrace.cli.main import app
from tests.results.files import city
from tests.store.damage import CHANGED_COUNTS, CHANGED_PLANS, CHANGED_ROWS
from tests.store.kept_files import unpacked


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return city(tmp_path_factory.mktemp("finished") / "city.run", people=20)


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(finished, tmp_path / "copy.run"))


def verified(path: Path) -> dict:
    result = CliRunner().invoke(app, ["verify", str(path), "--json"])
    told = json.loads(result.stdout)
    assert result.exit_code == (0 if told["is_whole"] else 1)
    return told


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_a_whole_file_is_found_whole(copy: Path) -> None:
    told = verified(copy)
    assert (told["findings"], told["rows"], told["unchecked"]) == ([], 40 + 20 + 2, 0)
    text = CliRunner().invoke(app, ["verify", str(copy)]).stdout
    assert text == f"{copy}: no damage found (62 rows)\n"


@pytest.mark.parametrize("name", ["plain", "failing", "mapped", "city", "wide", "pending", "engine"])
def test_older_files_are_readable_and_unchecked(tmp_path: Path, name: str) -> None:
    told = verified(unpacked(name, tmp_path))
    assert told["findings"] == []
    assert told["unchecked"] == told["rows"] > 0


MORE = [
    "UPDATE interviews SET checksum = NULL, agent = 5 WHERE ordinal = 9",
    "UPDATE details SET detail = X'00' WHERE ordinal = 9",
    "DELETE FROM details WHERE ordinal = 9",
    "UPDATE details SET ordinal = 99 WHERE ordinal = 9",
    "UPDATE failures SET message = 'other'",
    "DELETE FROM failures",
    "UPDATE failures SET ordinal = 4 WHERE ordinal = 3",
    "DELETE FROM interviews WHERE ordinal = 9",
    "UPDATE questions SET kinds = 1",
    "UPDATE counters SET value = 0 WHERE name = 'failed'",
    "UPDATE agents SET position = 77 WHERE position = 3",
    "INSERT INTO pending VALUES(1, 0, X'93000000', 5)",
    "INSERT INTO meta VALUES('budget.max_tokens_total', 9000000)",
]


@pytest.mark.parametrize("change", [*CHANGED_ROWS, *CHANGED_COUNTS, *CHANGED_PLANS, *MORE])
def test_every_change_is_found(copy: Path, change: str) -> None:
    if "position = 4" in change:
        edit(copy, "UPDATE interviews SET ordinal = ordinal")  # nothing: the list's own row is what changes
    edit(copy, change)
    assert verified(copy)["findings"], change


def test_what_is_said_names_the_rows_and_what_to_do(copy: Path) -> None:
    edit(copy, "UPDATE interviews SET a0 = 'Goad' WHERE ordinal IN (5, 9)")
    text = CliRunner().invoke(app, ["verify", str(copy)]).stdout
    assert "interviews: 2 (at 5, 9): its checksum is not that of its answers" in text
    assert "restore a copy" in text


def test_a_changed_engine_file_is_found(tmp_path: Path) -> None:
    for number, change in enumerate(
        [
            "UPDATE steps SET result = X'7B'",
            "DELETE FROM blobs",
            "UPDATE runs SET state = 'x'",
            "UPDATE runs SET arguments = X'5B'",
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = unpacked("engine", folder)
        edit(path, change)
        assert verified(path)["findings"], change


def test_a_file_cut_short_is_found(copy: Path) -> None:
    copy.write_bytes(copy.read_bytes()[:20_000])
    assert verified(copy)["findings"]


@pytest.mark.parametrize("command", [["verify"], ["copy"]])
def test_what_is_no_file_of_ours_is_named_for_what_it_is(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name\nada\n")
    (tmp_path / "empty.run").touch()
    (tmp_path / "folder").mkdir()
    said = {
        "missing.run": "There is no run file at",
        "people.csv": "is not a run file",
        "empty.run": "is empty, not a run file",
        "folder": "is a directory",
    }
    for name, words in said.items():
        target = [str(tmp_path / "new.run")] if command == ["copy"] else []
        result = CliRunner().invoke(app, [*command, str(tmp_path / name), *target])
        assert result.exit_code == 1
        assert words in f"{result.stderr}{result.exception}"


async def _one_step(ctx):
    return await ctx.step("one", len, [1])


async def test_an_engine_file_without_large_values_is_found_whole(tmp_path: Path) -> None:
    path = tmp_path / "agents.run"
    async with Engine(path, memory="+512MB", slots=1, isolation="inline") as engine:
        assert await (await engine.submit(_one_step)).result() == 1
    assert verified(path)["findings"] == []
    assert "of them without a checksum: readable, not checked" in CliRunner().invoke(app, ["verify", str(path)]).stdout
