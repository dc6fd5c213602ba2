"""One of several options: whatever form a valid answer comes in, it is the same option; anything else is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headrace import (
    Model,
    Question,
    QuestionDropdown,
    QuestionFreeText,
    QuestionLikertFive,
    QuestionLinearScale,
    QuestionMarkdown,
    QuestionMultipleChoice,
    QuestionMultipleChoiceWithOther,
    QuestionYesNo,
    Survey,
)
from headrace.errors import InvalidAnswer, SurveyError
from tests.survey.questions.option_forms import TEXT, answered, in_one_form, option_lists

MANY = settings(max_examples=400, deadline=None)


@MANY
@given(st.data())
def test_an_option_is_accepted_in_every_form(data: st.DataObject):
    options = data.draw(option_lists())
    kind = data.draw(st.sampled_from([QuestionMultipleChoice, QuestionMultipleChoiceWithOther, QuestionDropdown]))
    question = kind(**TEXT, question_options=options, use_code=data.draw(st.booleans()))
    wanted = data.draw(st.sampled_from(options))
    first = 0 if question.use_code else 1
    written = data.draw(in_one_form(wanted, options.index(wanted) + first))
    assert answered(question, written) == wanted, written


@MANY
@given(st.data())
def test_nothing_else_is_accepted(data: st.DataObject):
    options = data.draw(option_lists())
    question = QuestionMultipleChoice(**TEXT, question_options=options, use_code=data.draw(st.booleans()))
    one, other = data.draw(st.permutations(options))[:2]
    wrong = [f"{one} or {other}", f"not {one}", f"I don't want {one}", f"{one}, {other}", "quince", "I like quinces.",
             str(len(options) + 1), "-1", "[]", json.dumps([one, other]), "{}", "?"]  # fmt: skip
    with pytest.raises(InvalidAnswer):
        answered(question, data.draw(st.sampled_from(wrong)))


@MANY
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=7, unique=True), st.data())
def test_options_that_are_numbers_are_chosen_by_their_text_alone(options: list[int], data: st.DataObject):
    question = QuestionMultipleChoice(**TEXT, question_options=options, use_code=data.draw(st.booleans()))
    wanted = data.draw(st.sampled_from(options))
    form = data.draw(
        st.sampled_from(["{}", " {}.", '{{"answer": {}}}', '{{"answer": "{}"}}', "Answer: {}", "{}\nsince"])
    )
    assert answered(question, form.format(wanted)) == wanted
    unknown = data.draw(st.integers(-60, 60))
    assume(unknown not in options)
    with pytest.raises(InvalidAnswer):
        answered(question, form.format(unknown))


@MANY
@given(st.data())
def test_a_point_of_a_scale_is_accepted_in_every_form(data: st.DataObject):
    points = list(range(data.draw(st.integers(0, 3)), data.draw(st.integers(5, 11))))
    labels = {points[0]: "hate it", points[-1]: "love it"}
    question = QuestionLinearScale(**TEXT, question_options=points, option_labels=labels)
    point = data.draw(st.sampled_from(points))
    forms = ["{}", " {}. ", "**{}**", "{}.0", "I'd say {}.", "My answer: {}", "{}\nbecause 1 of 3 said so", "{}/{best}",
             '{{"answer": {}}}', '{{"answer": "{}",}}', "```\n{}\n```", "{} out of {best}"]  # fmt: skip
    assert answered(question, data.draw(st.sampled_from(forms)).format(point, best=points[-1])) == point
    label = labels.get(point)
    if label is not None:
        written = data.draw(st.sampled_from(["{}", "{}.", "I {}", "{point}: {}", "{point} - {}"]))
        assert answered(question, written.format(label.upper(), point=point)) == point
    wrong = [str(points[-1] + 1), "-7", f"{points[0]} or {points[1]}", f"{points[0]}.5", "many", "", "I do not love it"]
    with pytest.raises((InvalidAnswer, Exception)) as refused:
        answered(question, data.draw(st.sampled_from(wrong)))
    assert type(refused.value).__name__ in ("InvalidAnswer", "NoAnswer")


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("yes", "Yes"), ("NO.", "No"), ("y", "Yes"), ("False", "No"), ('{"answer": true}', "Yes"),
        ("No, I don't.", "No"), ("The answer is no", "No"), ("Yes\nI do not mind", "Yes"), ("```\nNo\n```", "No"),
    ],
)  # fmt: skip
def test_yes_and_no_come_in_many_forms(written: str, wanted: str):
    assert answered(QuestionYesNo(**TEXT), written) == wanted


@pytest.mark.parametrize("written", ["maybe", "I have no idea", "yes and no", "1", "Not yes", "yesterday"])
def test_neither_yes_nor_no_is_refused(written: str):
    with pytest.raises(InvalidAnswer):
        answered(QuestionYesNo(**TEXT), written)


def test_the_longer_option_is_meant_where_one_holds_the_other():
    question = QuestionLikertFive(**TEXT)
    assert answered(question, "I strongly disagree with that.") == "Strongly disagree"
    assert answered(question, "4") == "Agree"
    with pytest.raises(InvalidAnswer):
        answered(question, "Strongly")


def test_options_that_begin_with_numbers_are_found_by_these():
    options = ["0 - never", "1 - rarely", "2 - often"]
    question = QuestionMultipleChoice(**TEXT, question_options=options)
    assert "- 0 - never" in question.closing()
    assert [answered(question, each) for each in ("0", "1", "2 - often")] == options


def test_an_option_may_be_shortened_where_that_is_clear():
    question = QuestionMultipleChoice(**TEXT, question_options=["Yes, always", "Yes, at times", "No (never)"])
    assert answered(question, "no") == "No (never)"
    with pytest.raises(InvalidAnswer):
        answered(question, "Yes")


def test_a_code_is_asked_for_and_accepted():
    question = QuestionMultipleChoice(**TEXT, question_options=["Good", "Bad"], use_code=True)
    assert "0: Good\n1: Bad" in question.closing()
    assert question.schema() == {"enum": [0, 1]}
    assert [answered(question, each) for each in ("0", "1", '{"answer": 1}', "Good")] == ["Good", "Bad", "Bad", "Good"]


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1))
def test_a_permissive_question_takes_any_answer(text: str):
    assume(text.strip() and "{" not in text and not text.startswith("<think>"))
    question = QuestionMultipleChoice(**TEXT, question_options=["Good", "Bad"], permissive=True)
    expected = {"good": "Good", "bad": "Bad", "1": "Good", "2": "Bad"}.get(text.strip().casefold())
    assert answered(question, text) == (expected or text.strip()) or expected is None


@MANY
@given(option_lists(), st.text(st.characters(categories=["L", "Nd"]), min_size=1, max_size=20), st.data())
def test_another_answer_stands_behind_other(options: list[str], own: str, data: st.DataObject):
    question = QuestionMultipleChoiceWithOther(**TEXT, question_options=options, other_option_text="Other (say which)")
    form = data.draw(
        st.sampled_from(["Other (say which): {}", "other: {}", '{{"answer": "Other: {}"}}', "Other: {}\nyes"])
    )
    assert answered(question, form.format(own)) == f"Other (say which): {own}"
    assert answered(question, "Other (say which)") == "Other (say which)"


def test_a_long_list_is_searched():
    cities = [f"City {number}" for number in range(300)] + ["Port of Oslo", "Port of Lima"]
    question = QuestionDropdown(
        **TEXT, question_options=cities, question_options_details=[*[""] * 300, "norway", "peru"]
    )
    assert len(question.closing().splitlines()) < 20
    assert answered(question, "oslo") == "Port of Oslo"
    assert answered(question, "somewhere in peru\nI like it there") == "Port of Lima"
    assert answered(question, "City 7") == "City 7"
    with pytest.raises(InvalidAnswer, match="Port of Oslo, Port of Lima: name one"):
        answered(question, "port")
    with pytest.raises(InvalidAnswer, match="none of the options"):
        answered(question, "quince")


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1))
def test_free_text_is_kept_as_it_is(text: str):
    assume(text.strip() and "{" not in text and "`" not in text and not text.startswith("<think>"))
    assert answered(QuestionFreeText(**TEXT), text) == text.strip()
    assert answered(QuestionMarkdown(**TEXT), text) == text.strip()
    assert answered(QuestionMarkdown(**TEXT), f"```markdown\n{text.strip()}\n```") == text.strip()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: QuestionMultipleChoiceWithOther(**TEXT, question_options=["a", "b"], other_option_text=" "),
            "other_opt",
        ),
        (
            lambda: QuestionDropdown(**TEXT, question_options=["a", "b"], question_options_details=["x"]),
            "1 details for 2",
        ),
        (lambda: QuestionDropdown(**TEXT, question_options=["a", "b"], sample_indices=[2]), "shows option 2 of 2"),
        (lambda: QuestionLinearScale(**TEXT, question_options=[1, 2], option_labels="never"), "has the labels 'never'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(make: Any, told: str):
    with pytest.raises(SurveyError, match=told):
        make()


@pytest.mark.parametrize("kind", ["multiple_choice_with_other", "likert_five", "dropdown", "markdown"])
def test_the_example_of_a_kind_runs(kind: str, tmp_path: Any):
    question = Question.example(kind)
    canned = question.settings().get("question_options", ["# Soup"])[0]
    results = Survey([question]).by(Model("test", canned_response=canned)).run(tmp_path / "a.run", progress_bar=False)
    assert results[0].answer == {question.question_name: canned}
