"""A run as one HTML file: bounded, whole or not at all, and nothing in it that loads."""

import re
from pathlib import Path

import pytest

from headrace import Agent, Engine, Model, QuestionFreeText, QuestionMultipleChoice, Survey
from headrace.errors import OptionError
from headrace.web.exported_page import export_page
from tests.web.hostile import SCRIPTS, hostile_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "town.run"
    survey = Survey(
        [
            QuestionMultipleChoice(question_name="mood", question_text="Well?", question_options=["good", "bad"]),
            QuestionFreeText(question_name="why", question_text="Why?"),
        ]
    )
    agents = [Agent(traits={"age": age}) for age in range(300)]
    survey.by(agents).by(Model("test", canned_response={"mood": "good", "why": "é" * 300})).run(path, cache=False)
    return path


def exported(run: Path, place: Path, **limits: int) -> str:
    written = export_page(run, place / "page.html", **limits)
    text = written.path.read_text("utf-8")
    assert written.size_bytes == written.path.stat().st_size
    assert [each.name for each in place.iterdir()] == ["page.html"]
    return text


def test_the_file_has_figures_memory_pictures_and_rows(run: Path, tmp_path: Path):
    text = exported(run, tmp_path)
    assert "300 of 300" in text
    assert text.count("<svg") == 3
    assert text.count("<tr>") == 301  # the table's head is a row too
    assert "agent.age" in text
    assert "beyond 200 letters" in text


def test_a_failed_row_is_marked_and_its_failure_leads_to_it(tmp_path: Path):
    question = QuestionMultipleChoice(question_name="mood", question_text="How <i>so</i>?", question_options=["a", "b"])
    agents = [Agent(traits={"n": n}) for n in range(4)]
    model = Model("test", canned_response="a")
    bad = Model("test", canned_response="c")
    Survey([question]).by(agents).by([model, bad]).run(tmp_path / "a.run", cache=False)
    (tmp_path / "out").mkdir()
    text = exported(tmp_path / "a.run", tmp_path / "out")
    assert '<a href="#i1">interview 1</a>' in text
    assert 'id="i1">1 <span class="bad">failed</span></th>' in text
    assert '<td><span class="bad">failed</span></td>' in text
    assert "How &lt;i&gt;so&lt;&#x2f;i&gt;?</p>" in text
    assert "money left" in text


def test_nothing_in_the_file_runs_or_loads(run: Path, tmp_path: Path):
    text = exported(run, tmp_path)
    assert "<script" not in text
    assert "default-src 'none'; style-src 'sha256-" in text
    assert not re.findall(r"(?:src|href)=\"(?!#|data:,)", text)
    assert "url(" not in text
    assert "@import" not in text


def test_hostile_texts_are_text_in_the_file(tmp_path: Path):
    run = hostile_run(tmp_path / f"{SCRIPTS[1]}.run")
    (tmp_path / "out").mkdir()
    text = exported(run, tmp_path / "out")
    assert text.count("<style") == 1
    assert not [tag for tag in ("<script", "<img", "<svg/", "</textarea", " style=") if tag in text]
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize("most", [60_000, 100_000])
def test_the_file_is_bounded_and_says_what_was_left_out(run: Path, tmp_path: Path, most: int):
    text = exported(run, tmp_path, most_bytes=most)
    assert len(text.encode()) <= most
    rows = text.count("<tr>") - 1
    assert 0 < rows < 300
    assert f"{300 - rows} of 300 interviews in the table" in text
    assert f"The first {rows} interviews" in text


def test_a_limit_that_holds_nothing_is_refused_and_what_was_there_stays(run: Path, tmp_path: Path):
    (tmp_path / "page.html").write_text("an older one")
    with pytest.raises(OptionError, match="too few"):
        export_page(run, tmp_path / "page.html", most_bytes=2_000)
    assert (tmp_path / "page.html").read_text() == "an older one"


def test_no_run_file_is_overwritten(run: Path):
    with pytest.raises(OptionError, match="run file itself"):
        export_page(run, run)


async def test_an_engine_file_and_nothing_are_refused_in_words(tmp_path: Path):
    async with Engine(tmp_path / "agents.run", isolation="inline"):
        pass
    with pytest.raises(OptionError, match="an engine's file"):
        export_page(tmp_path / "agents.run", tmp_path / "page.html")
    with pytest.raises(OptionError, match="no run file"):
        export_page(tmp_path / "nothing.run", tmp_path / "page.html")


def test_a_run_that_keeps_no_rows_is_exported_with_its_figures(tmp_path: Path):
    survey = Survey([QuestionFreeText(question_name="why", question_text="Why?")])
    path = tmp_path / "kept.run"
    survey.by([Agent(), Agent(name="b")]).by(Model("test")).run(path, keep="nothing", aggregate={"n": "count()"})
    (tmp_path / "out").mkdir()
    assert "2 of 2" in exported(path, tmp_path / "out")
