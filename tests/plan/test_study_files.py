"""Surveys, lists and jobs as files, and back."""

import json
import os
import subprocess
import sys

import pytest

from headrace import (
    Agent,
    AgentList,
    ChangeInstruction,
    EndOfSurvey,
    Instruction,
    Model,
    QuestionFreeText,
    QuestionFunctional,
    QuestionMultipleChoice,
    QuestionNumerical,
    Scenario,
    ScenarioList,
    Survey,
)
from headrace.errors import InvalidInput, ListError, NotConfirmed, PlanMismatch, SurveyError
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


BY_HAND = """
questions:
  - {kind: multiple_choice, name: pet, text: "A pet?", options: [Cat, Dog, None]}
  - {kind: free_text, name: kind, text: "Which?"}
  - {kind: free_text, name: walks, text: "Walks?"}
  - {kind: free_text, name: last, text: "Anything else?"}
skip: {walks: "pet == 'Cat'"}
rules:
  - {question: pet, expression: "pet == 'None'", next_question: last}
  - {question: kind, expression: "pet == 'Cat'", next_question: EndOfSurvey, before_rule: true}
stop: {walks: "walks == 'Never'"}
memory: {last: [pet, walks]}
instructions:
  - {name: brief, text: Be brief.}
  - {drop: [brief], after: walks}
randomize: [pet]
pinned: {pet: [None]}
seed: 7
groups: {animals: [pet, walks]}
wording: {persona: "Answer as this person:"}
"""


def test_a_survey_by_hand_is_what_a_program_makes_and_saves(tmp_path):
    (tmp_path / "hand.yaml").write_text(BY_HAND)
    names = ["kind", "walks", "last"]
    free = [
        QuestionFreeText(question_name=name, question_text=text)
        for name, text in zip(names, ["Which?", "Walks?", "Anything else?"], strict=True)
    ]
    pet = QuestionMultipleChoice(question_name="pet", question_text="A pet?", question_options=["Cat", "Dog", "None"])
    told = [Instruction("brief", "Be brief."), pet, free[0], free[1], ChangeInstruction(drop=["brief"]), free[2]]
    survey = Survey(told, questions_to_randomize=["pet"], options_to_pin={"pet": ["None"]}, seed=7)
    survey.add_skip_rule("walks", "pet == 'Cat'").add_rule("pet", "pet == 'None'", "last")
    survey.add_rule("kind", "pet == 'Cat'", EndOfSurvey, before_rule=True).add_stop_rule("walks", "walks == 'Never'")
    survey.add_memory_collection("last", ["pet", "walks"]).add_question_group("pet", "walks", "animals")
    survey.set_wording(persona="Answer as this person:")
    by_hand = Survey.load(tmp_path / "hand.yaml")
    assert by_hand.to_row() == survey.to_row()
    for ending in ("yaml", "json"):
        survey.save(tmp_path / f"saved.{ending}")
        assert Survey.load(tmp_path / f"saved.{ending}").to_row() == survey.to_row()
    assert Survey.load(tmp_path / "saved.yaml").to_row() == survey.to_row()


@pytest.mark.parametrize(("written", "lags"), [("full", 3), ("2", 2), ("0", 0)])
def test_memory_by_hand_may_be_full_or_a_number_of_questions(tmp_path, written, lags):
    (tmp_path / "hand.yaml").write_text(BY_HAND.replace("memory: {last: [pet, walks]}", f"memory: {written}"))
    survey = Survey.load(tmp_path / "hand.yaml")
    assert survey.memory == Survey(survey.questions).set_lagged_memory(lags).memory


def test_a_plan_says_which_part_of_its_survey_differs(tmp_path):
    (tmp_path / "hand.yaml").write_text(BY_HAND)
    survey, model = Survey.load(tmp_path / "hand.yaml"), Model("test", canned_response="Dog")
    survey.by(model).run(tmp_path / "a.run")
    with pytest.raises(PlanMismatch, match=r"another job: the survey's memory: .* in the file, .* in this job\. Use"):
        survey.copy().set_full_memory_mode().by(model).run(tmp_path / "a.run")


def test_a_long_list_lies_beside_its_study(tmp_path):
    job = _job(people=1_001)
    job.save(tmp_path / "study.yaml")
    assert (tmp_path / "study.yaml").stat().st_size < 5_000
    assert len((tmp_path / "study.agents.jsonl").read_text().splitlines()) == 1_001
    assert len(Job.load(tmp_path / "study.yaml")) == len(job)


def _spelled_by_hand(beside):
    """The rows of a file as a person might write them: no encoder of ours gives these bytes."""
    beside.write_text("".join(line.replace(":", " : ") + "\n\n" for line in beside.read_text().splitlines()))


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_loaded_study_is_saved_over_itself_and_stays_usable(tmp_path, by_hand):
    path, beside = tmp_path / "study.yaml", tmp_path / "study.agents.jsonl"
    _job(people=1_005).save(path)
    if by_hand:
        _spelled_by_hand(beside)
    before = path.read_bytes(), beside.read_bytes()
    job = Job.load(path)
    job.save(path)
    assert (path.read_bytes(), beside.read_bytes()) == before
    assert sum(1 for _ in job.agents) == 1_005
    assert Job.load(path).identity() == job.identity()


def test_a_changed_list_of_a_loaded_study_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "study.yaml"
    _job(people=1_005).save(path)
    job = Job.load(path)
    fewer = job.agents.filter("age != 1")
    job.survey.by(fewer).by(job.models).save(path)
    assert 1_000 < len(Job.load(path).agents) < 1_005
    assert sorted(each.name for each in tmp_path.iterdir()) == ["study.agents.jsonl", "study.yaml"]


