"""What people see: what varies, in lines while it fits, never more rows than a screen holds."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.errors import OptionError
from headrace.results.results import Results
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.scenario import Scenario
from tests.results import files


@pytest.fixture(autouse=True)
def any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal that runs the tests has a width of its own."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    with Results.open(files.city_copy(tmp_path / "city.run")) as opened:
        yield opened


@pytest.fixture
def wide(tmp_path: Path) -> Iterator[Results]:
    agents = [Agent({"age": n, "job": "a very particular kind of nurse", "n": n % 3}, name=f"p{n}") for n in range(9)]
    of = files.job(files.survey("mood", "story", "reason", "rating"), agents, [Scenario(city="Oslo")])
    path = files.write(tmp_path / "w.run", of, lambda n: ["Good", "wind and water " * 30, "b" * 40, n])
    with Results.open(path) as opened:
        yield opened


def test_the_first_look_has_answers_and_what_varies(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = str(results).splitlines()
    assert lines[0].split() == ["answer.mood", "answer.rating", "agent.agent_name", "agent.age", "scenario.city"]
    assert lines[2].split() == ["Good", "0", "p0", "20", "Oslo"]
    assert lines[-2] == "and 20 more"
    assert len(lines) == 24
    assert max(map(len, lines[:-1])) <= 80  # the last says why interviews failed


def test_what_all_interviews_share_is_not_shown_unasked(tmp_path: Path) -> None:
    models = [Model("test", canned_response="x", temperature=heat) for heat in (0, 1)]
    of = files.job(files.survey("q"), [Agent({"same": 1, "age": n}) for n in range(2)], [Scenario(city="Oslo")], models)
    with Results.open(files.write(tmp_path / "m.run", of, lambda _: ["x"], n=2)) as results:
        names = str(results).splitlines()[0].split()
    assert names == ["answer.q", "agent.age", "model.temperature", "iteration.iteration"]


def test_a_field_that_varies_far_from_the_first_rows_is_shown(tmp_path: Path) -> None:
    agents = [Agent({"place": "near" if n < 400 else "far"}) for n in range(500)]
    with Results.open(
        files.write(tmp_path / "f.run", files.job(files.survey("q"), agents), lambda _: ["x"])
    ) as results:
        assert str(results).splitlines()[0].split() == ["answer.q", "agent.place"]
        assert str(results).endswith("and 480 more")


def test_bare_names_and_cut_texts_keep_a_row_on_a_line(wide: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = str(wide).splitlines()
    assert lines[0].split() == ["mood", "story", "reason", "rating", "agent_name", "age", "n"]
    assert len(lines) == 11
    assert "…" in lines[2]
    assert max(map(len, lines)) <= 80


def test_blocks_come_where_columns_do_not_fit(wide: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = str(wide).splitlines()
    assert lines[0] == "[1]"
    assert "answer.mood: Good" in lines
    assert "[9]" in lines  # as many rows as a table has
    assert max(map(len, lines)) <= 40


def test_chosen_columns_are_folded_and_not_cut(wide: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = str(wide.select("story", "rating").head(2))
    assert " ".join(shown.split()).count("wind and water") == 58  # the rating stands inside one
    assert max(map(len, shown.splitlines())) <= 80


def test_into_a_pipe_a_row_is_one_line(wide: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = str(wide).splitlines()
    assert len(lines) == 11
    assert "answer.story" in lines[0]
    assert all("b" * 40 in line for line in lines[2:])


def test_a_terminal_is_as_wide_as_it_is(wide: Results) -> None:
    program = (
        "import sys; from headrace import Results; print(Results.open(sys.argv[1])); Results.open(sys.argv[1]).print()"
    )
    main, child = pty.openpty()

    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    ran = subprocess.Popen(
        [sys.executable, "-c", program, str(wide.path)], stdin=child, stdout=child, env={**env, "TERM": "xterm"}
    )
    os.close(child)
    shown = b""
    try:
        while piece := os.read(main, 65536):
            shown += piece
    except OSError:  # Linux's way to say that the other end is closed
        pass
    finally:
        os.close(main)
    assert ran.wait() == 0
    text = shown.decode()
    assert text.count("and") > 10
    assert "\x1b[1m" in text  # bold headings
    plain = text.split("\x1b")[0].splitlines()
    assert max(map(len, plain)) <= 100


@pytest.mark.parametrize(
    ("form", "head"),
    [
        ("markdown", "| Mood | answer.rating |"),
        ("html", "<th>Mood</th><th>answer.rating</th>"),
        ("latex", "Mood & answer.rating \\\\"),
        ("rich", "Mood"),
    ],
)
def test_selected_columns_print_in_other_formats(
    results: Results, capsys: pytest.CaptureFixture[str], form: str, head: str
) -> None:
    chosen = results.select("mood", "rating")
    assert chosen.print(format=form, pretty_labels={"answer.mood": "Mood"}, max_rows=2) is None
    shown = capsys.readouterr().out
    assert head in shown
    assert "38 more" in shown
    chosen.print(format=form, pretty_labels={"mood": "Mood"})
    assert head in capsys.readouterr().out


def test_markup_in_values_stays_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = files.job(files.survey("q"), [Agent({"n": 1})])
    text = "a|b <script> 50% & $x$ _y_ \\z \x1b[31m [red]no[/red] {{ q }}"
    with Results.open(files.write(tmp_path / "x.run", of, lambda _: [text])) as results:
        for form in ("rich", "markdown", "html", "latex"):
            results.select("q").print(format=form)
        shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[red]no[/red]" in shown
    assert "a\\|b &lt;script>" in shown
    assert "50\\% \\& \\$x\\$ \\_y\\_ \\textbackslash{}z" in shown


def test_formats_and_labels_that_there_are_not_are_refused(results: Results) -> None:
    with pytest.raises(OptionError, match="rich, markdown, html, latex"):
        results.print(format="pdf")
    with pytest.raises(OptionError, match=r"Did you mean 'answer\.mood'"):
        results.select("mood").print(pretty_labels={"answer.moood": "Mood"})


def test_a_filter_that_only_python_can_count_says_and_more(results: Results) -> None:
    assert str(results.filter("len(lower(agent_name)) > 0")).splitlines()[-2] == "and more"
    assert "and more" not in str(results.filter("len(lower(agent_name)) > 0 and rating == 3"))


def test_the_repr_of_chosen_columns_is_their_table(results: Results) -> None:
    assert repr(results.select("mood")) == str(results.select("mood"))
    assert repr(results).startswith("Results(")


def test_hundreds_of_columns_are_not_all_shown(tmp_path: Path) -> None:
    names = [f"q{n}" for n in range(300)]
    path = files.write(tmp_path / "w.run", files.job(files.survey(*names)), lambda _: ["x"] * 300)
    with Results.open(path) as results:
        assert str(results).endswith("30 of 300 columns")
        assert len(str(results.select("answer.*")).splitlines()[0].split()) == 300


def test_results_that_are_empty_still_show_their_columns(tmp_path: Path) -> None:
    with Results.open(files.city(tmp_path / "e.run", ordinals=[])) as results:
        assert "answer.mood" in str(results)
        assert str(results).splitlines()[-1] == "no rows"


WHY = "the first: interview 3, mood: invalid answer: question 0 < 3; results.failed() lists them"


def test_every_table_says_how_many_interviews_failed_and_why(
    results: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    note = f"6 of 40 interviews failed, {WHY}"
    assert str(results).splitlines()[-1] == note
    sorted_note = str(results.select("rating").sort_by("rating")).splitlines()[-1]
    assert sorted_note.startswith("6 of 40 interviews failed, the first: interview 10, mood: invalid answer")
    assert note.replace("<", "&lt;") in results._repr_html_()
    for form in ("rich", "markdown", "latex"):
        results.print(format=form)
        assert note in capsys.readouterr().out


def test_a_view_says_what_failed_in_it(results: Results) -> None:
    assert str(results.head(5)).splitlines()[-1] == f"1 of 5 interviews failed, {WHY}"
    assert str(results[10:]).splitlines()[-1].startswith("5 of 30 interviews failed, the first: interview 10, mood")
    assert str(results.filter("agent.age < 35")).splitlines()[-1] == f"4 of 30 interviews failed, {WHY}"
    in_python = results.filter("len(lower(agent_name)) > 0")
    assert str(in_python).splitlines()[-1] == f"3 of the 20 interviews shown failed, {WHY}"
    assert str(results + results).splitlines()[-1] == f"12 of 80 interviews failed, {WHY}"
    assert "failed" not in str(results.filter("interview.status == 'done'"))


def test_failed_and_skipped_answers_look_different(tmp_path: Path) -> None:
    of = files.job(files.survey("one", "two"), [Agent({"n": n}) for n in range(2)])
    path = files.write(tmp_path / "f.run", of, lambda n: [files.MISSING, files.SKIPPED] if n else ["x", "y"])
    with Results.open(path) as results:
        assert str(results).splitlines()[2:4] == ["x            y            0", "(failed)                  1"]
        assert results.to_list()[1][0] is None


def test_a_tally_says_how_many_more_there_are(results: Results) -> None:
    assert str(results.tally("agent.age", "city")).splitlines()[-1] == "and 20 more"
    assert "more" not in str(results.tally("mood"))


@pytest.mark.parametrize("columns", [None, "30", "120"])
def test_chosen_columns_keep_the_line_breaks_of_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    text = "Roses are red\n  violets are blue\r\n\n" + "so it goes " * 15 + "\nthe end\n"
    path = files.write(tmp_path / "p.run", files.job(files.survey("poem", "n")), lambda _: [text, "x"])
    with Results.open(path) as results:
        lines = [line.strip() for line in str(results.select("poem")).splitlines()]
        assert "violets are blue" in lines
        assert lines[-1] == "the end"
        assert "\\r" not in "".join(lines)
        assert "violets are blue<br>" in results.select("poem")._repr_html_()
        monkeypatch.delenv("COLUMNS", raising=False)
        assert len(str(results).splitlines()) == 3  # at a first look, a line an interview
