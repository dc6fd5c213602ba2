from typing import Any, cast

import pytest

from headrace import (
    QuestionFreeText,
    QuestionLinearScale,
    QuestionMultipleChoice,
    QuestionNumerical,
    QuestionYesNo,
)
from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions import Question, base, question_from_dict
from headrace.survey.values import decode_value, encode_value

TEXT = {"question_name": "q", "question_text": "Well?"}
mood = QuestionMultipleChoice(**TEXT, question_options=["Good", "Bad"])
mixed = QuestionMultipleChoice(**TEXT, question_options=[1, True, "07", 2**70, [1, 2]])
rating = QuestionNumerical(**TEXT, min_value=0, max_value=10)
scale = QuestionLinearScale(**TEXT, question_options=[1, 2, 3], option_labels={1: "never", 3: "always"})
EACH_KIND: list[Question] = [QuestionFreeText(**TEXT), mood, mixed, QuestionYesNo(**TEXT), rating, scale]


@pytest.mark.parametrize(
    ("question", "given", "answer"),
    [
        (QuestionFreeText(**TEXT), "07", "07"),
        (QuestionFreeText(**TEXT), 7, "7"),
        (mood, "Good", "Good"),
        (mood, " good. ", "Good"),
        (mixed, "07", "07"),
        (mixed, "1", 1),
        (mixed, True, True),
        (mixed, "True", True),
        (mixed, str(2**70), 2**70),
        (mixed, "[1, 2]", [1, 2]),
        (QuestionYesNo(**TEXT), "yes", "Yes"),
        (QuestionYesNo(**TEXT), False, "No"),
        (rating, "7", 7),
        (rating, " 7.50 ", 7.5),
        (rating, 3.0, 3.0),
        (QuestionNumerical(**TEXT), "1,234", 1234),
        (QuestionNumerical(**TEXT), str(2**70), 2**70),
        (scale, "2", 2),
        (scale, 2.0, 2),
    ],
)
def test_answers_are_accepted_in_their_own_type(question: Question, given: Any, answer: Any):
    accepted = question.accept(given)
    assert accepted == answer
    assert type(accepted) is type(answer)


@pytest.mark.parametrize(
    ("question", "given", "reason"),
    [
        (QuestionFreeText(**TEXT), {"a": 1}, "not text"),
        (mood, "Great", "not one of the options"),
        (rating, "11", "above the greatest"),
        (rating, "-1", "below the least"),
        (rating, "seven", "not a number"),
        (rating, "NaN", "not a number"),
        (rating, float("nan"), "not a finite number"),
        (rating, True, "not a number"),
        (scale, "4", "not on the scale"),
        (QuestionYesNo(**TEXT), "maybe", "not one of the options"),
    ],
)
def test_other_answers_are_refused_with_the_reason(question: Question, given: Any, reason: str):
    with pytest.raises(InvalidAnswer, match=reason):
        question.accept(given)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: QuestionFreeText(question_name="1st", question_text="x"), "not an identifier"),
        (lambda: QuestionFreeText(question_name="class", question_text="x"), "word of the language"),
        (lambda: QuestionFreeText(question_name="agent", question_text="x"), "cannot be called"),
        (lambda: QuestionFreeText(question_name="q", question_text="  "), "has no text"),
        (lambda: QuestionFreeText(question_name="q", question_text=cast(str, 5)), "has 5 for a text"),
        (lambda: QuestionMultipleChoice(**TEXT, question_options=[]), "0 option"),
        (lambda: QuestionMultipleChoice(**TEXT, question_options=["a", "b", "a"]), "repeats the option 'a'"),
        (lambda: QuestionMultipleChoice(**TEXT, question_options=["a", ""]), "empty option"),
        (lambda: QuestionMultipleChoice(**TEXT, question_options="a, b"), "has the text"),
        (lambda: QuestionMultipleChoice(**TEXT, question_options={"a": 1}), "not a list"),
        (lambda: QuestionNumerical(**TEXT, min_value=5, max_value=1), "min_value 5 above max_value 1"),
        (lambda: QuestionNumerical(**TEXT, min_value=float("nan")), "bound nan"),
        (lambda: QuestionLinearScale(**TEXT, question_options=[1, "x"]), "whole numbers"),
        (lambda: QuestionLinearScale(**TEXT, question_options=[1, 2], option_labels={9: "?"}), "labels 9"),
        (lambda: question_from_dict({"kind": "free_txt"}), "Did you mean 'free_text'"),
        (lambda: question_from_dict({"kind": "free_text", "question_nam": "q"}), "Did you mean 'question_name'"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_with_the_place_and_the_fix(make: Any, told: str):
    with pytest.raises(SurveyError, match=told.replace("(", r"\(")):
        make()


@pytest.mark.parametrize("question", EACH_KIND, ids=lambda question: question.kind)
def test_a_question_survives_being_stored(question: Question):
    assert question_from_dict(decode_value(encode_value(question.to_dict()))) == question


@pytest.mark.parametrize("question", EACH_KIND, ids=lambda question: question.kind)
def test_every_kind_says_how_to_answer_and_has_a_schema(question: Question):
    assert question.instructions()
    assert question.schema()


def test_a_scale_shows_its_labels():
    assert "1: never\n2\n3: always" in scale.instructions()


def test_a_new_kind_needs_nothing_but_its_class(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(base, "_kinds", dict(base._kinds))  # it must not outlive this test

    class QuestionEven(QuestionNumerical):
        kind = "even_number_for_this_test"

        def accept(self, given: Any) -> Any:
            number = super().accept(given)
            if number % 2:
                raise InvalidAnswer(f"{number} is odd")
            return number

    made = question_from_dict({"kind": "even_number_for_this_test", **TEXT})
    assert isinstance(made, QuestionEven)
    with pytest.raises(InvalidAnswer, match="odd"):
        made.accept("3")
