"""Results that the real EDSL saved, as run files; and `headrace import`."""

import gzip
import json
from pathlib import Path

import pytest

from headrace import Job, Results
from headrace.cli.main import app
from headrace.edsl_files.file_import import import_file
from headrace.errors import EdslFileError, NotARunFile, OptionError
from headrace.survey.model import MissingFunction
from tests.edsl_files.data_files import DATA, held_in, noted

VALUES = [json.loads(line) for line in gzip.decompress((DATA / "values.jsonl.gz").read_bytes()).splitlines()]


def values(results: Results) -> list[dict]:
    """What the real EDSL printed of each result, made of ours."""
    return sorted((_of_one(result) for result in results), key=lambda held: json.dumps(held, sort_keys=True))


def _of_one(result) -> dict:
    raw = result["raw_model_response"]
    return {
        "agent": {"name": result.agent.name, "traits": result.agent.traits},
        "scenario": result.scenario,
        "model": [result.model.name, result.model.parameters["temperature"]],
        "iteration": result.iteration,
        "answer": result.answer,
        "comment": {name: text for name, text in result["comment"].items() if text},
        "prompt": result["prompt"],
        "tokens": {name: raw[name] for name in sorted(raw) if name.endswith(("_input_tokens", "_output_tokens"))},
        "generated": result["generated_tokens"],
    }


@pytest.mark.parametrize("form", [".json.gz", ".ep"])
def test_every_value_is_the_one_that_edsl_has(form, tmp_path):
    with noted() as notes:
        results = Results.from_edsl(DATA / f"results{form}", tmp_path / "x.run")
    assert values(results) == sorted(VALUES, key=lambda held: json.dumps(held, sort_keys=True, ensure_ascii=True))
    assert notes == ["the order in which options were shown: prompts have it"]
    assert results.stats().interviews == 8
    assert results.stats().cost == pytest.approx(8e-5)
    assert results.filter("agent.age > 20").tally("answer.mood", output="dict") == {"Good": 4}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.run"]


def test_an_imported_file_is_finished_and_whole(tmp_path):
    with noted():
        Results.from_edsl(held_in("results.json.gz"), tmp_path / "x.run").close()
    job = Job.open(tmp_path / "x.run", allow="test")
    assert job.run(n=2, progress_bar=False).stats().calls == 40  # nothing is asked again
    assert job.agents[0].codebook == {"age": "Age in years"}


def test_combinations_that_are_missing_are_named_and_can_be_asked(tmp_path):
    held = held_in("results.json.gz")
    held["data"] = [result for result in held["data"] if result["iteration"] == 0][1:]
    with noted() as notes:
        results = Results.from_edsl(held, tmp_path / "x.run")
    assert len(results) == 3
    assert "1 combinations of these agents" in notes[-1]
    assert len(Job.open(tmp_path / "x.run").run(progress_bar=False)) == 4


def test_one_combination_twice_gets_the_next_iteration(tmp_path):
    held = held_in("results.json.gz")
    held["data"] = [held["data"][0], held["data"][0], held["data"][2]]
    with noted():
        results = Results.from_edsl(held, tmp_path / "x.run")
    assert sorted(result.iteration for result in results) == [0, 0, 1]


def test_equal_agents_stay_apart_where_edsl_says_so(tmp_path):
    held = held_in("results.json.gz")
    held["data"] = held["data"][:2]
    for number, result in enumerate(held["data"]):
        result |= {"agent": {"traits": {"age": 1}}, "scenario": {}, "iteration": 0}
        result["indices"] = {"agent": number, "scenario": 0, "model": 0}
    with noted():
        Results.from_edsl(held, tmp_path / "x.run").close()
    assert len(Job.open(tmp_path / "x.run").agents) == 2


def test_questions_without_an_answer_are_failed_or_skipped(tmp_path):
    held = held_in("results.json.gz")
    one = held["data"][0]
    held["data"] = [one]
    one["answer"] |= {"rating": None, "why": None}
    one["validated_dict"]["rating_validated"] = False
    one["comments_dict"]["rating_comment"] = "Input should be a number"
    for part in ("prompt", "raw_model_response", "generated_tokens"):
        one[part] = {name: value for name, value in one[part].items() if not name.startswith("why_")}
    with noted():
        (result,) = Results.from_edsl(held, tmp_path / "x.run")
    assert [(failure.question, failure.message) for failure in result.failures] == [
        ("rating", "Input should be a number")
    ]
    assert result.skipped == ["why"]


