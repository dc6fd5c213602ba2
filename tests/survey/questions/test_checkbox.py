"""Several of the options: whatever form a valid list comes in, it is the same list; anything else is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import (
    Model,
    Question,
    QuestionCheckBox,
    QuestionCheckBoxWithOther,
    QuestionRank,
    QuestionTopK,
    ScenarioList,
    Survey,
)
from headrace.errors import InvalidAnswer, SurveyError
from tests.survey.questions.option_forms import TEXT, answered, in_list_form, option_lists

MANY = settings(max_examples=400, deadline=None)


def asked_for(options: list[str], wanted: list[str], kind: type[Question], use_code: bool) -> Question:
    if kind is QuestionRank:
        return QuestionRank(**TEXT, question_options=options, num_selections=len(wanted), use_code=use_code)
    bounds = {"min_selections": len(wanted), "max_selections": len(wanted)}
    return kind(**TEXT, question_options=options, use_code=use_code, **bounds)


@MANY
@given(st.data())
def test_options_are_accepted_in_every_form(data: st.DataObject):
    options = data.draw(option_lists())
    wanted = data.draw(st.permutations(options))[: data.draw(st.integers(1, len(options)))]
    kind = data.draw(st.sampled_from([QuestionCheckBox, QuestionCheckBoxWithOther, QuestionRank, QuestionTopK]))
    use_code = data.draw(st.booleans())
    numbers = [options.index(each) + (0 if use_code else 1) for each in wanted]
    written = data.draw(in_list_form(wanted, numbers))
    assert answered(asked_for(options, wanted, kind, use_code), written) == wanted, written


@MANY
@given(st.data())
def test_nothing_else_is_accepted(data: st.DataObject):
    options = data.draw(option_lists())
    wanted = data.draw(st.permutations(options))[: data.draw(st.integers(1, len(options)))]
    kind = data.draw(st.sampled_from([QuestionCheckBox, QuestionRank, QuestionTopK]))
    question = asked_for(options, wanted, kind, data.draw(st.booleans()))
    wrong = [[*wanted[1:], "quince"], [*wanted, "quince"], wanted[1:], [*wanted[:-1], len(options) + 1], [{}]]
    if len(options) > len(wanted):
        wrong.append([*wanted, next(each for each in options if each not in wanted)])
    written = data.draw(st.sampled_from([*map(json.dumps, wrong), f"I don't like {wanted[0]}", "quince", "?", "all"]))
    with pytest.raises(InvalidAnswer):
        answered(question, written)


def test_a_sentence_names_what_is_chosen_but_no_order():
    colours = ["Red", "Green", "Blue"]
    question = QuestionCheckBox(**TEXT, question_options=colours)
    assert question.read("I like Red and Blue a lot\nGreen is for others") == (
        "I like Red and Blue a lot",
        "Green is for others",
    )
    assert answered(question, "I like Red and Blue a lot\nGreen is for others") == ["Red", "Blue"]
    for written in ("I like Red but not Blue", "Neither Red nor Blue"):
        with pytest.raises(InvalidAnswer):
            answered(question, written)
    with pytest.raises(InvalidAnswer):
        answered(QuestionRank(**TEXT, question_options=colours, num_selections=2), "Red is worse than Blue")


def test_numbers_before_options_are_marks():
    question = QuestionRank(**TEXT, question_options=["Tea", "Coffee", "Juice"], num_selections=2)
    assert answered(question, "1: Tea\n2: Coffee") == answered(question, "0: Tea\n1: Coffee") == ["Tea", "Coffee"]
    assert answered(question, "0, 1") == ["Tea", "Coffee"]


def test_options_with_commas_stay_whole():
    question = QuestionCheckBox(**TEXT, question_options=["Yes, always", "Yes", "Red and blue", "Red"])
    assert answered(question, "Yes, always, Red and blue") == ["Yes, always", "Red and blue"]


def test_none_may_be_chosen_where_no_number_is_asked_for():
    question = QuestionCheckBox(**TEXT, question_options=["Red", "Blue"])
    assert [answered(question, each) for each in ("[]", "None", "none of the above", '{"answer": []}')] == [[]] * 4
    with pytest.raises(InvalidAnswer, match="0 options were chosen"):
        answered(QuestionCheckBox(**TEXT, question_options=["Red", "Blue"], min_selections=1), "[]")


def test_an_option_is_in_the_answer_once():
    assert answered(QuestionCheckBox(**TEXT, question_options=["Red", "Blue"]), '["Red", "red", "Blue"]') == [
        "Red",
        "Blue",
    ]
    with pytest.raises(InvalidAnswer, match="1 options"):
        answered(QuestionRank(**TEXT, question_options=["Red", "Blue"]), '["Red", "Red"]')


def test_numbers_among_the_options_are_no_codes():
    question = QuestionRank(**TEXT, question_options=[3, 1, 2])
    assert answered(question, "[1, 2, 3]") == [1, 2, 3]
    assert "Answer with them" in question.closing()


def test_answers_of_their_own_stand_behind_other():
    question = QuestionCheckBoxWithOther(**TEXT, question_options=["Pizza", "Pasta"])
    assert answered(question, '["Pizza", "other: soup"]') == ["Pizza", "Other: soup"]
    assert answered(question, "Pizza, Other: soup") == ["Pizza", "Other: soup"]
    assert answered(question, "- Pasta\n- Other") == ["Pasta", "Other"]
    assert answered(question, '{"answer": ["pizza", "soup"]}') == ["Pizza", "Other: soup"]
    with pytest.raises(InvalidAnswer):
        answered(question, '["Pizza", "soup"]')


def test_a_permissive_question_counts_nothing_and_takes_other_answers():
    question = QuestionCheckBox(**TEXT, question_options=["Red", "Blue"], max_selections=1, permissive=True)
    assert answered(question, '["red", "Blue", "Pink"]') == ["Red", "Blue", "Pink"]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: QuestionCheckBox(**TEXT, question_options=["a", "b"], min_selections=3),
            "min_selections 3 and 2 options",
        ),
        (lambda: QuestionCheckBox(**TEXT, question_options=["a", "b"], min_selections=-1), "min_selections=-1"),
        (lambda: QuestionCheckBox(**TEXT, question_options=["a", "b"], max_selections="two"), "max_selections='two'"),
        (
            lambda: QuestionCheckBox(**TEXT, question_options=["a", "b"], min_selections=2, max_selections=1),
            "min_selections 2 above max_selections 1",
        ),
        (
            lambda: QuestionTopK(**TEXT, question_options=["a", "b"], min_selections=1, max_selections=2),
            "the same number for both",
        ),
        (lambda: QuestionTopK(**TEXT, question_options=["a", "b"]), "needs 'min_selections'"),
        (lambda: QuestionRank(**TEXT, question_options=["a", "b"], num_selections=3), "num_selections 3"),
    ],
)
def test_settings_that_do_not_fit_are_refused(make: Any, told: str):
    with pytest.raises(SurveyError, match=told):
        make()


@pytest.mark.parametrize("kind", ["checkbox", "checkbox_with_other", "rank", "top_k"])
def test_the_example_of_a_kind_runs(kind: str, tmp_path: Any):
    question = Question.example(kind)
    canned = question.settings()["question_options"][1:3]
    results = (
        Survey([question]).by(Model("test", canned_response=str(canned))).run(tmp_path / "a.run", progress_bar=False)
    )
    assert results[0].answer == {question.question_name: canned}


def test_the_number_of_selections_may_be_data(tmp_path: Any):
    question = QuestionCheckBox(**TEXT, question_options="{{ scenario.colours }}", max_selections="{{ scenario.most }}")
    rows = [{"colours": ["Red", "Blue", "Green"], "most": 1}, {"colours": ["Red", "Blue", "Green"], "most": 2}]
    model = Model("test", canned_response='["Red", "Green"]')
    results = question.by(ScenarioList(rows), model).run(tmp_path / "a.run", progress_bar=False)
    assert [result.answer["q"] for result in results] == [None, ["Red", "Green"]]


@pytest.mark.parametrize("count", [1, 2, 3, 6])
@pytest.mark.parametrize("use_code", [True, False])
def test_the_example_shows_as_many_options_as_are_asked_for(count: int, use_code: bool):
    options = list("abcdef")[: max(count, 2)]
    question = QuestionRank(**TEXT, question_options=options, num_selections=count, use_code=use_code)
    example = json.loads(question.instructions().rpartition(": ")[2])
    assert len(example) == count
    assert not use_code or set(example) <= set(range(len(options)))


def test_the_example_of_a_free_number_of_options_shows_two():
    question = QuestionCheckBox(**TEXT, question_options=["a", "b", "c"], use_code=True)
    assert question.instructions().endswith(": [0, 2]")
