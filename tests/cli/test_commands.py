import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.units import format_dollars
from tests.cli.forked import headrace
from tests.forks import Forks

SURVEY = """
questions:
  - kind: multiple_choice
    name: mood
    text: How do you feel about {{ scenario.city }}?
    options: [Yes, No]
  - kind: numerical
    name: rating
    text: You said {{ mood.answer }}. Rate it.
    min: 0
    max: 10
skip:
  rating: "{{ mood.answer }} == 'No'"
"""


@pytest.fixture
def place(tmp_path: Path, forks: Forks) -> Path:
    (tmp_path / "survey.yaml").write_text(SURVEY)
    (tmp_path / "people.csv").write_text("agent_name,age\nada,36\nbob,27\n")
    (tmp_path / "cities.jsonl").write_text('{"city": "Oslo"}\n{"city": "Lima"}\n')
    return tmp_path


def run_city(place: Path, *more: str, answers: str = '{"mood": "Yes"}') -> subprocess.CompletedProcess[str]:
    lists = ("--agents", "people.csv", "--scenarios", "cities.jsonl")
    return headrace(place, "run", "survey.yaml", *lists, "--model", f"test,canned_response={answers}", *more)


def test_a_survey_in_a_file_runs_goes_on_and_is_shown(place: Path):
    first = run_city(place, "-o", "city.run", "--limit", "1", answers="No")
    assert (first.returncode, first.stderr) == (0, "")
    assert "1 interview in city.run; 1 call, " in first.stdout
    assert "1 of 4 interviews" in headrace(place, "status", "city.run").stdout
    assert headrace(place, "resume", "city.run").returncode == 0
    told = json.loads(headrace(place, "status", "city.run", "--json").stdout)
    assert (told["interviews"], told["total"], told["reused"], told["failed"]) == (4, 4, 1, 0)
    shown = headrace(place, "results", "city.run", "--select", "agent.age,answer.mood", "--where", "agent.age < 30",
                     "--format", "csv")  # fmt: skip
    assert shown.stdout == "agent.age,answer.mood\n27,No\n27,No\n"


def test_commands_that_run_a_job_take_workers(place: Path):
    run = run_city(place, "-o", "city.run", "--limit", "1", "--workers", "2", answers="No")
    assert (run.returncode, run.stderr) == (0, "")
    resumed = headrace(place, "resume", "city.run", "--workers", "1")
    assert (resumed.returncode, "4 interviews in city.run" in resumed.stdout) == (0, True)
    words = ("--data", "cities.jsonl", "--model", "test,canned_response=ok", "-o", "map.run", "--workers", "2")
    mapped = headrace(place, "map", "Label: {{ city }}", *words)
    assert (mapped.returncode, "2 interviews in map.run" in mapped.stdout) == (0, True), mapped.stderr
    refused = run_city(place, "-o", "b.run", "--workers", "-1")
    assert refused.returncode == 2


