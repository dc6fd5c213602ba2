"""Results as a file for EDSL. That the real EDSL loads it with equal values is proved by `scripts/bench edsl_files`."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    Agent,
    AgentList,
    Job,
    Model,
    QuestionFreeText,
    QuestionLinearScale,
    QuestionNumerical,
    QuestionYesNo,
    Results,
    Survey,
)
from headrace.edsl_files.results_writing import edsl_trait_name
from headrace.errors import InvalidInput, OptionError
from tests.edsl_files.data_files import DATA, held_in, noted


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job that EDSL wrote, run here."""
    path = tmp_path_factory.mktemp("edsl") / "x.run"
    Job.from_edsl(DATA / "job.json.gz").run(path, n=2, progress_bar=False)
    return path


def written(results: Results, path: Path) -> dict[str, Any]:
    results.to_edsl(path)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return json.loads(text)


def test_every_part_has_the_form_that_edsl_gives_it(run_file, tmp_path):
    ours, theirs = written(Results.open(run_file), tmp_path / "x.json.gz"), held_in("results.json.gz")
    assert len(ours["data"]) == len(theirs["data"]) == 8
    key = lambda held: json.dumps([held["agent"]["name"], held["scenario"]["city"], held["iteration"]])  # noqa: E731
    for mine, other in zip(sorted(ours["data"], key=key), sorted(theirs["data"], key=key), strict=True):
        for part in ("agent", "scenario", "iteration", "answer", "generated_tokens"):
            assert mine[part] == other[part]
        for each in (mine, other):  # both shuffle the options of `mood`, each in its own way
            each["question_to_attributes"]["mood"]["question_options"].sort()
        assert mine["question_to_attributes"] == other["question_to_attributes"]
        assert mine["model"]["parameters"] == other["model"]["parameters"]
        assert mine["comments_dict"] == other["comments_dict"]
        assert mine["reasoning_summaries_dict"] == other["reasoning_summaries_dict"]
        assert mine["prompt"].keys() == other["prompt"].keys()
        assert mine["raw_model_response"]["mood_input_tokens"] > 0
        assert mine["validated_dict"]["mood_validated"] is True
        assert mine["cache_used_dict"]["mood"] is False
    assert ours["edsl_class_name"] == "Results"


def test_a_survey_goes_to_edsl_and_back_unchanged(run_file, tmp_path):
    survey = Results.open(run_file).survey
    held = written(Results.open(run_file), tmp_path / "x.json")["survey"]
    assert Survey.from_edsl(held).to_dict() == survey.to_dict()


def test_views_are_written_as_they_are(run_file, tmp_path):
    chosen = Results.open(run_file).filter("scenario.city == 'Lima'").sort_by("agent.age", reverse=True)
    data = written(chosen, tmp_path / "x.json")["data"]
    assert [held["agent"]["traits"]["age"] for held in data] == [21, 21, 20, 20]


def test_failed_and_skipped_questions_are_none_with_their_parts(tmp_path):
    survey = Survey(
        [
            QuestionYesNo(question_name="pet", question_text="A pet?"),
            QuestionNumerical(question_name="legs", question_text="How many legs?"),
            QuestionFreeText(question_name="name", question_text="Its name?"),
        ]
    ).add_skip_rule("name", "pet == 'No' and agent.age > 3")
    survey.add_skip_rule("legs", "pet.answer == 'Perhaps'")
    people = AgentList([Agent({"class": 1, "age": 7, "Home Town": "Oslo", "none": float("nan")}, name="ada")])
    model = Model("test", canned_response={"pet": "No", "legs": "many", "name": "Rex"})
    results = survey.by(people, model).run(tmp_path / "x.run", progress_bar=False)
    with noted() as notes:
        held = written(results, tmp_path / "x.json")
    (one,) = held["data"]
    assert one["answer"] == {"pet": "No", "legs": None, "name": None}
    assert one["validated_dict"]["pet_validated"] is True
    assert one["validated_dict"]["legs_validated"] is False
    failed = results[0].failures[0].message
    assert one["comments_dict"] == {"pet_comment": None, "legs_comment": failed, "name_comment": None}
    assert one["indices"] == {"agent": 0, "scenario": 0, "model": 0}
    assert "name_user_prompt" not in one["prompt"]
    assert str(one["agent"]["traits"]["none"]) == "nan"
    assert one["agent"]["traits"].keys() >= {"class_", "Home_Town"}
    rules = [rule["expression"] for rule in held["survey"]["rule_collection"]["rules"] if rule["priority"] >= 0]
    assert rules == ["{{ pet.answer }} == 'Perhaps'"]
    assert len(notes) == 3
    assert "a rule of question 'name'" in notes[2]


