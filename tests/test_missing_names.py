import copy
import pickle
import subprocess
import sys

import pytest

import headrace
from headrace import AgentList, Model, Question, QuestionFreeText, Results, ScenarioList, Survey
from headrace.errors import NotInHeadrace


def _survey():
    return Survey([QuestionFreeText(question_name="q", question_text="Well?")])


@pytest.fixture
def results(tmp_path):
    return _survey().by(Model("test", canned_response="x")).run(tmp_path / "a.run")


@pytest.mark.parametrize(
    ("name", "way"),
    [("task_history", "failed()"), ("cache", "response cache"), ("report", "markdown"), ("save", "headrace copy")],
)
def test_a_method_of_edsl_on_results_says_what_to_do_here(results, name, way):
    with pytest.raises(AttributeError, match=f"Results.{name} is not there") as refused:
        getattr(results, name)
    assert way in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "name", "way"),
    [
        (ScenarioList, "from_json", r"from_file\(path\)"),
        (AgentList, "from_tsv", r"from_file\(path\)"),
        (AgentList, "from_dicts", r"AgentList\.from_source\(dicts\)"),
        (Survey, "load_json", r"load\(path\)"),
        (Results, "fetch", "run file"),
        (QuestionFreeText, "load", r"Survey\.load"),
    ],
)
def test_a_class_says_it_too(kind, name, way):
    with pytest.raises(AttributeError, match=rf"{kind.__name__}\.{name} is not there in Headrace\. .*{way}"):
        getattr(kind, name)
    with pytest.raises(AttributeError, match=f"type object '{kind.__name__}' has no attribute 'from_nowhere'"):
        _ = kind.from_nowhere


def test_surveys_questions_jobs_and_lists_say_it_too():
    survey = _survey()
    for held, name, way in (
        (survey, "next_question", "show_rules"),
        (survey["q"], "add_question", r"Survey\(\["),
        (survey.by(), "show_flow", r"job\.survey"),
        (ScenarioList(), "join", "inner_join"),
        (Model("test"), "to_yaml", r"save\(path\)"),
    ):
        with pytest.raises(AttributeError, match=way):
            getattr(held, name)


def test_any_other_name_is_an_ordinary_attribute_error():
    survey = _survey()
    assert not hasattr(survey, "nothing")
    with pytest.raises(AttributeError) as refused:
        survey.add_questoin  # noqa: B018
    assert refused.value.name == "add_questoin"  # Python's own "Did you mean" needs both
    assert refused.value.obj is survey


def test_copies_and_pickles_still_work():
    survey = _survey()
    assert copy.deepcopy(survey).to_dict() == survey.to_dict() == copy.copy(survey).to_dict()
    assert pickle.loads(pickle.dumps(survey["q"])) == survey["q"]


def _import(names):
    command = [sys.executable, "-c", f"from headrace import {names}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_mistyped_import_is_asked_back():
    assert "ImportError: headrace has no 'QuestionFreeTxt'. Did you mean 'QuestionFreeText'?" in (
        _import("QuestionFreeTxt").stderr
    )
    assert "Write Question, the class of all questions." in _import("QuestionBase").stderr
    assert not hasattr(headrace, "pytest_plugins")


def test_what_edsl_has_can_be_imported_and_says_what_to_do():
    with pytest.raises(NotInHeadrace, match="Scenario"):
        headrace.Dataset("a.pdf")


def test_a_file_says_how_to_do_what_edsl_s_does(tmp_path):
    (tmp_path / "a.txt").write_text("Hello")
    file = headrace.FileStore(tmp_path / "a.txt")
    for name, way in (("base64_string", "read_bytes"), ("view", "program"), ("push", "embed=True")):
        with pytest.raises(AttributeError, match=way):
            getattr(file, name)


def test_results_have_their_survey_and_their_failures(tmp_path, capsys):
    survey = Survey.example()
    good = survey.by(Model("test", canned_response={"q0": "yes", "q2": "Soup"})).run(tmp_path / "a.run")
    assert good.survey.to_dict() == survey.to_dict()
    assert not good.has_unfixed_exceptions
    good.show_exceptions()
    assert capsys.readouterr().out == "No question has failed.\n"
    bad = survey.by(Model("test", canned_response={"q0": "perhaps", "q2": "Soup"})).run(tmp_path / "b.run")
    assert bad.has_unfixed_exceptions
    bad.show_exceptions()
    assert capsys.readouterr().out.startswith("interview 0, q0: ")
    good.close()
    bad.close()
    with Results.load(tmp_path / "a.run") as loaded:
        assert loaded.select("q2").to_list() == ["Soup"]


def test_examples_can_be_tried(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    assert Results.example().select("q0").to_list() == ["yes"]


def test_a_survey_lists_its_rules():
    survey = Survey.example().add_skip_rule("q1", "q0 == 'yes'")
    assert survey.show_rules().to_dicts() == [
        {"current_q": "q1", "expression": "q0 == 'yes'", "next_q": "the next question", "before_rule": True},
        {"current_q": "q0", "expression": "{{ q0.answer }} == 'yes'", "next_q": "q2", "before_rule": False},
    ]


def test_the_kinds_of_questions_can_be_listed():
    assert Question.available()["free_text"] == "QuestionFreeText"