def test_code_and_unknown_kinds_keep_their_answers_and_are_never_run(tmp_path):
    held = held_in("results.json.gz")
    held["survey"]["questions"].append(json.loads((DATA / "functional.json").read_text("utf-8"))["questions"][0])
    held["survey"]["questions"].append({"question_name": "site", "question_text": "Where?", "question_type": "url"})
    for result in held["data"]:
        result["answer"] |= {"sum_and_multiply": 42, "site": "https://example.org", "made": 1}
    with noted() as notes:
        results = Results.from_edsl(held, tmp_path / "x.run")
    assert results.select("sum_and_multiply", "site").to_list()[0] == (42, "https://example.org")
    said = "\n".join(notes)
    assert "'sum_and_multiply' carries Python code, which is never executed: its answers are kept" in said
    assert "'site' is of the kind 'url'" in said
    assert "the column 'made', which is no question's: mutate(...) computes it again (8 times)" in said
    assert isinstance(results.survey["site"].functions["func"], MissingFunction)


def test_rules_that_cannot_be_read_do_not_keep_answers_away(tmp_path):
    held = held_in("results.json.gz")
    held["survey"]["rule_collection"]["rules"][-1]["unless"] = 1
    with noted() as notes:
        results = Results.from_edsl(held, tmp_path / "x.run")
    assert len(results) == 8
    assert any(note.startswith("rules, memory and groups of the survey") for note in notes)


def test_a_text_that_names_what_nobody_has_keeps_its_answers(tmp_path):
    held = held_in("results.json.gz")
    held["survey"]["questions"][4]["question_text"] = "Why, {{ nickname }}?"
    with noted() as notes:
        results = Results.from_edsl(held, tmp_path / "x.run")
    assert len(results) == 8
    assert "asking it again, unless the survey is changed: Question 'why'" in notes[-1]
    assert Job.open(tmp_path / "x.run").survey["why"].question_text == "Why, {{ nickname }}?"


def test_pairs_of_many_agents_and_scenarios_are_refused_before_they_take_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.edsl_files.results_import._MOST_COMBINATIONS", 7)
    with pytest.raises(EdslFileError, match="8 results of 2 agents, 2 scenarios and 1 models are 8 combinations"):
        Results.from_edsl(held_in("results.json.gz"), tmp_path / "x.run")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_imported_leaves_nothing(tmp_path):
    held = held_in("results.json.gz")
    held["data"][3]["answer"]["pets"] = None
    for _ in range(70):
        held["data"][3]["answer"]["pets"] = [held["data"][3]["answer"]["pets"]]
    with pytest.raises(EdslFileError, match="nested deeper than 64 levels"):
        Results.from_edsl(held, tmp_path / "x.run")
    with pytest.raises(EdslFileError, match="holds EDSL's Survey, not its Results"):
        Results.from_edsl(DATA / "survey.ep", tmp_path / "x.run")
    with pytest.raises(EdslFileError, match="result 0 has no agent"):
        Results.from_edsl({"data": [7], "survey": {}}, tmp_path / "x.run")
    with pytest.raises(EdslFileError, match="holds no result"):
        Results.from_edsl({"data": [], "survey": {}}, tmp_path / "x.run")
    with pytest.raises(OptionError, match="The run file has no name"):
        Results.from_edsl(held)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x.run").touch()
    with pytest.raises(OptionError, match="is there already"):
        Results.from_edsl(DATA / "results.ep", tmp_path / "x.run")


