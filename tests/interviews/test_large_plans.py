"""Runs of plans with 10^9 interviews: what they hold follows what was done, not how long the plan is."""

import tracemalloc

import pytest

from headrace import Agent, AgentList, Job, Model, QuestionFreeText, ScenarioList
from headrace.limits import Keep

ASK = QuestionFreeText(question_name="q", question_text="Is {{ agent.i }} in {{ scenario.k }}?")
MOST_BYTES = 30_000_000  # one bitmap of the plan would be 125 MB


def job_of(agents: int, scenarios: int) -> Job:
    people = AgentList(Agent({"i": at}) for at in range(agents))
    places = ScenarioList({"k": at} for at in range(scenarios))
    return ASK.by(people).by(places).by(Model("test", canned_response="yes"))


@pytest.mark.parametrize("keep", [Keep.EVERYTHING, Keep.NOTHING])
def test_a_billion_interviews_are_estimated_begun_sampled_and_gone_on_with(tmp_path, keep):
    job, path = job_of(1_000, 1_000), tmp_path / "x.run"
    settings = {"n": 1_000, "memory": "+200MB", "keep": keep.value, "on_result": lambda _: None}
    tracemalloc.start()
    try:
        assert job.estimate(n=1_000).interviews == 10**9
        job.run(path, limit=30, **settings).close()
        results = job.run(path, limit=60, **settings)
        assert results.stats().reused == 30
        results.close()
        for _ in range(2):  # drawn, and gone on with
            sampled = job.run(path, sample=50, seed=7, **settings)
            assert len(sampled) == 50
            sampled.close()
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MOST_BYTES
    assert sampled.stats().reused == 50


def test_conditions_on_a_hundred_million_combinations_are_kept_in_little_memory(tmp_path):
    job, path = job_of(10_000, 10_000).where("agent.i % 7 != 0 and scenario.k % 3 != 1"), tmp_path / "x.run"
    tracemalloc.start()
    try:
        assert len(job) == 8_571 * 6_667
        job.run(path, limit=20, memory="+200MB").close()
        results = job.run(path, limit=40, sample=10, memory="+200MB")
        assert len(results) == 10
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MOST_BYTES // 2  # a bit each would be 12.5 MB, and in several copies
    assert {row["agent.i"] for row in results.select("agent.i").to_dicts(remove_prefix=False)} <= {1}
    results.close()
