"""A survey's flow as a picture and as text."""

import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from headrace import EndOfSurvey, QuestionFreeText, Survey
from headrace.errors import OptionError, SurveyError


def free(name: str, text: str = "Well?") -> QuestionFreeText:
    return QuestionFreeText(question_name=name, question_text=text)


def a_survey() -> Survey:
    survey = Survey([free("a"), free("b"), free("c", "You said {{ a.answer }}?"), free("d")])
    survey.add_rule("a", "a == 'Yes'", "c").add_stop_rule("b", "b == 'No'").add_skip_rule("d", "agent.age < 30")
    return survey.add_question_group("a", "b", "first")


def test_printed_it_is_mermaid_text():
    assert str(a_survey().show_flow()) == (
        "flowchart TD\n"
        "    subgraph first\n"
        '    q0["a: Well?<br/>(free_text)"]\n'
        '    q1["b: Well?<br/>(free_text)"]\n'
        "    end\n"
        '    q2["c: You said #123;#123; a.answer #125;#125;?<br/>(free_text)"]\n'
        '    q3["d: Well?<br/>(free_text)"]\n'
        "    q4([End])\n"
        "    q0 --> q1\n"
        "    q1 --> q2\n"
        "    q2 --> q3\n"
        "    q0 -.-> q2\n"
        "    q3 --> q4\n"
        '    q3 -.->|"skip where agent.age #60; 30"| q4\n'
        "    q0 -->|\"a == 'Yes'\"| q2\n"
        "    q1 -->|\"b == 'No'\"| q4\n"
    )


def test_a_notebook_shows_a_picture_with_every_question_and_condition():
    picture = ET.fromstring(a_survey().show_flow()._repr_svg_())
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a", "b", "c", "d", "End", "first", "a == 'Yes'", "b == 'No'", "skip: agent.age < 30"} <= {*texts}
    assert "<svg" in a_survey().show_flow()._repr_html_()


def test_texts_of_a_survey_steer_neither_the_page_nor_the_diagram():
    nasty = '"]; click q0 "javascript:alert(1)" <script>alert(1)</script>\n%%{init: {}}%%'
    survey = Survey([free("a", nasty), free("b")]).add_rule("a", "a == '<script>\"|'", EndOfSurvey)
    drawing = survey.show_flow()
    assert "<script>" not in drawing._repr_svg_() + str(drawing)
    assert str(drawing).count("\n") == 7
    ET.fromstring(drawing._repr_svg_())


def test_it_is_written_to_a_file_by_its_suffix(tmp_path: Path):
    for name, begins in (("a.svg", "<svg"), ("a.html", "<!doctype"), ("a.mmd", "flowchart"), ("a.md", "```mermaid")):
        a_survey().show_flow(filename=tmp_path / name)
        assert (tmp_path / name).read_text("utf-8").startswith(begins)
    with pytest.raises(SurveyError, match=r"'a.png'. Use .svg"):
        a_survey().show_flow("a.png")


def test_it_takes_the_place_of_files_only(tmp_path: Path):
    os.mkfifo(tmp_path / "a.svg")  # opening it would wait for a reader
    with pytest.raises(OptionError, match="FIFO"):
        a_survey().show_flow(tmp_path / "a.svg")


@pytest.mark.parametrize(
    ("group", "told"),
    [
        (("a", "b", "1st"), "cannot be called '1st'"),
        (("a", "b", "c"), "a question called 'c'"),
        (("c", "d", "first"), "a group called 'first'"),
        (("d", "c", "g"), "'d' comes after 'c'"),
        (("b", "c", "g"), "overlaps with group 'first'"),
        (("z", "c", "g"), "no question 'z'"),
    ],
)
def test_a_group_that_does_not_fit_is_refused(group: tuple[str, str, str], told: str):
    with pytest.raises(SurveyError, match=told):
        a_survey().add_question_group(*group)


def test_groups_follow_their_questions():
    survey = a_survey().add_question_group("c", "d", "second").add_question(free("x"), index=1)
    assert survey.question_groups == {"first": (0, 2), "second": (3, 4)}
    assert Survey.from_row(survey.to_row()).question_groups == survey.question_groups
    assert survey.drop("b").question_groups == {"first": (0, 1), "second": (2, 3)}
    assert survey.drop("c", "d").question_groups == {"first": (0, 2)}
    assert survey.question_names == ["a", "x", "b", "c", "d"]
