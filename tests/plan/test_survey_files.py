"""Surveys written by hand or by an enemy: bounded before anything is built from them."""

import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from headrace import (
    QuestionBudget,
    QuestionDemand,
    QuestionDict,
    QuestionExtract,
    QuestionList,
    QuestionMatrix,
    QuestionPydantic,
    Survey,
)
from headrace.errors import SurveyError
from tests.cli.terminals import HEADRACE, environment

NINE_OF_NINE = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.yaml", NINE_OF_NINE, "line 6: with its aliases written out it has more than 200,000 values"),
        ("a.yaml", "a: &a [*a]\n", "an alias stands for something that holds the alias itself"),
        ("a.yaml", "a: &a {<<: *a}\n", "an alias stands for something that holds the alias itself"),
        ("a.yaml", "[" * 100_000, "nested deeper than 50 levels"),
        ("a.yaml", "- " * 100_000, "nested deeper than 50 levels"),
        ("a.yaml", "".join(" " * i + "a:\n" for i in range(300)), "line 50: it is nested deeper than 50 levels"),
        ("a.yaml", "a: \x07", "is not valid YAML: unacceptable character"),
        ("a.yaml", "!!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a.yaml", "#" * 9_000_000, "larger than 8 MB"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", "9" * 9_000_000, "larger than 8 MB"),
    ],
    ids=range(11),
)
def test_a_bomb_is_refused_before_it_is_built(tmp_path: Path, name: str, text: str, told: str):
    path = tmp_path / name
    path.write_text(text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SurveyError, match=told):
        Survey.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000  # KB


def test_a_device_without_an_end_is_not_read_to_its_end():
    with pytest.raises(SurveyError, match="larger than 8 MB"):
        Survey.load(Path("/dev/zero"))


def test_a_digits_only_text_may_be_as_long_as_it_likes(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text(f"questions: [{{kind: free_text, name: q, text: {'9' * 5000}}}]")
    assert Survey.load(path).questions[0].question_text == "9" * 5000


def test_aliases_that_help_are_welcome(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text(
        "questions:\n"
        "  - {kind: multiple_choice, name: a, text: 'A?', options: &answers [Yes, No]}\n"
        "  - {kind: multiple_choice, name: b, text: 'B?', options: *answers}\n"
    )
    assert Survey.load(path).questions[1].options == ("Yes", "No")


def test_ctrl_c_reaches_a_run_whose_texts_never_end(tmp_path: Path):
    loops = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"
    (tmp_path / "s.yaml").write_text(f'questions: [{{kind: free_text, name: q, text: "{loops}"}}]')
    (tmp_path / "people.csv").write_text("age\n" + "1\n" * 200)
    command = [*HEADRACE, "run", "s.yaml", "--agents", "people.csv", "--model", "test", "-o", "a.run"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (tmp_path / "a.run").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told.decode()


def test_a_name_of_megabytes_is_told_by_its_ends(tmp_path):
    path = tmp_path / "survey.yaml"
    path.write_text(f"? {'k' * 3_000_000}\n: 1\nquestions: []\n")
    with pytest.raises(SurveyError) as raised:
        Survey.load(path)
    assert len(str(raised.value)) < 50_000


def test_every_kind_with_parts_can_be_written_in_a_file(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text(
        """
questions:
  - {kind: list, name: foods, text: Which, min: 1, max: 3}
  - {kind: budget, name: shares, text: How, options: [a, b], budget: 100}
  - {kind: demand, name: cups, text: How many, prices: [1, 2.5]}
  - {kind: matrix, name: grid, text: How good, items: [price, taste], options: [1, 2], labels: {1: bad}}
  - {kind: dict, name: recipe, text: How, keys: [title, steps], types: [str, "list[str]"], descriptions: [x, y]}
  - {kind: extract, name: person, text: Who, template: {name: Ada, age: 36}}
  - {kind: pydantic, name: thing, text: What, schema: {type: object, properties: {name: {type: string}}}}
"""
    )
    kinds = [type(question) for question in Survey.load(path).questions]
    assert kinds == [
        QuestionList,
        QuestionBudget,
        QuestionDemand,
        QuestionMatrix,
        QuestionDict,
        QuestionExtract,
        QuestionPydantic,
    ]


def test_a_class_cannot_be_named_in_a_file(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text("questions: [{kind: pydantic, name: thing, text: What, pydantic_model: os.system}]")
    with pytest.raises(SurveyError, match="no setting 'pydantic_model'"):
        Survey.load(path)


def test_a_file_cannot_carry_a_function(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text("questions: [{kind: functional, name: thing, func: os.system}]")
    with pytest.raises(SurveyError, match="a functional question needs a function, which a file cannot carry"):
        Survey.load(path)
