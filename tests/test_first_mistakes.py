"""What a new user mistypes, and what the error says."""

import gzip
import json

import pytest

from headrace import (
    AgentList,
    HeadraceWarning,
    Model,
    QuestionFreeText,
    QuestionMultipleChoice,
    ScenarioList,
    Survey,
)
from headrace.errors import ListError, OptionError, SurveyError
from headrace.survey.written_files import LARGEST_BYTES


def _question(name="q0", text="Well?"):
    return QuestionFreeText(question_name=name, question_text=text)


def test_two_questions_of_one_name_are_named_once():
    with pytest.raises(SurveyError, match=r"Two questions are called 'q0'\."):
        Survey([_question(), _question()])


def test_a_question_without_a_text_is_not_told_to_use_quotes():
    with pytest.raises(SurveyError, match=r"has no text: it is None\. Give it a text"):
        _question(text=None)


def test_a_rule_with_a_mistyped_question_is_asked_back():
    for rule, said in (("Q0 == 'no'", "Did you mean 'q0'"), ("q7 == 'no'", "Known here: q0, q1")):
        survey = Survey([_question(), _question("q1")]).add_skip_rule("q1", rule)
        with pytest.raises(SurveyError, match=said):
            survey.by(Model("test")).check()


def test_a_loop_refuses_a_field_that_is_nearly_one_of_its_scenarios():
    question = _question("q_{{ scenario.brand }}", "Do you like {{ scenario.brnd }}?")
    with pytest.raises(SurveyError, match="Did you mean 'brand'"):
        question.loop(ScenarioList.from_list("brand", ["a", "b"]))


def test_where_suggests_the_field_that_was_meant():
    job = _question().by(ScenarioList.from_list("city", ["Oslo"])).by(Model("test")).where("ctiy == 'Oslo'")
    with pytest.raises(SurveyError, match="Did you mean 'city'"):
        len(job)


def test_a_model_given_to_run_is_shown_its_place(tmp_path):
    with pytest.raises(OptionError, match=r"\.by\(Model\(\.\.\.\)\)\.run\(\)"):
        _question().by(Model("test")).run(tmp_path / "a.run", model=Model("test"))


def test_a_job_file_is_not_a_survey_or_a_list(tmp_path):
    path = tmp_path / "job.yaml"
    _question().by(Model("test")).save(path)
    for load, error in ((Survey.load, SurveyError), (AgentList.load, ListError)):
        with pytest.raises(error, match=r"Job\.load\(path\)"):
            load(path)


def test_a_model_shows_a_service_that_its_name_does_not_imply():
    assert repr(Model("x", service_name="groq")) == "Model('x', service_name='groq')"
    assert repr(Model("gpt-4o")) == "Model('gpt-4o')"


def test_a_question_shows_the_settings_that_were_given():
    assert repr(_question()) == "QuestionFreeText(question_name='q0', question_text='Well?')"


def test_a_temperature_of_the_test_model_is_a_number(tmp_path):
    with pytest.raises(ListError, match="temperature='hot'"):
        _question().by(Model("test", temperature="hot")).run(tmp_path / "a.run")


def test_an_answer_for_a_question_that_is_mistyped_is_told():
    survey = Survey([_question(), _question("mood")])
    with pytest.warns(HeadraceWarning, match="answer for 'moood', which is no question.*Did you mean 'mood'"):
        survey.by(Model("test", canned_response={"q0": "no", "moood": "good"})).check()


def test_answers_for_another_survey_too_are_no_mistake():
    _question().by(Model("test", canned_response={"q0": "no", "other": "good"})).check()


def _written_by_edsl(priority):
    question = {"question_name": "q0", "question_text": "A?", "question_options": ["yes", "no"]}
    return {
        "questions": [{**question, "question_type": "multiple_choice", "edsl_version": "1.0.0"}],
        "memory_plan": {"survey_question_names": ["q0"], "data": {}},
        "rule_collection": {"rules": [{"current_q": 0, "expression": "True", "next_q": 1, "priority": priority}]},
        "question_groups": {},
        "edsl_version": "1.0.0",
        "edsl_class_name": "Survey",
    }


def _zip(path, data):
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    return path


def test_a_zipped_survey_of_edsl_is_read(tmp_path):
    _zip(tmp_path / "pets.json.gz", _written_by_edsl(-1))
    options = {"question_name": "q0", "question_text": "A?", "question_options": ["yes", "no"]}
    assert Survey.load(tmp_path / "pets").questions == (QuestionMultipleChoice(**options),)


def test_rules_in_a_file_of_edsl_are_not_dropped(tmp_path):
    path = _zip(tmp_path / "pets.json.gz", _written_by_edsl(0))
    assert [(rule.question, rule.target) for rule in Survey.load(path).rules] == [("q0", "EndOfSurvey")]


def test_a_zipped_list_is_read(tmp_path):
    path = _zip(tmp_path / "cities.json.gz", ScenarioList.from_list("city", ["Oslo"]).to_dict())
    assert ScenarioList.load(path).to_dicts() == [{"city": "Oslo"}]


def test_a_zipped_file_is_unzipped_no_further_than_its_bound(tmp_path):
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b"[" * (LARGEST_BYTES * 20)))
    with pytest.raises(SurveyError, match="larger than 8 MB"):
        Survey.load(tmp_path / "bomb.json.gz")


@pytest.mark.parametrize("held", [b"no zip", gzip.compress(b"{}" * 1000, mtime=0)[:20]], ids=["no zip", "cut off"])
def test_a_broken_zipped_file_is_refused_in_words(tmp_path, held):
    (tmp_path / "a.json.gz").write_bytes(held)
    with pytest.raises(SurveyError, match="not a whole gzip file"):
        Survey.load(tmp_path / "a.json.gz")
