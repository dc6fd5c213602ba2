"""The list of runs at the terminal."""

import asyncio
from pathlib import Path

import pytest

from headrace import Agent, Engine, Model, QuestionFreeText, Survey
from headrace.cli.top.top_lines import Room, top_lines
from headrace.web.shown_files import ShownFiles
from tests.cli.forked import headrace
from tests.cli.live import live
from tests.forks import Forks


@pytest.fixture
def place(tmp_path: Path, forks: Forks) -> Path:
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    job = survey.by([Agent(traits={"n": n}) for n in range(3)]).by(Model("test", canned_response="x"))
    job.run(tmp_path / "city.run", cache=False)
    return tmp_path


def test_without_a_terminal_the_list_is_printed_once(place: Path):
    (place / "b\x1b[31m.run").write_bytes(b"no database" * 100)
    ended = headrace(place, "top", ".")
    assert (ended.returncode, ended.stderr) == (0, "")
    head, *rows = ended.stdout.splitlines()
    assert head.split() == ["file", "state", "progress", "failed", "cost", "memory", "size", "changed"]
    assert any(row.split()[:5] == ["city.run", "complete", "3", "of", "3"] for row in rows)
    assert any("damaged" in row for row in rows)
    assert "\x1b" not in ended.stdout


def test_one_run_is_shown_with_its_figures_and_its_memory(place: Path):
    ended = headrace(place, "top", "city.run")
    assert ended.returncode == 0
    assert "city.run: complete, 100 %" in ended.stdout
    assert "interviews" in ended.stdout
    assert "budget" in ended.stdout  # of the memory line


def test_what_is_not_there_is_said(place: Path):
    ended = headrace(place, "top", "nowhere.run")
    assert ended.returncode != 0
    assert "nothing at nowhere.run" in ended.stderr


def test_the_help_names_it(place: Path):
    with live(place, "top", "--help") as shown:
        assert "headrace top" in shown.ended()[1]


def on_screen(place: Path, columns: int, rows: int) -> list[str]:
    return top_lines(ShownFiles([place]), Room(columns, rows, has_unicode=True))


@pytest.mark.parametrize(("rows", "has_picture"), [(40, True), (23, True), (13, True), (8, False)])
def test_a_run_fits_the_screen_and_its_picture_is_whole_or_not_there(place: Path, rows: int, has_picture: bool):
    lines = on_screen(place / "city.run", 80, rows)
    assert len(lines) <= rows
    assert max(map(len, lines)) <= 80
    assert ("memory of city.run" in lines) is has_picture
    assert any("└" in line for line in lines) is has_picture
    assert lines[-1].startswith("at most") is has_picture


def test_a_narrow_list_says_what_it_leaves_out(place: Path):
    (place / "other.run").write_bytes((place / "city.run").read_bytes())
    lines = on_screen(place, 40, 20)
    assert max(map(len, lines)) <= 40
    said = " ".join(lines)
    assert "too narrow for" in said
    for column in ("file", "state", "progress", "failed", "cost", "memory", "size", "changed"):
        assert column in said
    assert "too narrow" not in " ".join(on_screen(place, 120, 20))


async def test_one_engine_is_shown_with_slots_queue_and_heartbeats(tmp_path: Path):
    async def waits(ctx, _number):
        await asyncio.sleep(600)

    async with Engine(tmp_path / "e.run", isolation="inline", memory="+300MB", slots=1, breaker=None) as engine:
        engine.every(600, lambda: None, name="watcher", jitter=0)
        runs = [await engine.submit(waits, number) for number in range(2)]
        while engine.status().waiting["HIGH"] != 1:
            await asyncio.sleep(0.01)
        lines = await asyncio.to_thread(on_screen, tmp_path, 100, 40)
        said = "\n".join(lines)
        for words in ("e.run: running", "slots in use", "1 of 1", "HIGH 1", "the first waits for", "heartbeat watcher"):
            assert words in said
        assert any(line.startswith(f"run {runs[0].id} ") for line in lines)
        for run in runs:
            await run.cancel()
