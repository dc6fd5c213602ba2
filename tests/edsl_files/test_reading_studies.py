"""Surveys, lists, models and jobs that the real EDSL wrote, read in every form."""

import gzip
import json
import pickle
from types import SimpleNamespace

import pytest

from headrace import Agent, AgentList, Job, Model, ModelList, Scenario, ScenarioList, Survey
from headrace.errors import EdslFileError
from tests.edsl_files.data_files import DATA, held_in, noted

FORMS = (".json.gz", ".ep")


@pytest.mark.parametrize("form", FORMS)
def test_a_survey_keeps_its_questions_rules_memory_and_instructions(form):
    survey = Survey.from_edsl(DATA / f"survey{form}")
    held = survey.to_dict()
    assert survey.question_names == ["mood", "rating", "why", "sure", "pets"]
    assert held["skip"] == {"why": "{{ mood.answer }} == 'Bad'"}
    assert held["memory"] == {"why": ["mood"], "pets": ["mood", "rating"]}
    assert [given["name"] if "name" in given else given["drop"] for given in held["instructions"]] == [
        "brief",
        ["brief"],
    ]
    assert held["randomize"] == ["mood"]
    assert survey["sure"].option_labels == {"1": "not", "3": "very"}


def test_of_two_rules_that_hold_the_same_one_decides_as_in_edsl():
    rules = [(rule.question, rule.target) for rule in Survey.from_edsl(DATA / "survey.ep").rules]
    # EDSL gave the second rule of `rating` the higher priority; here the one that was added last decides.
    assert rules == [("rating", "sure"), ("rating", "pets"), ("sure", "EndOfSurvey")]


def test_of_rules_of_one_priority_the_first_decides():
    held = held_in("survey.json.gz")
    for rule in held["rule_collection"]["rules"]:
        rule["priority"] = min(rule["priority"], 0)
    rules = [rule.target for rule in Survey.from_edsl(held).rules if rule.question == "rating"]
    assert rules == ["pets", "sure"]


def test_every_kind_that_both_have_is_read_with_its_settings():
    with noted() as notes:
        survey = Survey.from_edsl(DATA / "every_kind.json.gz")
    written = held_in("every_kind.json.gz")["questions"]
    assert [question.kind for question in survey] == [each["question_type"] for each in written]
    for question, each in zip(survey, written, strict=True):
        assert question.question_text == each["question_text"]
        options = each.get("question_options")
        assert options is None or list(question.question_options) == options
    assert notes == []


@pytest.mark.parametrize("form", FORMS)
def test_lists_and_models_are_read(form):
    agents = AgentList.from_edsl(DATA / f"agents{form}")
    traits = {"age": 21, "home": "Zürich", "likes": ["tea", "Go"], "score": 0.125}
    assert agents[1] == Agent(traits, "p1", {"age": "Age in years"}, "Answer as yourself.")
    assert ScenarioList.from_edsl(DATA / f"scenarios{form}")[1] == {"city": "Lima", "size": 2.5}
    (model,) = ModelList.from_edsl(DATA / f"models{form}")
    assert model.name == model.service_name == "test"
    assert model.parameters["temperature"] == 0.25
    assert model.parameters["canned_response"]["rating"] == "7"


def test_the_lines_that_to_jsonl_writes_are_read(tmp_path):
    for name, kind, member in (("agents", "AgentList", "agent_list"), ("scenarios", "ScenarioList", "scenarios")):
        lines = [{"__header__": True, "edsl_class_name": kind, "edsl_version": "1.0.9"}]
        lines += held_in(f"{name}.json.gz")[member]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert AgentList.from_edsl(tmp_path / "agents.jsonl") == AgentList.from_edsl(DATA / "agents.json.gz")
    assert ScenarioList.from_edsl(tmp_path / "scenarios.jsonl") == ScenarioList.from_edsl(DATA / "scenarios.json.gz")
    header = {"__header__": True, "edsl_class_name": "Jobs", "edsl_version": "1.0.9"}
    lines = f"{json.dumps(header)}\n{json.dumps(held_in('job.json.gz'))}\n"
    (tmp_path / "job.jsonl").write_text(lines, encoding="utf-8")
    assert len(Job.from_edsl(tmp_path / "job.jsonl")) == len(Job.load(tmp_path / "job.jsonl")) == 4
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    with pytest.raises(EdslFileError, match=r"its first line is no header\. Rows are read with from_jsonl"):
        Job.load(tmp_path / "rows.jsonl")


@pytest.mark.parametrize("form", FORMS)
def test_a_whole_job_is_read_and_runs(form, tmp_path):
    job = Job.from_edsl(DATA / f"job{form}")
    assert len(job) == 4
    results = job.run(tmp_path / "x.run", progress_bar=False)
    (answers,) = {json.dumps(result.answer) for result in results}
    assert json.loads(answers) == {
        "mood": "Good", "rating": 7, "why": "Because – ça va, 東京.", "sure": 3, "pets": ["Cat", "Dog"],
    }  # fmt: skip