def test_saving_follows_no_link_and_keeps_what_is_private_so(tmp_path):
    path, beside, other = tmp_path / "study.yaml", tmp_path / "study.agents.jsonl", tmp_path / "other.txt"
    other.write_text("precious")
    beside.symlink_to(other)
    path.write_text("old")
    path.chmod(0o600)
    _job(people=1_005).save(path)
    assert other.read_text() == "precious"
    assert not beside.is_symlink()
    assert len(beside.read_text().splitlines()) == 1_005
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_study_that_cannot_be_written_whole_stays_as_it_was(tmp_path):
    path, beside = tmp_path / "study.yaml", tmp_path / "study.agents.jsonl"
    _job(people=1_005).save(path)
    before = path.read_bytes(), beside.read_bytes()
    (tmp_path / "rows.jsonl").write_bytes(beside.read_bytes())
    job = Job.load(path).survey.by(AgentList.from_jsonl(tmp_path / "rows.jsonl")).by(Model("test"))
    (tmp_path / "rows.jsonl").write_text('{"age": 1}\n')
    with pytest.raises(ListError, match="changed while the job was set up"):
        job.save(path)
    assert (path.read_bytes(), beside.read_bytes()) == before
    assert not list(tmp_path.glob(".*"))


def test_a_study_that_is_refused_leaves_the_lists_beside_the_old_one(tmp_path):
    path, model = tmp_path / "study.yaml", Model("test", canned_response="Yes")
    survey = Survey([QuestionFreeText(question_name="q", question_text="{{ agent.n }} {{ scenario.m }}?")])
    agents = AgentList(Agent({"n": number}) for number in range(1_500))
    scenarios = ScenarioList(Scenario({"m": number}) for number in range(1_500))
    survey.by(agents, scenarios, model).save(path)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert len(before) == 3
    few = ScenarioList(Scenario({"m": -number}) for number in range(1_200))
    with pytest.raises(SurveyError, match="function"):
        survey.add_question(QuestionFunctional(question_name="f", func=len)).by(agents, few, model).save(path)
    too_many = AgentList((Agent({"n": -number}) for number in range(1_200)), codebook={"n": "number"})
    with pytest.raises(ListError, match="codebook"):
        survey.by(too_many, few, model).save(path)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_replaced_file_keeps_its_rights_whatever_the_umask(tmp_path):
    path = tmp_path / "study.yaml"
    before = os.umask(0o077)
    try:
        _job().save(path)
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o664)
        _job().save(path)
        assert path.stat().st_mode & 0o777 == 0o664
    finally:
        os.umask(before)


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
    BEGIN + "rules: [[q]]": r"study\.yaml, rules, 1: \['q'\] is not a set of settings\. Write question, expression",
    BEGIN + "rules: [{question: q, expression: q == 1}]": "rules, 1: 'next_question' is missing",
    BEGIN + "rules: [{question: q, expression: q = 1, next_question: q}]": "rules, 1: A single = does not compare",
    BEGIN + "rules: [{question: q, expression: q == 1, next_question: [q]}]": r"rules, 1: \['q'\] is no question",
    BEGIN + "rules: [{question: q, expression: q == 1, next_question: q}]": "rules, 1: .*goes to the same question",
    BEGIN + "rules: 7": "rules: 7 is no list",
    BEGIN + "stop: {p: q == 1}": "stop, p: There is no question 'p'",
    BEGIN + "stop: 7": "stop is not a set of",
    BEGIN + "memory: {q: [other]}": "memory, q: There is no question 'other'",
    BEGIN + "memory: {q: [[q]]}": r"memory, q: \['q'\] is no question's name",
    BEGIN + "memory: all": "memory is not a set of",
    BEGIN + "memory: -1": "memory: lags=-1",
    BEGIN + "instructions: [Be brief]": "instructions: 'Be brief' is no instruction",
    BEGIN + "instructions: [{name: a, txt: b}]": "instructions: .*no setting 'txt'. Did you mean 'text'",
    BEGIN + "instructions: [{name: a, text: b, after: p}]": "instructions: There is no question 'p'",
    BEGIN + "instructions: [{drop: [a]}]": "no instruction 'a'",
    BEGIN + "randomize: [p]": "randomize: There is no question 'p'",
    BEGIN + "randomize: [q]": "randomize: Question 'q' has no options",
    BEGIN + "pinned: {q: [x]}": "randomize: .*not randomized",
    BEGIN + "seed: x": "randomize: The seed 'x'",
    BEGIN + "groups: {g: [q]}": "groups, g: .*not two questions",
    BEGIN + "wording: {person: x}": "wording: There is no setting 'person'. Did you mean 'persona'",
    BEGIN + "true: 7": "A name in the study is neither text",
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
        "{model: gpt-4o, parameters: {extra_headers: {x-forward: 'to me'}}}",
        "{model: gpt-4o, parameters: {extra_body: {metadata: 'x'}}}",
        "'local,path=/dev/zero'",
        "'m,base_url=@/dev/zero'",
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
    with pytest.raises(NotConfirmed, match=r"Survey\.load"):
        Survey.load(path).by(Model("test")).run(tmp_path / "a.run")
    with pytest.raises(NotConfirmed, match=r"Survey\.load"):
        (Survey.load(path) + LAST).by(Model("test")).run(tmp_path / "a.run")