def test_yes_and_no_in_yaml_are_texts(place: Path):
    run_city(place, "-o", "city.run", answers="No")
    lines = headrace(place, "results", "city.run", "--select", "answer.mood", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [{"answer.mood": "No"}] * 4


def test_failed_questions_are_listed_with_why(place: Path):
    run_city(place, "-o", "city.run", answers="Maybe")
    shown = headrace(place, "results", "city.run").stdout.splitlines()
    assert "4 of 4 interviews failed, the first: interview 0, mood: invalid answer: 'Maybe' is not one" in shown[-2]
    assert shown[-1].endswith("results city.run --failed")
    listed = headrace(place, "results", "city.run", "--failed").stdout.splitlines()
    assert len(listed) == 4
    assert listed[0].startswith("interview 0, mood: invalid answer: 'Maybe' is not one of the options")
    few = headrace(place, "results", "city.run", "--failed", "--where", "age < 30", "--limit", "1", "--format", "jsonl")
    assert {**json.loads(few.stdout), "message": ""} == {
        "ordinal": 2, "question": "mood", "cause": "invalid answer", "message": ""
    }  # fmt: skip
    refused = headrace(place, "results", "city.run", "--failed", "--select", "mood")
    assert (refused.returncode, "Leave --select" in refused.stderr) == (1, True)


def test_failed_interviews_have_an_exit_code_of_their_own(place: Path):
    ended = run_city(place, "-o", "city.run", answers="Perhaps")
    assert ended.returncode == 3
    assert "4 failed" in ended.stdout
    assert "--retry-failed" in ended.stdout


def test_a_dry_run_counts_and_makes_no_file(place: Path):
    told = json.loads(run_city(place, "-o", "city.run", "--dry-run", "--n", "3", "--json").stdout)
    assert (told["interviews"], told["calls"], told["cost"]) == (12, 24, 0.0)
    assert not (place / "city.run").exists()


def test_a_dry_run_tells_a_small_cost_and_a_budget_that_is_smaller(place: Path):
    words = ("run", "survey.yaml", "--agents", "people.csv", "--scenarios", "cities.jsonl", "--dry-run")
    words = (*words, "--model", 'test,price={"input": 2.5, "output": 10}')
    cost = json.loads(headrace(place, *words, "--json").stdout)["cost"]
    assert 0 < cost < 0.01
    told = headrace(place, *words, "--max-cost", "1").stdout
    assert f"cost        {format_dollars(cost)}\n" in told
    above = headrace(place, *words, "--max-cost", "0.0001").stdout
    assert f"cost        {format_dollars(cost)}, above --max-cost 0.0001: a run would stop before its end\n" in above
    assert told == headrace(place, *words, "--max-cost", "none").stdout


def test_status_suggests_a_budget_above_what_is_spent(place: Path):
    words = ("run", "survey.yaml", "--agents", "people.csv", "--scenarios", "cities.jsonl", "-o", "city.run")
    words = (*words, "--model", 'test,canned_response=No,price={"input": 2.5, "output": 10}')
    assert headrace(place, *words, "--limit", "2").returncode == 0
    small = ("--max-cost", "0.000001", "--max-tokens-total", "1")
    assert headrace(place, "resume", "city.run", *small).returncode == 4
    go_on = headrace(place, "status", "city.run").stdout.rpartition("headrace resume city.run ")[2]
    assert headrace(place, "resume", "city.run", *go_on.split()).returncode == 0


def test_a_survey_may_be_an_object_of_the_user_s_own_program(place: Path):
    (place / "mine.py").write_text(
        "from headrace import QuestionFreeText, Survey\n"
        "asked = Survey([QuestionFreeText(question_name='q', question_text='Well?')])\n"
    )
    ended = headrace(place, "run", "mine:asked", "--model", "test,canned_response=x", "-o", "a.run", "--json")
    assert json.loads(ended.stdout)["interviews"] == 1


def test_a_log_of_progress_is_written_when_asked_for(place: Path):
    first, last = run_city(place, "-o", "city.run", "--limit", "2", "--log").stderr.splitlines()
    assert "headrace: 0.0%  0/2" in first
    assert "headrace: 100.0%  2/2" in last
    assert re.search(r"headrace: 100\.0%  4/4  in \d+s", headrace(place, "resume", "city.run", "--log").stderr)
    assert headrace(place, "resume", "city.run", "--lines").stderr == ""  # not a terminal


def test_run_files_without_a_path_are_listed(place: Path):
    run_city(place, answers="No")
    (found,) = json.loads(headrace(place, "runs", "--json").stdout)
    assert found["interviews"] == 4
    assert Path(found["path"]).name.startswith("mood-")


def test_a_closed_pipe_ends_quietly(place: Path):
    run_city(place, "-o", "city.run", "--n", "2000", answers="No")
    command = f"{sys.executable} -m headrace results city.run --format csv | head -1"
    ended = subprocess.run(["sh", "-c", command], cwd=place, capture_output=True, text=True, check=False, timeout=60)
    assert ended.stdout.startswith("answer.mood,")
    assert ended.stderr == ""


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.yaml", "questions:\n  - kind: free_text\n\tname: q\n", "a.yaml, line 3.*tab"),
        ("a.yaml", "question:\n  - 1\n", "has a part 'question'. Did you mean 'questions'"),
        ("a.yaml", "- 1\n", "not a set of"),
        ("a.yaml", "questions: 5\n", "no list of questions"),
        ("a.yaml", "questions:\n  - kind: free_txt\n    name: q\n", "question 1: .*Did you mean 'free_text'"),
        ("a.yaml", "questions:\n  - kind: free_text\n    name: q\n", "question 1: .*needs 'question_text'"),
        ("a.yaml", "questions:\n  - {kind: free_text, nam: q}\n", "no setting 'nam'"),
        ("a.yaml", "questions:\n  - {kind: free_text, name: q, question_name: p, text: x}\n", "twice, once in short"),
        ("a.yaml", "questions: !!python/object/apply:os.system ['true']\n", "could not determine a constructor"),
        (
            "a.yaml",
            "questions:\n  - kind: free_text\n    text: {{ scenario.city }}\n",
            "a.yaml, line 3.*may need quotes",
        ),
        ("a.yaml", "questions:\n  - {kind: free_text, name: q, text: 5}\n", "'q' has 5 for its text. Put it in quotes"),
        ("a.yaml", "questions:\n  - {kind: free_text, name: class, text: x}\n", "word of the language of rules"),
        (
            "a.yaml",
            "questions:\n  - {kind: linear_scale, name: q, text: x, options: [1, 2], labels: [a, b]}\n",
            "question 1: .*labels .*by number",
        ),
        (
            "a.yaml",
            "questions:\n  - {kind: yes_no, name: q, text: x}\nskip: {p: '1'}\n",
            "a.yaml, skip, p: .*no question",
        ),
        ("a.json", '{"questions": [}', "not valid JSON"),
    ],
)
def test_a_survey_file_that_cannot_be_read_says_what_is_wrong_and_where(
    place: Path, name: str, content: str, told: Any
):
    (place / name).write_text(content)
    ended = headrace(place, "run", name, "--model", "test")
    assert ended.returncode == 1
    assert re.search(told, ended.stderr)
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "nowhere.yaml"), "nowhere.yaml cannot be read"),
        (("run", "survey.yaml", "--agents", "people.txt"), "ends in '.txt'"),
        (("run", "survey.yaml", "--model", "test,x"), "'x' is not a parameter"),
        (("run", "survey.yaml", "--log", "--lines"), "--log and --lines are two ways"),
        (("resume", "nowhere.run", "--log", "--lines"), "Choose one of them"),
        (("run", "nothing:here"), "cannot be imported"),
        (("results", "survey.yaml"), "is not a run file"),
        (("status", "nowhere.run"), "There is no run file at"),
        (("resume", "nowhere.run"), "There is no run file at"),
    ],
)
def test_mistakes_are_told_in_words(place: Path, words: tuple[str, ...], told: str):
    ended = headrace(place, *words)
    assert ended.returncode == 1
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr
