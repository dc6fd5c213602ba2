"""Instructions: told before the questions that follow, until one takes them back."""

from typing import Any

import pytest

from headrace import ChangeInstruction, Instruction, QuestionFreeText, Survey
from headrace.errors import SurveyError
from headrace.survey.asked_question import asked_questions
from headrace.survey.flow.route import Route

BRIEF = Instruction(name="brief", text="Be brief.")
KIND = Instruction(name="kind", text="Be kind to {{ scenario.city }}.", preamble="")


def free(name: str, text: str = "Well?") -> QuestionFreeText:
    return QuestionFreeText(question_name=name, question_text=text)


def told(survey: Survey) -> list[str]:
    """What each prompt says before its question."""
    context: Any = {"agent": {}, "scenario": {"city": "Oslo"}, "a": {"answer": "tea"}}
    return [asked.write(context)[0].partition("Well?")[0] for asked in asked_questions(survey)]


def test_an_instruction_is_told_from_its_place_on():
    survey = Survey([free("a"), BRIEF, free("b"), KIND, free("c"), ChangeInstruction(drop=["brief"]), free("d")])
    brief, kind = "Instructions for what follows:\nBe brief.\n\n", "Be kind to Oslo.\n\n"
    assert told(survey) == ["", brief, brief + kind, kind]
    assert told(Survey.from_row(survey.to_row())) == told(survey)


def test_instructions_added_one_by_one_move_with_the_questions():
    survey = Survey().add_instruction(BRIEF).add_question(free("a"))
    survey.add_instruction(ChangeInstruction(drop=["brief"])).add_question(free("b"))
    brief = "Instructions for what follows:\nBe brief.\n\n"
    assert told(survey) == [brief, ""]
    assert told(survey.add_question(free("first"), index=0)) == [brief, brief, ""]
    assert told(survey.delete_question("a")) == [brief, ""]
    assert told(Survey([free("x")]) + survey) == ["", brief, ""]


def test_an_instruction_may_name_an_answer_and_its_names_are_checked():
    survey = Survey([free("a"), Instruction(name="i", text="Think of {{ a.answer }}."), free("b")])
    assert "Think of tea." in told(survey)[1]
    assert Route(survey).steps[1].needs == {0}
    with pytest.raises(SurveyError, match="an instruction: 'b' is not asked before it"):
        Survey([Instruction(name="i", text="{{ b.answer }}"), free("a"), free("b")])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (ChangeInstruction, "changes nothing"),
        (lambda: Instruction(name="x", text=""), "'' for its text"),
        (lambda: Survey([BRIEF, BRIEF, free("a")]), "Two instructions are called 'brief'"),
        (lambda: Survey([ChangeInstruction(drop=["x"]), free("a")]), "no instruction 'x' before"),
        (lambda: Survey([free("a")]).add_instruction(ChangeInstruction(drop=["x"])), "no instruction 'x' before"),
    ],
)
def test_instructions_that_make_no_sense_are_refused(make: Any, told: str):
    with pytest.raises(SurveyError, match=told):
        make()
