import subprocess
import sys
from pathlib import Path

import pytest

from headrace import Model, QuestionFreeText, Results, Survey
from headrace.cli.demo import demo_run
from headrace.cli.demo.moods import demo_job, moods
from headrace.cli.demo.people import people_job
from headrace.cli.demo.pictures import Bar, MemoryPicture, bar_chart
from tests.cli.terminals import headrace, in_terminal

pytestmark = pytest.mark.usefixtures("forks")


def test_a_demo_shows_answers_bars_its_file_and_commands_that_work(headrace_home: Path):
    ended = headrace("demo", "--size", "60")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "\x1b" not in ended.stdout
    assert "Kyoto Good  █" in ended.stdout
    assert str(headrace_home / "runs" / "demo.run") in ended.stdout
    commands = [line.strip() for line in ended.stdout.partition("Type next")[2].splitlines() if line.startswith("  ")]
    assert len(commands) == 4
    for command in commands[:-1]:  # the last is a demo of 100,000
        typed = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=60)
        assert (typed.returncode, typed.stderr) == (0, ""), command
        assert typed.stdout


def test_every_demo_is_a_run_of_its_own_and_old_ones_do_not_pile_up(headrace_home: Path):
    for size in ("60", "60", "90"):
        assert headrace("demo", "--size", size).returncode == 0
        with Results.open(headrace_home / "runs" / "demo.run") as results:
            assert (len(results), results.stats().reused) == (int(size), 0)
    assert [path.name for path in (headrace_home / "runs").iterdir()] == ["demo.run"]


def test_a_demo_that_was_cut_short_goes_on(headrace_home: Path):
    demo_job(60).run(headrace_home / "runs" / "demo.run", limit=20).close()
    assert "reused: 20 of an earlier run" in headrace("demo", "--size", "60").stdout


def test_a_demo_that_cannot_run_leaves_the_finished_one_as_it_was(headrace_home: Path):
    path = headrace_home / "runs" / "people.run"
    people = Model("test", canned_response=lambda r: {"buy": "Yes", "useful": 3}.get(r.question_name, "It is."))
    asked = people_job()
    asked.survey.by(asked.agents, asked.scenarios, people).run(path).close()
    hidden = "import sys; sys.modules['xllamacpp'] = None; import headrace.cli.main as m; m.main()"
    ended = subprocess.run(
        [sys.executable, "-c", hidden, "demo", "--people"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "xllamacpp is not installed" in ended.stderr
    with Results.open(path) as results:
        assert len(results) == 60
    assert [each.name for each in path.parent.iterdir() if each.suffix == ".run"] == ["people.run"]


def test_a_demo_keeps_someone_else_s_file_under_another_name(headrace_home: Path):
    asked = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    asked.by(Model("test", canned_response="mine")).run(headrace_home / "runs" / "demo.run").close()
    assert headrace("demo", "--size", "6").returncode == 0
    kept = [path for path in (headrace_home / "runs").iterdir() if path.name != "demo.run"]
    with Results.open(kept[0]) as results:
        assert results[0].answer == {"q": "mine"}


def test_a_demo_with_a_path_stays_there_and_is_not_repeated(tmp_path: Path, headrace_home: Path):
    for _ in range(2):
        assert headrace("demo", "--size", "60", "-o", "here.run", cwd=tmp_path).returncode == 0
    with Results.open(tmp_path / "here.run") as results:
        assert results.stats().reused == 60
    assert not headrace_home.exists()


def test_a_large_demo_that_nobody_watches_draws_its_memory_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(demo_run, "_LARGE", 600)
    demo_run.run_demo(moods(), 600, tmp_path / "demo.run")
    told = capsys.readouterr().out
    assert told.count("47 KB: measured with EDSL") == 1
    assert "MB │" in told
    assert "\x1b" not in told


def test_the_readme_has_the_same_figure():
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    assert f"| RAM per further interview | {demo_run.THEIR_BYTES_EACH // 1000} KB |" in readme


def test_a_large_demo_draws_two_lines_while_it_runs_on_any_terminal():
    shown = in_terminal("demo", "--size", "20000", columns=40)
    assert shown.returncode == 0
    before, _, _ = shown.text.partition("run file:")
    assert before.count("47 KB: measured with EDSL") > 1
    assert "20,000 interviews" in before
    assert max(map(len, before.splitlines())) <= 40


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_flat_memory_is_a_level_line_and_the_other_one_rises_to_the_corner(width: int, unicode: bool):
    picture = MemoryPicture(1_000_000, 40_000)
    for done in range(0, 1_000_001, 1000):
        picture.note(done, 50_000_000)
    drawn = picture.drawn(width, unicode=unicode).plain
    lines = drawn.splitlines()
    assert max(map(len, lines)) <= min(width, 100)
    assert lines[0].startswith("40 GB ")
    assert lines[0].endswith("•" if unicode else "*")
    assert len(set(lines[9].partition("│" if unicode else "|")[2])) == 1
    assert drawn.isascii() is not unicode


def test_memory_that_grows_is_drawn_as_growing():
    picture = MemoryPicture(1000, 40_000)
    for done in range(0, 1001, 10):
        picture.note(done, 10_000_000 + done * 30_000)
    rows = [number for number, line in enumerate(picture.drawn(80, unicode=False).plain.splitlines()) if "=" in line]
    assert len(rows) > 5


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("unicode", [True, False])
def test_bars_fit_the_width_and_are_as_long_as_what_they_count(width: int, unicode: bool):
    bars = [Bar(group="Oslo", name="Good", count=count, style="green") for count in (1_000_000, 500_000, 1)]
    lines = bar_chart(bars, width, unicode=unicode).plain.splitlines()
    assert max(map(len, lines)) == width
    lengths = [line.count("█" if unicode else "#") for line in lines]
    assert lengths[0] == pytest.approx(2 * lengths[1], abs=2)
    assert all(any(letter in line for letter in "#█▏") for line in lines)  # few is not none
