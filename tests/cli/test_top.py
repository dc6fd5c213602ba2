"""The list of runs at the terminal."""

from pathlib import Path

import pytest

from headrace import Agent, Model, QuestionFreeText, Survey
from tests.cli.forked import Forks, headrace
from tests.cli.live import live


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
