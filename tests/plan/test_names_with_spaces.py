"""Fields whose names are no identifiers keep them, and can be named in brackets."""

import pytest

from headrace import Job, Model, QuestionFreeText, ScenarioList, Survey
from headrace.errors import ExpressionError, SurveyError

REVIEWS = ScenarioList([{"Review Text": "Fine.", "stars": 4}, {"Review Text": "Bad.", "stars": 1}])
MODEL = Model("test", canned_response="ok")


def _survey(text):
    return Survey([QuestionFreeText(question_name="q", question_text=text)]).by(REVIEWS).by(MODEL)


def test_brackets_name_them_in_texts_and_expressions(tmp_path):
    results = _survey('About {{ scenario["Review Text"] }}!').run(tmp_path / "a.run")
    assert results.select("scenario.Review Text").to_list() == ["Fine.", "Bad."]
    assert all("About " in prompt for prompt in results.select("prompt.q_user_prompt").to_list())
    assert len(results.filter('scenario["Review Text"] == "Bad."')) == 1
    assert len(REVIEWS.filter('scenario["Review Text"] == "Bad."')) == 1
    assert len(_survey("Hi").where('scenario["Review Text"] != "Bad."')) == 1


def test_a_mapped_text_may_name_the_row(tmp_path):
    job = Job.map('Label {{ scenario["Review Text"] }} {{ stars }}', REVIEWS).by(MODEL)
    prompts = job.run(tmp_path / "a.run").select("prompt.output_user_prompt").to_list()
    assert prompts == ["Label Fine. 4", "Label Bad. 1"]
    own = Job.map("{{ scenario.kind }}", [{"scenario": {"kind": "its own"}}]).by(MODEL)
    assert own.run(tmp_path / "b.run").select("prompt.output_user_prompt").to_list() == ["its own"]


def test_errors_offer_the_brackets(tmp_path):
    for text, message in (
        ("{{ scenario.Review Text }}", r'one with a space in it is written \{\{ scenario\["Review Text"\] \}\}'),
        ("{{ scenario.review_text }}", r"Did you mean 'Review Text'\? Write scenario\[\"Review Text\"\]"),
    ):
        with pytest.raises(SurveyError, match=message):
            _survey(text).run(tmp_path / "a.run")
    with pytest.raises(SurveyError, match=r"Write scenario\[\"Review Text\"\]"):
        Job.map("{{ review }}", REVIEWS).by(MODEL).run(tmp_path / "a.run")
    with pytest.raises(ExpressionError, match=r"Write scenario\[\"Review Text\"\]"):
        REVIEWS.filter("review_text == 'Bad.'")


def test_other_names_follow_a_rule():
    odd = ScenarioList([{"Review Text": 1, "review-text": 2, "2nd": 3, "class": 4, "Ärger!": 5}])
    assert odd.snakify().field_names == ["review_text", "review_text_1", "_2nd", "class_", "rger"]
    assert odd.give_valid_names().field_names == ["review_text", "review_text_1", "_2nd", "class", "rger"]
