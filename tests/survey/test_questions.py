import re
from pathlib import Path
from typing import Any, cast

import pytest

from headrace import (
    Model,
    Question,
    QuestionFreeText,
    QuestionLinearScale,
    QuestionMultipleChoice,
    QuestionNumerical,
    QuestionYesNo,
    Scenario,
    ScenarioList,
    Survey,
)
from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.asked_question import AskedQuestion
from headrace.survey.questions import kinds, question_from_dict
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
        (lambda: QuestionFreeText(question_name="q", question_text=cast(str, 5)), "has 5 for its text"),
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
    assert "1: never\n2\n3: always" in scale.closing()


def test_a_new_kind_needs_nothing_but_its_class(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        kinds, "_kinds", {each.kind: each for each in kinds.kinds_by_name()}
    )  # it must not outlive this test

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


def test_a_question_is_made_by_its_kind():
    made = Question("multiple_choice", **TEXT, question_options=["Good", "Bad"])
    assert made == mood
    assert made.question_type == made.kind == "multiple_choice"
    assert Question.from_dict({"question_type": "free_text", **TEXT, "edsl_version": "1.0.9"}) == QuestionFreeText(
        **TEXT
    )
    assert type(Question.example("yes_no")) is QuestionYesNo


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: QuestionFreeText("q", "Well?"), "without saying which setting"),
        (lambda: QuestionFreeText(question_name="q"), "needs 'question_text'"),
        (lambda: QuestionFreeText(**TEXT, question_txt="?"), "Did you mean 'question_text'"),
        (lambda: Question("free_txt", **TEXT), "Did you mean 'free_text'"),
        (lambda: Question("free_text", "q"), "without saying which setting"),
        (lambda: Question(**TEXT), "no kind of question called None"),
        (lambda: QuestionFreeText(**TEXT, answering_instructions=5), "has 5 for its answering_instructions"),
        (lambda: QuestionFreeText(**TEXT, model="gpt"), "has 'gpt' for its model"),
        (lambda: Survey([QuestionFreeText(question_name="q_{{ x }}", question_text="?")]), "is a template"),
    ],
)
def test_arguments_that_do_not_fit_are_our_errors(make: Any, told: str):
    with pytest.raises(SurveyError, match=re.escape(told)):
        make()


@pytest.mark.parametrize("question", EACH_KIND, ids=lambda question: question.kind)
def test_every_kind_has_an_example_that_survives_being_stored(question: Question):
    example = type(question).example(question_name="other")
    assert example.question_name == "other"
    assert question_from_dict(decode_value(encode_value(example.to_dict()))) == example


def test_settings_left_at_their_default_are_not_stored():
    assert QuestionYesNo(**TEXT).to_dict() == {"kind": "yes_no", **TEXT}
    assert rating.to_dict() == {"kind": "numerical", **TEXT, "min_value": 0, "max_value": 10}
    told = QuestionYesNo(**TEXT, include_comment=False, answering_instructions="Nod.").to_dict()
    assert told == {"kind": "yes_no", **TEXT, "include_comment": False, "answering_instructions": "Nod."}


def test_a_model_of_its_own_survives_being_stored():
    question = QuestionFreeText(**TEXT, model=Model("test", canned_response="x"))
    assert question_from_dict(decode_value(encode_value(question.to_dict()))) == question
    assert question_from_dict({"kind": "free_text", **TEXT, "model": "test"}).model == Model("test")


def test_own_words_take_the_place_of_ours():
    question = QuestionMultipleChoice(
        question_name="q",
        question_text="How is {{ scenario.city }}?",
        question_options=["Good", "Bad"],
        question_presentation="# {{ question_text }}{% for each in question_options %} [{{ each }}]{% endfor %}",
        answering_instructions="One of {{ question_options | length }}, {{ agent.name }}.",
    )
    asked = AskedQuestion(Survey([question]), 0)
    prompt, filled, _ = asked.write({"agent": {"name": "Ada"}, "scenario": {"city": "{{ agent.name }}"}})
    assert prompt == "# How is {{ agent.name }}? [Good] [Bad]\n\nOne of 2, Ada."
    assert filled.accept("good") == "Good"


def test_a_loop_makes_one_question_per_scenario():
    named = QuestionFreeText(question_name="on_{{ scenario.city }}", question_text="{{ city }} or {{ agent.home }}?")
    oslo, lima = named.loop(ScenarioList.from_list("city", ["Oslo", "Lima"]))
    assert (oslo.question_name, oslo.question_text) == ("on_Oslo", "Oslo or {{ agent.home }}?")
    assert (lima.question_name, lima.question_text) == ("on_Lima", "Lima or {{ agent.home }}?")
    assert [each.question_name for each in mood.loop([{"x": 1}, {"x": 2}])] == ["q_0", "q_1"]


def test_a_loop_fills_options_and_keeps_data_from_being_a_template():
    question = QuestionMultipleChoice(**TEXT, question_options="{{ scenario.words }}")
    (made,) = question.loop([Scenario({"words": ["{{ agent.x }}", "plain"]})])
    _, filled, _ = AskedQuestion(Survey([made]), 0).write({"agent": {"x": "secret"}, "scenario": {}})
    assert filled.settings()["question_options"] == ["{{ agent.x }}", "plain"]
    (text,) = QuestionFreeText(question_name="q", question_text="{{ a }}{ agent.x }} {{ q.answer }}").loop([{"a": "{"}])
    assert text.question_text == '{{ "{" }}{ agent.x }} {{ q.answer }}'


def test_a_question_runs_by_itself(tmp_path: Path):
    results = mood.by(Model("test", canned_response="Good")).run(str(tmp_path / "a.run"), progress_bar=False)
    assert results[0].answer == {"q": "Good"}
    assert list(mood.to_survey().questions) == [mood]