def test_dicts_texts_and_objects_are_read_alike():
    held = held_in("job.json.gz")
    of_a_file = Job.from_edsl(DATA / "job.json.gz").to_dict()
    assert Job.from_edsl(held).to_dict() == of_a_file
    assert Job.from_edsl(json.dumps(held)).to_dict() == of_a_file
    jobs = type("Jobs", (), {"to_dict": lambda _: held})()
    assert Job.from_edsl(jobs).to_dict() == of_a_file
    assert Agent.from_edsl(held["agents"][0]) == AgentList.from_edsl(DATA / "agents.ep")[0]
    assert Scenario.from_edsl(held["scenarios"][0]) == {"city": "Oslo", "size": 1}
    assert Model.from_edsl(held["models"][0]).parameters["temperature"] == 0.25
    assert Survey.from_edsl(held["survey"]["questions"][0]).question_names == ["mood"]


def test_load_and_from_dict_read_what_from_edsl_reads(tmp_path):
    whole = Survey.from_edsl(DATA / "survey.ep").to_dict()
    assert Survey.load(DATA / "survey.ep").to_dict() == whole
    assert Survey.load(DATA / "survey.json.gz").to_dict() == whole
    assert Survey.from_dict(held_in("survey.json.gz")).to_dict() == whole
    assert AgentList.load(DATA / "agents.ep")[0].name == "p0"
    assert len(Job.load(DATA / "job.json.gz")) == len(Job.load(DATA / "job.ep")) == 4
    (tmp_path / "pets.ep").write_bytes((DATA / "survey.ep").read_bytes())
    assert Survey.load(tmp_path / "pets").to_dict() == whole


def test_what_is_not_carried_over_is_listed():
    held = held_in("job.json.gz")
    held["survey"]["questions"][0]["enumeration"] = "letters"
    held["survey"]["css"] = {"a": 1}
    held["agents"][0]["trait_categories"] = {"who": ["age"]}
    held["scenarios"][0]["photo"] = {"path": "a.png", "base64_string": "AAAA", "suffix": "png"}
    held["models"][0]["prompt_plan"] = {"user": []}
    held["models"][0]["parameters"]["fail_at_number"] = 3
    held["_post_run_methods"] = [["select", ["mood"], {}]]
    with noted() as notes:
        job = Job.from_edsl(held)
    said = "\n".join(notes)
    for part in ("enumeration", "css", "trait_categories", "'photo'", "prompt_plan", "fail_at_number", "select()"):
        assert part in said
    assert job.scenarios[0]["photo"] == "a.png"


def test_functions_that_edsl_itself_leaves_out_are_listed():
    agent = SimpleNamespace(answer_question_directly=print, dynamic_traits_function=None)
    held = held_in("agents.json.gz")
    agents = type("AgentList", (), {"to_dict": lambda _: held, "__iter__": lambda _: iter([agent])})()
    with noted() as notes:
        AgentList.from_edsl(agents)
    (note,) = notes
    assert note.startswith("an agent's method answer_question_directly: add it in the program")


def test_a_file_of_a_newer_edsl_is_read_as_far_as_it_is_known():
    held = held_in("survey.json.gz") | {"edsl_version": "1.2.0", "weights": {"mood": 2}}
    with noted() as notes:
        assert len(Survey.from_edsl(held)) == 5
    assert notes == [
        "EDSL 1.2.0 wrote it, and formats are known here up to 1.0.9",
        "the survey's part 'weights'",
    ]


def test_what_may_mean_something_else_in_a_newer_edsl_is_refused():
    held = held_in("survey.json.gz")
    held["rule_collection"]["rules"][-1]["unless"] = "x"
    with pytest.raises(EdslFileError, match="a rule has 'unless', which may change what it means"):
        Survey.from_edsl(held)
    held = held_in("survey.json.gz")
    held["questions"][0]["question_type"] = "hologram"
    with pytest.raises(EdslFileError, match="question 'mood' is of the kind 'hologram', which is not here"):
        Survey.from_edsl(held)


def test_code_in_a_file_is_named_and_never_executed():
    with pytest.raises(EdslFileError, match=r"'sum_and_multiply' carries Python code.*calculate_sum_and_multiply"):
        Survey.from_edsl(DATA / "functional.json")
    held = held_in("agents.json.gz")
    held["agent_list"][1]["dynamic_traits_function_source_code"] = "def f(self): raise SystemExit"
    with pytest.raises(EdslFileError, match=r"an agent carries Python code \(dynamic_traits_function_source_code\)"):
        AgentList.from_edsl(held)


class Trap:
    def __reduce__(self):
        return exit, (7,)


def test_a_pickle_is_named_and_never_loaded(tmp_path):
    (tmp_path / "survey.pkl").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(EdslFileError, match=r"survey.pkl is a pickle: .* It is not read"):
        Survey.from_edsl(tmp_path / "survey.pkl")


