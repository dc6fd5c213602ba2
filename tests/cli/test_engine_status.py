"""`headrace status` of an engine's file: its runs by state, and those that failed last."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace import Engine
from headrace.cli.main import app
from headrace.cli.top.top_lines import Room, top_lines
from headrace.errors import RunFailed
from headrace.store.engine_file.engine_schema import RunState
from headrace.web.shown_files import ShownFiles
from tests.store.kept_files import unpacked


async def number(ctx, given):
    if given >= 0:
        raise ValueError(f"number {given}\x1b[31m\nand more")
    return given


async def fill(path: Path, numbers: list[int]) -> str:
    """The status that the command prints while the engine is open."""
    async with Engine(path, isolation="inline", memory="+300MB", breaker=None, queue_depth=50) as engine:
        for given in numbers:
            run = await engine.submit(number, given)
            if given >= 0:
                with pytest.raises(RunFailed):
                    await run.result()
            else:
                await run.result()
        return status(path)


def status(path: Path, *options: str) -> str:
    result = CliRunner().invoke(app, ["status", str(path), *options])
    assert result.exit_code == 0, result.output
    return result.stdout


async def test_an_engines_file_shows_its_runs_by_state_and_the_latest_failed_with_their_causes(tmp_path):
    path = tmp_path / "agents.run"
    while_open = (await fill(path, [*range(12), -1, -2])).splitlines()
    assert while_open[:2] == [f"{path}: 14 agent runs: 2 done, 12 failed", f"open in process {os.getpid()}"]
    told = status(path)
    assert "failed, the latest 5 of 12:" in told
    causes = [line for line in told.splitlines() if "ValueError" in line]
    assert len(causes) == 5
    assert [f"number {given}\\x1b[31m" in line for given, line in zip(range(7, 12), causes, strict=True)] == [True] * 5
    assert "and more" not in told
    assert "engine.failed()" in told
    assert "open in process" not in told


async def test_for_scripts_it_is_json(tmp_path):
    path = tmp_path / "agents.run"
    await fill(path, [0, -1])
    facts = json.loads(status(path, "--json"))
    assert (facts["state"], facts["pid"], facts["runs"], facts["failed"]) == (
        "not running",
        None,
        {"done": 1, "failed": 1},
        1,
    )
    (failed,) = facts["latest_failed"]
    assert failed["id"] == 1
    assert failed["cause"].startswith("ValueError: number 0")
    assert json.loads(status(path, "--json", "--watch")) == facts


async def test_an_engine_without_runs_and_a_file_of_an_older_version_are_shown(tmp_path):
    empty = tmp_path / "empty.run"
    await fill(empty, [])
    assert status(empty).splitlines()[0] == f"{empty}: 0 agent runs"
    assert "agent run" in status(unpacked("engine", tmp_path))


async def in_state(path: Path, state: RunState) -> None:
    """An engine file whose one run a killed engine has left in this state."""
    await fill(path, [-1])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET state = ?, error = 'pay', ended_at = NULL", (state.value,))


async def test_a_run_that_ran_when_its_engine_was_killed_waits_in_status_and_in_top(tmp_path):
    path = tmp_path / "agents.run"
    await in_state(path, RunState.RUNNING)
    assert "1 agent run: 1 waiting\n" in status(path)
    assert json.loads(status(path, "--json"))["runs"] == {"waiting": 1}
    told = "\n".join(top_lines(ShownFiles([path]), Room(80, None, has_unicode=True)))
    assert "runs waiting" in told
    assert "runs running" not in told


async def test_an_undecided_run_has_a_word_and_is_told_with_how_to_decide(tmp_path):
    path = tmp_path / "agents.run"
    await in_state(path, RunState.UNDECIDED)
    told = status(path)
    assert "1 agent run: 1 undecided\n" in told
    assert "resolve(status.error, result=...) if it has, or again=True" in told
    assert "run its program again" not in told
    assert json.loads(status(path, "--json"))["runs"] == {"undecided": 1}
    async with Engine(path, isolation="inline", memory="+300MB") as engine:
        (left,) = await engine.unfinished()
        await engine.handle(left).cancel()
