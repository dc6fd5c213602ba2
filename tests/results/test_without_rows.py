"""Results of a file that keeps no rows: counts are right, and whatever needs rows gives one clear error."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace import Agent, Results
from headrace.errors import InvalidInput
from headrace.plan.portion import Portion
from headrace.results.results import results_of_run
from tests.results import files

PEOPLE = 120
NOTHING: dict[str, Any] = {"keep": "nothing", "aggregate": {"n": "count()"}, "progress_bar": False}
READS: dict[str, Callable[[Results], object]] = {
    "iterate": list,
    "index": lambda view: view[0],
    "last": lambda view: view[-1],
    "slice": lambda view: len(view[:3]),
    "number": lambda view: view.at(0),
    "sample": lambda view: view.sample(2, seed=1).to_dicts(),
    "mutate": lambda view: view.mutate("b = 1").to_dicts(),
    "tally": lambda view: view.tally("q", output="dict"),
    "group_by": lambda view: view.group_by("q").count().to_dicts(),
    "distinct": lambda view: view.distinct("q").to_dicts(),
    "long": lambda view: view.long().to_dicts(),
    "wide": lambda view: view.wide("agent.n", "q", "q"),
    "join": lambda view: view.join([{"q": "x"}], on={"answer.q": "q"}).to_dicts(),
    "sql": lambda view: view.sql("select q from self").to_dicts(),
    "duckdb": lambda view: view.duckdb(),
    "plot": lambda view: view.plot("q"),
    "plot by": lambda view: view.plot("q", by="agent.n"),
    "sum": lambda view: list(view + view),
    "csv": lambda view: view.to_csv("never"),
    "jsonl": lambda view: view.to_jsonl("never"),
    "parquet": lambda view: view.to_parquet("never"),
    "excel": lambda view: view.to_excel("never.xlsx"),
    "sqlite": lambda view: view.to_sqlite("never"),
    "markdown": lambda view: view.to_markdown(),
    "html": lambda view: view.to_html(),
    "pandas": lambda view: view.to_pandas(),
    "polars": lambda view: view.to_polars(),
    "arrow": lambda view: view.to_arrow(),
    "dicts": lambda view: view.to_dicts(),
    "agents": lambda view: view.agents,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nothing") / "n.run"
    of = files.job(files.survey("q"), [Agent({"n": n}) for n in range(PEOPLE)])
    of.run(path, **NOTHING, sample=40, seed=3).close()
    return path


@pytest.mark.parametrize("read", READS)
def test_what_needs_rows_says_that_there_are_none(
    path: Path, read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scope = Portion(PEOPLE, limit=None, sample=40, seed=3).scope
    for results in (Results.open(path), results_of_run(path, scope)):
        with (
            results,
            pytest.raises(InvalidInput, match=r'keeps no results \(keep="nothing"\)\. results\.aggregate\(\)'),
        ):
            READS[read](results)
    assert list(tmp_path.iterdir()) == []
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("keep", ["nothing", "everything"])
def test_the_length_of_a_run_is_what_it_has_finished(tmp_path: Path, keep: str) -> None:
    options = NOTHING if keep == "nothing" else {"progress_bar": False}
    path = tmp_path / "a.run"
    of = files.job(files.survey("q"), [Agent({"n": n}) for n in range(PEOPLE)])
    first = of.run(path, **options, sample=30, seed=1)
    drawn, below = (Portion(PEOPLE, limit=most, sample=s, seed=2).scope for most, s in ((None, 60), (50, None)))
    with results_of_run(path, drawn) as partly, results_of_run(path, below) as limited:
        before = len(partly), len(limited)
        assert 0 < before[0] < 30
        assert 0 < before[1] < 30
        second = of.run(path, **options, sample=60, seed=2)
        assert [len(each) for each in (first, second, partly)] == [30, 60, 60]
        of.run(path, **options)
        assert [len(each) for each in (first, second, partly, limited)] == [30, 60, 60, 50]
        assert before == expected_before()


def expected_before() -> tuple[int, int]:
    """How many of the first sample are in the second, and among the first 50, by bitmaps alone."""
    one, two = (Portion(PEOPLE, limit=None, sample=s, seed=n).scope for s, n in ((30, 1), (60, 2)))
    kept = [n for n in range(PEOPLE) if n not in one.passed_over(None)]
    return sum(n not in two.passed_over(None) for n in kept), sum(n < 50 for n in kept)


PROGRAM = """
import resource, sys
from headrace import Agent, AgentList, Model, QuestionFreeText, Survey

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def use(people, keep):
    job = Survey([QuestionFreeText(question_name="q", question_text="What?")]).by(
        AgentList(Agent(traits={"n": n}) for n in range(people))).by(Model("test", canned_response="x"))
    kept = {"keep": "nothing", "aggregate": {"n": "count()"}} if keep == "nothing" else {}
    with job.run(f"{sys.argv[1]}/{people}.run", sample=people // 2, seed=3, progress_bar=False, **kept) as results:
        assert len(results) == people // 2
        assert results._parts[0].failed_count() == 0
        if keep != "nothing":
            assert sum(1 for _ in results) == people // 2
            assert len(results.filter("len(q) == 1")) == people // 2
            assert results[people // 4].ordinal < people
            assert sum(1 for _ in results.sort_by("agent.n", reverse=True).select("q").long()) == people // 2

use(1_000, sys.argv[2])
before = peak()
use(16_000, sys.argv[2])
print(peak() - before)
"""


@pytest.mark.parametrize("keep", ["nothing", "everything"])
def test_memory_stays_flat_over_what_a_run_was_asked_for(tmp_path: Path, keep: str) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), keep]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(found.stdout) < 16  # MB; the results alone would be more
