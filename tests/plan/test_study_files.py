"""Surveys, lists and jobs as files, and back."""

import json
import subprocess
import sys

import pytest

from headrace import (
    Agent,
    AgentList,
    Model,
    QuestionFreeText,
    QuestionMultipleChoice,
    QuestionNumerical,
    Scenario,
    ScenarioList,
    Survey,
)
from headrace.errors import InvalidInput, ListError, NotConfirmed, SurveyError
from headrace.plan.job import Job

MOOD = QuestionMultipleChoice(
    question_name="mood", question_text="How about {{ scenario.city }}?", question_options=["Yes", "No", "on", "07"]
)
RATING = QuestionNumerical(question_name="rating", question_text="{{ mood.answer }}. Why?", min_value=0, max_value=10)
LAST = QuestionFreeText(question_name="last", question_text="Anything else?")


def _survey() -> Survey:
    survey = Survey([MOOD, RATING, LAST])
    survey.add_skip_rule("rating", "mood == 'No'")
    survey.add_rule("mood", "mood == 'on'", "last")
    survey.add_targeted_memory("last", "mood")
    return survey


def _job(people: int = 3) -> Job:
    agents = AgentList(Agent({"age": at, "since": "2020-01-01", "x": None}, name=f"p{at}") for at in range(people))
    cities = ScenarioList(
        [Scenario({"city": "Oslo", "n": 0.5}), Scenario({"city": "null", "tags": ["a", {"b": True}]})]
    )
    models = [Model("test", canned_response={"mood": "Yes", "rating": 7}), Model("test", temperature=0.5)]
    return _survey().by(agents, cities, models).where("agent.age > 0 or scenario.city == 'Oslo'")


@pytest.mark.parametrize("ending", ["yaml", "yml", "json"])
def test_a_job_comes_back_the_same(tmp_path, ending):
    job, path = _job(), tmp_path / f"study.{ending}"
    job.save(path)
    again = Job.load(path)
    assert again.identity() == job.identity()
    assert (len(again), again.to_dict()) == (len(job), job.to_dict())
    again.run(tmp_path / "a.run", limit=2)
    assert len(job.run(tmp_path / "a.run")) == len(job)  # the same plan


def test_dicts_are_json_and_come_back():
    job = _job()
    assert Job.from_dict(json.loads(json.dumps(job.to_dict()))).identity() == job.identity()
    survey = _survey()
    assert Survey.from_dict(json.loads(json.dumps(survey.to_dict()))).to_row() == survey.to_row()


def test_a_survey_and_lists_are_files_too(tmp_path):
    job = _job()
    for number, held in enumerate((job.survey, job.agents, job.scenarios)):
        path = tmp_path / f"{number}.yaml"
        held.save(path)
        assert type(held).load(path).to_dict() == held.to_dict()


def test_a_long_list_lies_beside_its_study(tmp_path):
    job = _job(people=1_001)
    job.save(tmp_path / "study.yaml")
    assert (tmp_path / "study.yaml").stat().st_size < 5_000
    assert len((tmp_path / "study.agents.jsonl").read_text().splitlines()) == 1_001
    assert len(Job.load(tmp_path / "study.yaml")) == len(job)


