"""Replies that were made to take long: the time to read one grows with its length and no faster."""

import time

import pytest

from headrace import QuestionMatrix
from headrace.errors import HeadraceError, InvalidAnswer, SurveyError
from headrace.survey.questions.base import Question, kinds_for_files
from headrace.survey.replies import NoAnswer

_LENGTH = 100_000
_SECONDS = 2  # most took far longer for some kind of question; now none takes a fifth of it

HOSTILE = {
    "thoughts that never end": "<think>" * (_LENGTH // 7),
    "a fence that never closes": "```json" + " " * _LENGTH + "x{",
    "blank lines in a fence": "```\n" + " " * _LENGTH + "x",
    "commas behind a digit": "1" + "," * (_LENGTH - 10) + "x5",
    "dots behind a digit": "1" + "." * (_LENGTH - 10) + "x5",
    "a number of 100,000 digits": "1" + ",000" * (_LENGTH // 4 - 10) + "x",
    "opening brackets": "[" * _LENGTH,
    "brackets in brackets": "[" * (_LENGTH // 2) + "]" * (_LENGTH // 2),
    "objects that never end": '{"answer":' * (_LENGTH // 10),
    "half a surrogate pair": '{"answer": "\\ud800", "comment": "\\udc00"}',
}
KINDS = {"free_text", "numerical", "multiple_choice", "checkbox", "linear_scale", "list", "pydantic"}
ASKED = [kind.example() for kind in kinds_for_files() if kind.kind in KINDS]


@pytest.mark.parametrize("question", ASKED, ids=lambda question: question.kind)
@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_reply_is_read_in_linear_time(question: Question, reply: str) -> None:
    started = time.process_time()
    for read in (question.read, question.read_cut):
        try:
            found = read(reply)
            if found is not None:
                question.accept(found[0])
        except HeadraceError:
            continue
    assert time.process_time() - started < _SECONDS


def test_thoughts_are_passed_over_up_to_their_first_end() -> None:
    question = next(question for question in ASKED if question.kind == "free_text")
    assert question.read("<think>so <think> so</think> Oslo </think>")[0] == "Oslo </think>"
    assert question.read("<think> and no end")[0] == "<think> and no end"


def test_a_surrogate_without_its_other_half_is_an_invalid_answer_to_a_schema() -> None:
    question = next(question for question in ASKED if question.kind == "pydantic")
    with pytest.raises(InvalidAnswer, match="cannot be checked"):
        question.accept({"month": "\ud800"})


@pytest.mark.parametrize("kind", ["checkbox", "rank"])
def test_an_answer_may_name_thousands_of_thousands_of_options(kind: str) -> None:
    options = [f"Option {number} of many" for number in range(5_000)]
    question = Question(kind, question_name="q", question_text="Which?", question_options=options)
    for said in ([option.upper() for option in options], [*range(5_000)] if kind == "rank" else [*range(1, 5_001)]):
        started = time.process_time()
        assert question.accept(question.read(str(said))[0]) == options
        assert time.process_time() - started < _SECONDS


def test_a_short_answer_of_millions_of_letters_is_none() -> None:
    for question in ASKED:
        if question.kind not in ("free_text", "list", "pydantic"):
            started = time.process_time()
            with pytest.raises((NoAnswer, InvalidAnswer)):
                question.accept(question.read("1,2," * 500_000)[0])
            assert time.process_time() - started < _SECONDS


def test_a_matrix_whose_schema_would_take_gigabytes_is_refused() -> None:
    many = [f"number {number}" for number in range(2_000)]
    with pytest.raises(SurveyError, match="2,000 items and 2,000 options"):
        QuestionMatrix(question_name="q", question_text="How?", question_items=many, question_options=many)


def test_a_type_of_thousands_of_lists_inside_each_other_is_refused() -> None:
    deep = "list[" * 5_000 + "int" + "]" * 5_000
    with pytest.raises(SurveyError, match="for a type"):
        Question("dict", question_name="q", question_text="What?", answer_keys=["a"], value_types=[deep])