def test_what_edsl_cannot_hold_is_refused_or_noted(run_file, tmp_path):
    results = Results.open(run_file)
    with pytest.raises(OptionError, match=r"x.csv is no name of a file that EDSL loads"):
        results.to_edsl(tmp_path / "x.csv")
    with pytest.raises(OptionError, match="is the run file itself"):
        results.to_edsl(run_file)
    other = Survey.example().by(Model("test")).run(tmp_path / "other.run", progress_bar=False)
    with pytest.raises(InvalidInput, match="of one survey"):
        (results + other).to_edsl(tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(
    ("name", "written"),
    [("age", "age"), ("name", "name_"), ("class", "class_"), ("Home Town", "Home_Town"), ("7", "_7")],
)
def test_traits_get_names_that_edsl_takes(name, written):
    assert edsl_trait_name(name) == written


def test_a_mapped_job_is_free_text(tmp_path):
    job = Job.map("Label: {{ text }}", [{"text": "a"}, {"text": "b"}]).by(Model("test", canned_response="good"))
    results = job.run(tmp_path / "x.run", progress_bar=False)
    with noted() as notes:
        held = written(results, tmp_path / "x.json")
    (name,) = results.question_names
    assert [one["scenario"]["text"] for one in held["data"]] == ["a", "b"]
    assert [one["answer"] for one in held["data"]] == [{name: "good"}, {name: "good"}]
    assert held["survey"]["questions"][0]["question_type"] == "free_text"
    assert "free text for EDSL: its kind is not there" in notes[0]


def test_settings_that_edsl_would_refuse_do_not_keep_a_file_from_loading(tmp_path):
    scale = {"question_text": "?", "question_options": [1, 2, 3]}
    survey = Survey(
        [
            QuestionLinearScale(question_name="a", option_labels={1: "low"}, **scale),
            QuestionLinearScale(question_name="b", option_labels={1: "low", 3: "high"}, **scale),
            QuestionLinearScale(question_name="c", question_text="?", question_options=[3, 2, 1]),
            QuestionLinearScale(question_name="d", **scale),
        ]
    )
    results = survey.by(Model("test", canned_response="1")).run(tmp_path / "x.run", progress_bar=False)
    with noted() as notes:
        asked = written(results, tmp_path / "x.json")["survey"]["questions"]
    assert [(each["question_type"], "option_labels" in each) for each in asked] == [
        ("linear_scale", False),
        ("linear_scale", True),
        ("free_text", False),
        ("linear_scale", False),
    ]
    assert len(notes) == 2
    named = Survey([QuestionFreeText(question_name="my_comment", question_text="?")])
    results = named.by(Model("test")).run(tmp_path / "y.run", progress_bar=False)
    with pytest.raises(InvalidInput, match="EDSL takes no question called 'my_comment'"):
        results.to_edsl(tmp_path / "y.json")


def test_failures_and_equal_agents_come_back_as_they_were(tmp_path):
    question = QuestionNumerical(question_name="legs", question_text="How many legs?")
    people = AgentList([Agent({"age": 7}), Agent({"age": 7})])
    results = question.by(people, Model("test", canned_response="many")).run(tmp_path / "x.run", progress_bar=False)
    results.to_edsl(tmp_path / "x.json")
    again = Results.from_edsl(tmp_path / "x.json", tmp_path / "again.run")
    assert [failure[2:] for failure in again.failed()] == [failure[2:] for failure in results.failed()]
    assert [result.iteration for result in again] == [0, 0]


def test_a_file_without_texts_is_written_without_them(tmp_path):
    model = Model("test", canned_response={"q0": "yes", "q1": "Here.", "q2": "Rice."})
    job = Survey.example().by(model)
    results = job.run(tmp_path / "x.run", keep="answers", progress_bar=False)
    (one,) = written(results, tmp_path / "x.json")["data"]
    assert one["prompt"] == one["generated_tokens"] == {}
    assert one["answer"]["q2"] == "Rice."
    assert one["raw_model_response"]["q0_input_tokens"] > 0
    again = Results.from_edsl(tmp_path / "x.json", tmp_path / "again.run")
    assert again.stats().tokens == results.stats().tokens
    assert again.stats().failed == 0
