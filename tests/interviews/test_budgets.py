"""Budgets live in the run file: as written, over all of its runs, until given again."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from headrace import AgentList, Engine, Job, Model, QuestionFreeText, Results, Survey
from headrace.errors import BudgetSpent, BudgetTooSmall, OptionError, PlanMismatch, RunFileBusy, RunFileDamaged
from headrace.interviews import spending
from headrace.interviews.standalone import StandaloneRun
from headrace.limits import Budgets, RunOptions
from headrace.models.http_client.reply_room import WITHIN_BUDGETS
from headrace.store.run_file.run_journal import Journal
from headrace.store.run_file.stored_job.kept_budgets import kept_budgets
from tests.cli.forked import headrace
from tests.cli.live import SURVEY, endless, live, told
from tests.forks import Forks
from tests.store.forging import fitted
from tests.trouble.children import until

PRICE = {"input": 1000.0, "output": 1000.0}  # a tenth of a cent a token
GIVEN: list[tuple[str, Any]] = [
    ("memory", "60%"),
    ("memory", "4096MB"),  # more than a process has that has run other tests
    ("memory", "+512MB"),
    ("memory", 4_000_000_000),
    ("max_cost", 2.5),
    ("max_tokens_total", 10_000),
    ("concurrency", 7),
]


def a_job(people: int = 300, **parameters: Any) -> Job:
    asked = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ agent.n }}?")])
    return asked.by(AgentList.from_list("n", range(people))).by(Model("test", canned_response="me", **parameters))


def tokens_in(path: Path) -> int:
    return Results.open(path).stats().tokens


@pytest.mark.parametrize(("name", "value"), GIVEN)
def test_a_budget_is_kept_as_it_was_written_and_lifted_by_none(name: str, value: Any, tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(3).run(path, limit=1, **{name: value})
    assert getattr(kept_budgets(path).budgets, name) == value
    a_job(3).run(path, limit=2)
    assert getattr(kept_budgets(path).budgets, name) == value
    a_job(3).run(path, **{name: "none"})
    assert kept_budgets(path).budgets == Budgets()


def test_a_budget_holds_for_every_later_run_until_it_is_given_again(tmp_path: Path):
    path = tmp_path / "a.run"
    with pytest.raises(BudgetSpent):
        a_job().run(path, max_tokens_total=1000)
    for run in (a_job().run, Job.open(path).run):
        with pytest.raises(BudgetSpent, match="max_tokens_total=1000"):
            run(path)
    assert tokens_in(path) <= 1000
    with pytest.raises(BudgetSpent):
        a_job().run(path, max_tokens_total=2000)
    assert 1000 < tokens_in(path) <= 2000
    assert a_job().run(path, max_tokens_total="none").stats().interviews == 300


def test_a_later_run_judges_by_what_earlier_ones_took_not_by_an_estimate(tmp_path: Path):
    path = tmp_path / "a.run"
    job = a_job().survey.by(AgentList.from_list("n", range(300)))
    job = job.by(Model("test", canned_response="x" * 8000, latency_s=0.5))  # thirty times what is expected of a text
    taken = job.run(path, limit=20).stats().tokens
    with pytest.raises(BudgetSpent):
        job.run(path, max_tokens_total=taken + taken // 2)
    assert 1.4 * taken < tokens_in(path) <= 1.5 * taken


def test_a_job_from_a_file_goes_on_in_that_file_and_is_not_started_over_in_it(tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(5).run(path, limit=1)
    with pytest.raises(OptionError, match="holds the job itself"):
        Job.open(path).run(fresh=True)
    assert Job.open(path).run().path == path
    assert len(Results.open(path)) == 5
    assert len(Job.open(path).run(tmp_path / "b.run", fresh=True)) == 5
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.run", "b.run"]


def test_the_test_model_costs_what_its_price_says_so_that_a_budget_can_be_rehearsed(tmp_path: Path):
    job = a_job(price=PRICE)
    assert job.estimate().cost
    with pytest.raises(BudgetSpent, match=r"max_cost=0\.1"):
        job.run(tmp_path / "a.run", max_cost=0.1)
    stats = Results.open(tmp_path / "a.run").stats()
    assert stats.cost == pytest.approx(stats.tokens * 0.001)
    assert 0.05 < stats.cost <= 0.1
    assert Results.open(tmp_path / "a.run")[0].costs["q"]


def test_the_test_model_costs_the_same_in_workers(tmp_path: Path):
    stats = a_job(30, price=PRICE).run(tmp_path / "a.run", workers=1).stats()
    assert stats.cost == pytest.approx(stats.tokens * 0.001)
    assert kept_budgets(tmp_path / "a.run").budgets.workers == 1
    a_job(30, price=PRICE).run(tmp_path / "a.run", workers=0)
    assert kept_budgets(tmp_path / "a.run").budgets.workers is None


@pytest.mark.anyio
async def test_a_survey_in_an_engine_keeps_its_budgets(tmp_path: Path):
    path = tmp_path / "a.run"
    async with Engine(tmp_path / "e.run", isolation="inline") as engine:
        with pytest.raises(BudgetSpent):
            await engine.run(a_job(), path, max_tokens_total=1000)
        with pytest.raises(BudgetSpent):
            await engine.run(a_job(), path)
    assert tokens_in(path) <= 1000


def test_a_refused_budget_leaves_the_file_as_it_was(tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(3).run(path, limit=1, max_tokens_total=5000)
    for wrong in ({"memory": "1KB"}, {"memory": "lots"}, {"max_cost": -1}, {"max_cost": "some"}, {"concurrency": 0}):
        with pytest.raises(Exception, match=next(iter(wrong)) if "lots" not in wrong.values() else "lots"):
            a_job(3).run(path, **wrong)  # pyright: ignore[reportArgumentType]
    assert kept_budgets(path).budgets == Budgets(max_tokens_total=5000)


def test_a_limit_of_cost_that_is_refused_for_want_of_a_price_is_not_kept(tmp_path: Path):
    path = tmp_path / "a.run"
    unpriced = a_job(1).survey.by(AgentList.from_list("n", [1])).by(Model("m", base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(OptionError, match=r"max_cost=1\.0 needs prices"):
        unpriced.run(path, max_cost=1.0)
    assert not path.exists()


@pytest.mark.parametrize("is_installed", [True, False])
def test_prices_are_to_be_installed_only_where_they_are_not(monkeypatch: pytest.MonkeyPatch, is_installed: bool):
    monkeypatch.setattr(spending, "can_look_up", lambda: is_installed)
    unpriced = a_job(1).survey.by(Model("m", base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(OptionError) as refused:
        spending.check_priced(unpriced, Budgets(max_cost=1.0))
    assert ("install prices with" in str(refused.value)) is not is_installed


def test_starting_over_starts_without_budgets(tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(3).run(path, max_tokens_total=5000)
    a_job(3).run(path, fresh=True)
    assert kept_budgets(path).budgets == Budgets()


def test_a_file_without_kept_budgets_has_the_defaults_and_one_that_makes_no_sense_is_refused(tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(3).run(path)
    assert kept_budgets(path).budgets.window == 200
    for key, value in (
        ("max_cost", "'x'"),
        ("memory", "'900 apples'"),
        ("concurrency", "-1"),
        ("workers", "x'00'"),
        ("memory", "printf('%.*c', 9999, '9')"),
    ):
        with sqlite3.connect(path) as raw:
            raw.execute("DELETE FROM meta WHERE key LIKE 'budget.%'")
            raw.execute(f"INSERT INTO meta VALUES('budget.{key}', {value})")
        raw.close()
        with pytest.raises(RunFileDamaged, match="budget that makes no sense"):
            a_job(3).run(path)


def test_the_budgets_of_another_jobs_file_say_nothing(tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(3).run(path)
    with sqlite3.connect(path) as raw:
        raw.execute("INSERT INTO meta VALUES('budget.memory', '1MB')")
    raw.close()
    fitted(path)
    with pytest.raises(PlanMismatch):
        a_job(4).run(path)
    with pytest.raises(BudgetTooSmall, match='"none" for the default'):
        a_job(3).run(path)


def test_budgets_that_change_between_the_decision_and_the_lock_stop_the_run(tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(3).run(path, limit=1)
    late = StandaloneRun(a_job(3), path, RunOptions(), None)
    a_job(3).run(path, limit=2, max_tokens_total=500)
    late.start()
    with pytest.raises(RunFileBusy, match="changed its budgets"):
        late.ended.result(60)
    late.join()
    assert kept_budgets(path).budgets == Budgets(max_tokens_total=500)


@pytest.mark.parametrize("name", ["memory", "max_cost", "max_tokens_total", "concurrency", "workers"])
def test_none_is_an_option_and_nothing_else_of_that_kind(name: str):
    assert RunOptions(**{name: "none"}).budgets(Budgets(**{name: 3})) == Budgets()
    assert RunOptions().budgets(Budgets(**{name: 3})) == Budgets(**{name: 3})
    with pytest.raises(OptionError):
        RunOptions(**{name: "nothing"})


def test_resume_stops_where_the_run_was_to_stop(tmp_path: Path, forks: Forks):
    """A run stopped at 10,000 tokens went on to 396,000 when it was resumed as `status` and Ctrl-C advise."""
    (tmp_path / "s.yaml").write_text(SURVEY)
    model = 'test,canned_response=hi,price={"input":1,"output":1}'
    words = ("run", "s.yaml", "--model", model, "--n", "3000", "-o", "a.run")
    ran = headrace(tmp_path, *words, "--max-tokens-total", "10000", "--max-cost", "5", "--concurrency", "30")
    assert ran.returncode == 4
    assert "headrace resume a.run --max-tokens-total 20000\n" in headrace(tmp_path, "status", "a.run").stdout
    again = headrace(tmp_path, "resume", "a.run", "--memory", "60%")
    assert (again.returncode, again.stdout) == (4, "")
    assert tokens_in(tmp_path / "a.run") <= 10_000
    status = headrace(tmp_path, "status", "a.run").stdout
    assert "9,999 of 10,000 tokens" in status
    assert "$0.01 of $5.00" in status
    assert "concurrency 30, memory 60%" in status
    kept = json.loads(headrace(tmp_path, "status", "a.run", "--json").stdout)["budgets"]
    assert kept == {
        "memory": "60%", "max_cost": 5.0, "max_tokens_total": 10_000, "concurrency": 30, "workers": None,
    }  # fmt: skip
    assert headrace(tmp_path, "resume", "a.run", "--max-tokens-total", "none").returncode == 0
    assert kept_budgets(tmp_path / "a.run").budgets == Budgets(memory="60%", max_cost=5.0, concurrency=30)


def test_a_tuned_concurrency_is_kept_also_when_the_run_is_killed(tmp_path: Path, forks: Forks):
    (tmp_path / "s.yaml").write_text(SURVEY)
    path = tmp_path / "a.run"
    with live(tmp_path, *endless("a.run")) as run:
        run.state_once(path)
        assert told(tmp_path, "tune", "a.run", "--concurrency", "9")["concurrency"] == 9
        until(lambda: kept_budgets(path).budgets.concurrency == 9, "the file to keep it", every_s=0.02)
        run.kill()
    with live(tmp_path, "resume", "a.run") as resumed:
        assert resumed.state_once(path, done=20).concurrency == 9


def test_large_replies_know_of_each_commit_while_it_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real, seen = Journal.commit, list[bool]()

    def commit(*arguments: Any) -> None:
        seen.append(WITHIN_BUDGETS.awaits_a_commit)
        real(*arguments)

    monkeypatch.setattr(Journal, "commit", commit)
    a_job(3).run(tmp_path / "a.run")
    assert True in seen
    assert not WITHIN_BUDGETS.awaits_a_commit