def test_a_study_by_hand_runs_from_the_command(tmp_path):
    (tmp_path / "people.csv").write_text("agent_name,age\nada,36\nbob,27\n")
    (tmp_path / "study.yaml").write_text(
        "questions:\n  - {kind: free_text, name: q, text: '{{ scenario.city }}?'}\n"
        "agents: people.csv\nscenarios: [{city: Oslo}, {city: Lima}]\nmodels: 'test,canned_response=Good'\n"
        "where: agent.age > 30\n"
    )
    command = [sys.executable, "-m", "headrace", "run", "study.yaml", "-o", "a.run"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "2 interviews in a.run" in ran.stdout + ran.stderr
    other = [*command[:-1], "b.run", "--model", "test,canned_response=Bad", "--where", "scenario.city == 'Lima'"]
    ran = subprocess.run(other, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "1 interview in b.run" in ran.stdout + ran.stderr


def test_functions_are_refused_with_words(tmp_path):
    answering = Agent({"age": 1})
    answering.add_direct_question_answering_method(lambda self, question, scenario: "x")
    for job in (
        LAST.by(Model("test", canned_response=lambda request: "x")),
        LAST.by(answering, Model("test")),
    ):
        with pytest.raises(InvalidInput, match=r"function.*cannot be written"):
            job.save(tmp_path / "study.yaml")
        assert not (tmp_path / "study.yaml").exists()
    with pytest.raises(SurveyError, match="text and a file of rows"):
        Job.map("{{ a }}", [{"a": 1}]).save(tmp_path / "study.yaml")


BEGIN = "questions: [{kind: free_text, name: q, text: Well}]\n"
MISTAKES = {
    BEGIN + "agent: people.csv": r"has a part 'agent'\. Did you mean 'agents'",
    BEGIN + "agents: people.txt": r"study\.yaml: .*people\.txt",
    BEGIN + "agents: /etc/people.csv": "outside the study's folder",
    BEGIN + "agents: ../people.csv": "outside the study's folder",
    BEGIN + "agents: [{age: 3}]": "An agent has no 'age'",
    BEGIN + "agents: []": "list of agents is empty",
    BEGIN + "models: [{modl: test}]": "is not a model",
    BEGIN + "models: [{model: test, parameter: {}}]": r"A model has no 'parameter'\. Did you mean 'parameters'",
    BEGIN + "models: test\nwhere: agent.agee > 3": "no agent has a field 'agee'",
    BEGIN + "rules: [[q]]": "rules cannot be read",
    BEGIN + "memory: {q: [other]}": "other",
    BEGIN + "memory: 7": "memory cannot be read",
    "survey: 7": "survey is not a set of",
    "7": "not a set of",
    "agents: !!python/object/apply:os.system [touch gone]": "could not determine a constructor",
    "a: &a [x,x]\nb: &b [*a,*a]\n" + "".join(f"c{i}: &c{i} [{'*b,' * 90}*b]\n" for i in range(9)) + BEGIN: "has a part",
}


@pytest.mark.parametrize("written", MISTAKES)
def test_what_is_wrong_is_said_with_its_place(tmp_path, written):
    (tmp_path / "study.yaml").write_text(written)
    with pytest.raises(InvalidInput, match=MISTAKES[written]):
        len(Job.load(tmp_path / "study.yaml"))
    assert not (tmp_path / "gone").exists()


def test_a_name_without_an_ending_is_that_of_a_json_file(tmp_path):
    Survey([MOOD]).save(tmp_path / "pets")
    assert [path.name for path in tmp_path.iterdir()] == ["pets.json"]
    assert Survey.load(tmp_path / "pets").question_names == ["mood"]


def test_other_endings_and_missing_files_are_refused(tmp_path):
    with pytest.raises(SurveyError, match=r"ends in '\.txt'"):
        _job().save(tmp_path / "study.txt")
    with pytest.raises(SurveyError, match="cannot be read"):
        Job.load(tmp_path / "study.yaml")
    with pytest.raises(SurveyError, match="cannot be written"):
        _job().save(tmp_path / "none" / "study.yaml")
    (tmp_path / "a.yaml").write_text("agent_list: 7")
    with pytest.raises(ListError, match=r"a\.yaml"):
        AgentList.load(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    "model",
    [
        "{model: gpt-4o, parameters: {base_url: 'http://127.0.0.1:9/v1'}}",
        "'gpt-4o,api_key_env=HOME'",
        "'gpt-4o,base_url=http://127.0.0.1:9/v1'",
    ],
)
def test_an_address_or_key_of_its_own_is_a_claim(tmp_path, monkeypatch, model):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    path = tmp_path / "study.yaml"
    path.write_text(f"{BEGIN}models: [{model}]\n")
    with pytest.raises(NotConfirmed, match=r"Job\.load\(.*allow="):
        Job.load(path).run(tmp_path / "a.run")
    path.write_text(f"questions: [{{kind: free_text, name: q, text: Well, model: {model}}}]\n")
    with pytest.raises(NotConfirmed, match=r"Job\.load\("):
        Job.load(path).run(tmp_path / "a.run")