def test_a_job_that_waits_for_another_or_lists_its_combinations_is_refused_or_read():
    held = held_in("job.json.gz")
    with pytest.raises(EdslFileError, match="waits for the results of another one"):
        Job.from_edsl({**held, "_depends_on": held})
    pairs = [{"agent": at, "scenario": at, "model": 0} for at in (0, 1)]
    assert len(Job.from_edsl({**held, "assignments": pairs, "assignment_mode": "explicit"})) == 2
    with pytest.raises(EdslFileError, match="3 combinations that it lists one by one"):
        Job.from_edsl({**held, "assignments": [*pairs, {"agent": 0, "scenario": 1, "model": 0}]})
    expression = "{{ scenario._index == agent._index }}"
    assert len(Job.from_edsl({**held, "assignments": pairs, "include_expression": expression})) == 2


def test_an_address_in_a_file_has_to_be_allowed(tmp_path):
    held = held_in("models.json.gz")
    held["models"][0] |= {"model": "gpt-4o", "inference_service": "openai", "parameters": {"logprobs": False}}
    held["models"][0]["connection"] = {"base_url": "http://127.0.0.1:9/v1"}
    path = tmp_path / "models.json"
    path.write_text(json.dumps(held), "utf-8")
    (model,) = ModelList.from_edsl(path)
    assert model.parameters == {"base_url": "http://127.0.0.1:9/v1"}
    assert model.origin is not None
    assert not model.origin.allowed
    (model,) = ModelList.from_edsl(path, allow="http://127.0.0.1:9/v1/")
    assert model.origin is not None
    assert model.origin.allowed == {"http://127.0.0.1:9/v1"}


def test_parameters_get_the_names_that_a_service_takes_here():
    google = {"temperature": 0.5, "topP": 0.9, "topK": 1, "maxOutputTokens": 64, "stopSequences": [], "thinking": 7}
    with noted() as notes:
        model = Model.from_edsl({"model": "gemini-2.5-pro", "inference_service": "google", "parameters": google})
    assert model.parameters == {"temperature": 0.5, "top_p": 0.9, "max_tokens": 64}
    assert notes == ["model 'gemini-2.5-pro': the parameter thinking=7"]


@pytest.mark.parametrize(
    ("read", "name"),
    [(Survey, "agents.ep"), (AgentList, "survey.json.gz"), (ScenarioList, "job.ep"), (Job, "models.ep")],
)
def test_a_file_of_another_class_is_named(read, name):
    with pytest.raises(EdslFileError, match=r"holds EDSL's \w+, not its \w+. Read it with \w+\.from_edsl\."):
        read.from_edsl(DATA / name)


def test_what_is_no_file_of_edsl_is_refused(tmp_path):
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes((DATA / "job.json.gz").read_bytes()[:-30])
    with pytest.raises(EdslFileError, match=r"cut.json.gz cannot be read: it is not a whole gzip file"):
        Job.from_edsl(cut)
    (tmp_path / "x.ep").write_bytes(b"no zip")
    with pytest.raises(EdslFileError, match=r"x.ep cannot be read: it is no .ep file"):
        Job.from_edsl(tmp_path / "x.ep")
    with pytest.raises(EdslFileError, match=r"missing.json cannot be read: No such file"):
        Survey.from_edsl(tmp_path / "missing.json")
    with pytest.raises(EdslFileError, match="Headrace's own already"):
        Survey.from_edsl(Survey.example())
    with pytest.raises(EdslFileError, match="7 is nothing of EDSL's"):
        Survey.from_edsl(7)
    with pytest.raises(EdslFileError, match="no list of questions"):
        Survey.from_edsl({"rule_collection": {}})


def test_deep_long_and_endless_json_is_bounded(tmp_path, monkeypatch):
    deep = '{"questions": ' + "[" * 200_000
    with pytest.raises(EdslFileError, match="nested too deeply"):
        Survey.from_edsl(deep)
    monkeypatch.setattr("headrace.edsl_files.json_stream.LARGEST_VALUE", 1_000_000)
    bomb = tmp_path / "bomb.json.gz"
    with gzip.open(bomb, "wb") as file:
        file.write(b'{"questions": ["')
        for _ in range(40):
            file.write(b"a" * 1_000_000)
    with pytest.raises(EdslFileError, match="one value in it has more than"):
        Survey.from_edsl(bomb)
    with gzip.open(bomb, "wb") as file:
        for _ in range(40):
            file.write(b" " * 1_000_000)
    with pytest.raises(EdslFileError, match="blank for millions of letters"):
        Survey.from_edsl(bomb)


@pytest.mark.parametrize(
    ("settings", "noted_of"),
    [
        ({"use_code": True, "enumeration": "numeric_starts_with_0"}, 0),
        ({"enumeration": "none"}, 0),
        ({"enumeration": "letters"}, 1),
    ],
)
def test_how_options_are_numbered_is_noted_where_it_differs(settings, noted_of):
    question = {"question_name": "q", "question_text": "?", "question_options": ["a", "b"]}
    question |= {"question_type": "multiple_choice", **settings}
    with noted() as notes:
        Survey.from_edsl({"questions": [question], "memory_plan": {"data": {}}, "rule_collection": {"rules": []}})
    assert len(notes) == noted_of
