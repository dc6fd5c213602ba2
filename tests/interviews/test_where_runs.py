"""Runs of jobs that leave combinations out: every count agrees, and the file keeps what is left out."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from headrace import Agent, AgentList, Model, QuestionFreeText, Results, ScenarioList
from headrace.errors import PlanMismatch, RunFileDamaged, RunFileError
from headrace.plan.job import Job
from headrace.results.file_facts import read_facts
from headrace.store.run_file.reader import open_run_file

ASK = QuestionFreeText(question_name="q", question_text="{{ scenario.k }}?")
CONDITION = "agent.age != scenario.k and model._index != agent.age % 2"


def _job(agents: int = 7, scenarios: int = 5, **parameters: object) -> Job:
    models = [Model("test", canned_response=each, **parameters) for each in "ab"]
    people = AgentList(Agent({"age": at}) for at in range(agents))
    return ASK.by(people, ScenarioList.from_list("k", range(scenarios)), models).where(CONDITION)


def _asked(path: Path) -> set[tuple[int, int, str, int]]:
    return {
        (result.agent["age"], result.scenario["k"], result.answer["q"], result.iteration)
        for result in Results.open(path)
    }


def _wanted(agents: int = 7, scenarios: int = 5, n: int = 1) -> set[tuple[int, int, str, int]]:
    return {
        (age, k, "ab"[model], iteration)
        for age in range(agents)
        for k in range(scenarios)
        for model in range(2)
        for iteration in range(n)
        if age != k and model != age % 2
    }


def test_a_run_asks_exactly_what_is_left_and_counts_agree(tmp_path):
    path, job, seen = tmp_path / "a.run", _job(), []
    assert len(job) == len(_wanted()) == job.estimate().interviews == 30
    results = job.run(path, limit=4)
    assert len(results) == 4
    job.run(path, on_result=seen.append)
    assert (len(seen), _asked(path), read_facts(path).planned) == (26, _wanted(), 30)
    assert job.run(path).stats().reused == 30
    assert len(Job.open(path)) == 30
    assert Job.open(path).identity() == job.identity()


def test_it_grows_by_iterations_and_by_longer_lists(tmp_path):
    path = tmp_path / "a.run"
    _job().run(path, sample=5, seed=3)
    assert len(Results.open(path)) == 5
    _job().run(path, n=3)
    assert _asked(path) == _wanted(n=3)
    _job(9, 8).run(path, extend=True)
    assert _asked(path) == _wanted(9, 8, n=3)
    assert read_facts(path).planned == len(_wanted(9, 8, n=3))
    _job(9, 8).run(path, n=4)
    assert _asked(path) == _wanted(9, 8, n=4)


def test_the_condition_is_part_of_the_plan(tmp_path):
    path = tmp_path / "a.run"
    _job().run(path)
    with pytest.raises(PlanMismatch, match=r"where: none in the file, 'agent\.age > 1' in this job"):
        _job().where("agent.age > 1").run(path)
    with pytest.raises(PlanMismatch, match="where: "):
        ASK.by(AgentList(Agent({"age": at}) for at in range(7)), _job().scenarios, _job().models).run(path)


def test_what_is_stored_is_not_evaluated_again(tmp_path, monkeypatch):
    path = tmp_path / "a.run"
    _job().run(path, limit=3)
    monkeypatch.setattr("headrace.plan.job.left_out", lambda *_: pytest.fail("evaluated again"))
    assert len(_job().run(path)) == 30
    assert len(Job.open(path).run()) == 30


def test_a_killed_run_goes_on_and_leaves_out_the_same(tmp_path):
    path = tmp_path / "a.run"
    program = f"""
from tests.interviews.test_where_runs import _job
_job(latency_s=0.5).run({str(path)!r}, concurrency=2)
"""
    running = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[2])
    for _ in range(600):
        if running.poll() is None and path.exists() and _has_rows(path):
            break
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    results = _job(latency_s=0.5).run(path)
    assert 0 < results.stats().reused < 30
    assert _asked(path) == _wanted()


def _has_rows(path: Path) -> bool:
    try:
        with Results.open(path) as results:
            return len(results) > 1
    except RunFileError:
        return False


def test_a_bitmap_that_was_changed_is_noticed(tmp_path):
    path = tmp_path / "a.run"
    _job().run(path, limit=3)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'where.count'")
    connection.close()
    with pytest.raises(RunFileDamaged):
        _job().run(path)


def test_the_stored_bitmap_is_small(tmp_path):
    path = tmp_path / "a.run"
    people = AgentList(Agent({"age": at}) for at in range(2_000))
    job = ASK.by(people, ScenarioList.from_list("k", range(2_000)), Model("test")).where("agent.age < 2")
    job.run(path, limit=1)
    connection = open_run_file(path)
    held = connection.execute("SELECT sum(length(value)) FROM meta WHERE key GLOB 'where*'").get
    connection.close()
    assert held < 5_000  # of 500 KB of bits


def test_the_command_takes_a_condition(tmp_path):
    (tmp_path / "survey.yaml").write_text("questions:\n  - {kind: free_text, name: q, text: '{{ scenario.k }}?'}\n")
    (tmp_path / "people.csv").write_text("age\n1\n2\n3\n")
    (tmp_path / "ks.csv").write_text("k\n1\n2\n")
    words = ["run", "survey.yaml", "--agents", "people.csv", "--scenarios", "ks.csv", "--model", "test", "-o", "a.run"]
    where = ["--where", "agent.age > scenario.k", "--where", "scenario.k != 2"]
    command = [sys.executable, "-m", "headrace", *words, *where]
    estimate = subprocess.run(
        [*command, "--dry-run", "--json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(estimate.stdout)["interviews"] == 2
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "2 interviews in a.run" in ran.stdout + ran.stderr
    status = [sys.executable, "-m", "headrace", "status", "a.run"]
    assert "2 of 2" in subprocess.run(status, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