def test_the_command_imports_by_what_a_file_holds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[str, str]:
        with pytest.raises(SystemExit) as ended:
            app(list(words), prog_name="headrace")
        printed = capsys.readouterr()
        assert ended.value.code == 0, printed.err
        return printed.out, printed.err

    for name in ("results.ep", "job.json.gz", "agents.ep", "survey.ep"):
        (tmp_path / name).symlink_to(DATA / name)
    with noted() as notes:
        told, _ = run("import", "results.ep")
    assert told.startswith("imported results.ep to results.run: 8 interviews\n")
    assert notes
    assert run("import", "job.json.gz", "-o", "job.run")[0].splitlines()[0] == (
        "imported job.json.gz to job.run: 4 interviews, none of them conducted yet"
    )
    assert run("resume", "job.run")[0].startswith("4 interviews in job.run; 20 calls")
    assert "a study of 5 questions" in run("import", "job.json.gz", "-o", "study.yaml")[0]
    assert len(Job.load("study.yaml")) == 4
    assert "run it: " in run("import", "survey.ep")[0]
    with pytest.raises(OptionError, match=r"holds results, which become a run file\. Name it so: -o x\.run"):
        import_file(Path("results.ep"), Path("x.yaml"))
    with noted() as notes:
        assert "2 agents" in run("import", "agents.ep", "-o", "people.csv")[0]
    assert notes == ["codebooks and templates of the agents: a .yaml or .json file has them"]
    assert Path("people.csv").read_text("utf-8").startswith("agent_name,age,")


def test_imported_agents_go_to_the_command_with_their_codebook(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*words: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            app(list(words), prog_name="headrace")
        printed = capsys.readouterr()
        assert ended.value.code == code, printed.err
        return printed.out + printed.err

    Path("s.yaml").write_text(
        "questions:\n- {question_name: q, kind: free_text, question_text: 'How are you?'}\n", "utf-8"
    )
    for name in ("agents.ep", "agents.json.gz"):
        (tmp_path / name).symlink_to(DATA / name)
    for made in ("a.yaml", "a.json"):
        told = run("import", "agents.ep", "-o", made)
        assert told.endswith(f" run SURVEY --agents {made}\n")
        assert "run it" not in told
    Path("b.jsonl").write_text('{"__header__": true, "edsl_class_name": "AgentList"}\n{"traits": {"a": 1}}\n', "utf-8")
    assert run("import", "b.jsonl").startswith("imported b.jsonl to b.rows.jsonl: 1 agent\n")
    for number, given in enumerate(("a.yaml", "a.json", "agents.ep", "agents.json.gz")):
        run("run", "s.yaml", "--agents", given, "--model", "test,canned_response=x", "-o", f"{number}.run")
        assert "Age in years: 20" in Results.open(f"{number}.run")[0]["prompt"]["q_system_prompt"]
    Path("t.yaml").write_text(Path("s.yaml").read_text("utf-8") + "agents: a.yaml\n", "utf-8")
    assert Job.load("t.yaml").agents[0].codebook == {"age": "Age in years"}


def test_a_job_without_a_model_says_how_it_gets_one(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("HEADRACE_MODEL", raising=False)
    with pytest.raises(SystemExit):
        app(["import", str(DATA / "survey.ep"), "-o", str(tmp_path / "x.run")], prog_name="headrace")
    said = capsys.readouterr().err
    assert "has no model, which a run file needs" in said
    assert "-o x.yaml" in said
    assert list(tmp_path.iterdir()) == []


def test_opening_a_file_of_edsl_as_a_run_file_says_what_to_do(capsys):
    with pytest.raises(NotARunFile, match=r"Results\.from_edsl\(path"):
        Results.load(DATA / "results.ep")
    with pytest.raises(SystemExit):
        app(["results", str(DATA / "results.json.gz")], prog_name="headrace")
    assert "headrace import FILE -o study.run" in capsys.readouterr().err


def test_the_command_refuses_what_has_no_file_here(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        app(["import", str(DATA / "models.ep"), "-o", str(tmp_path / "x.run")], prog_name="headrace")
    assert ended.value.code == 1
    assert "holds EDSL's ModelList" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_import_that_was_killed_leaves_nothing_in_the_way(tmp_path):
    (tmp_path / "x.run.importing").write_bytes(b"half of it")
    with noted():
        assert len(Results.from_edsl(DATA / "results.ep", tmp_path / "x.run")) == 8


def test_the_cache_and_the_history_in_results_are_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.edsl_files.json_stream.LARGEST_VALUE", 200_000)
    held = held_in("results.json.gz")
    held = {"cache": {str(number): "x" * 9_000 for number in range(100)}, **held}
    (tmp_path / "x.json").write_text(json.dumps(held), "utf-8")
    with noted():
        assert len(Results.from_edsl(tmp_path / "x.json")) == 8
    assert (tmp_path / "x.run").exists()
