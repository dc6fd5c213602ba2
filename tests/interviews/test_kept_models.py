"""A run file keeps the settings of its models that are no part of the job, as they were given last."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from headrace import AgentList, Engine, Job, Model, ModelList, QuestionFreeText, Results, Survey
from headrace.errors import BudgetSpent, ModelUnusable, NotConfirmed, PlanMismatch
from headrace.models.provider import Request
from headrace.store.connections import open_writer
from headrace.store.run_file.checksums import plan_checksum
from headrace.store.run_file.stored_job.kept_models import changed_models, write_models
from headrace.store.transactions import transaction
from headrace.store.whole_files import verify
from tests.cli.forked import headrace
from tests.forks import Forks
from tests.models.behaviours import Call
from tests.models.server import HostileServer

CHEAP = {"input": 2.5, "output": 10.0}
DEAR = {"input": 2500.0, "output": 10_000.0}
VARIABLE = "KEY_OF_THE_LAB"


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


def survey(**settings: Any) -> Survey:
    return Survey([QuestionFreeText(question_name="q", question_text="Who is {{ agent.n }}?", **settings)])


def a_job(*models: Model, people: int = 4) -> Job:
    return survey().by(AgentList.from_list("n", range(people))).by(ModelList(models))


def canned(text: str = "me", **parameters: Any) -> Model:
    return Model("test", canned_response=text, **parameters)


def at(server: HostileServer, **parameters: Any) -> Model:
    return Model("m", base_url=server.url, service_name="openai_compatible", **parameters)


def kept(path: Path) -> list[dict[str, Any]]:
    return [model.parameters for model in Job.open(path).models]


def costs(path: Path) -> list[float | None]:
    with Results.open(path) as results:
        return [result.costs["q"] for result in results]


@pytest.fixture
def wants_the_key(server: HostileServer, monkeypatch: pytest.MonkeyPatch) -> HostileServer:
    monkeypatch.setenv(VARIABLE, "the key 0123456789")

    def answered(call: Call) -> str:
        return "ok" if call.headers.get("authorization") == "Bearer the key 0123456789" else "401"

    server.behave(answered)
    return server


def test_a_later_price_counts_when_the_file_goes_on(tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(canned(price=CHEAP)).run(path, limit=1)
    a_job(canned(price=DEAR)).run(path, limit=2)
    Job.open(path).run()
    first, *others = costs(path)
    assert first is not None
    assert others == [pytest.approx(1000 * first)] * 3
    assert not verify(path).findings


def test_a_budget_holds_at_the_later_price(tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(canned(price=CHEAP), people=40).run(path, limit=1, max_cost=0.5)
    a_job(canned(price=DEAR), people=40).run(path, limit=2)
    with pytest.raises(BudgetSpent):
        Job.open(path).run()
    assert 0.25 < sum(cost or 0 for cost in costs(path)) <= 0.5


def test_a_price_that_a_later_run_leaves_out_is_left_out_of_the_file(tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(canned(price=DEAR)).run(path, limit=1)
    a_job(canned()).run(path, limit=2)
    assert kept(path) == [{"canned_response": "me"}]


def test_the_commands_keep_what_was_given_last(tmp_path: Path, forks: Forks):
    (tmp_path / "slow.yaml").write_text("questions: [{kind: free_text, question_name: q, question_text: 'Well?'}]\n")
    (tmp_path / "people.csv").write_text("n\n1\n2\n3\n4\n")

    def run(price: dict[str, float], *words: str) -> None:
        model = f"test,canned_response=Good,price={json.dumps(price)}"
        asked = ("run", "slow.yaml", "--agents", "people.csv", "--model", model, "-o", "a.run", *words)
        assert headrace(tmp_path, *asked).returncode == 0

    run(CHEAP, "--limit", "1", "--max-cost", "5")
    run(DEAR, "--limit", "2")
    assert headrace(tmp_path, "resume", "a.run").returncode == 0
    first, *others = costs(tmp_path / "a.run")
    assert first is not None
    assert others == [pytest.approx(1000 * first)] * 3


def test_a_study_that_was_changed_gives_its_models_anew(tmp_path: Path):
    study, path = tmp_path / "study.yaml", tmp_path / "a.run"
    for price, limit in ((CHEAP, 1), (DEAR, 2)):
        a_job(canned(price=price)).save(study)
        Job.load(study).run(path, limit=limit)
    assert kept(path) == [{"canned_response": "me", "price": DEAR}]


def test_a_key_variable_that_was_given_later_is_used_and_not_asked_about(wants_the_key: HostileServer, tmp_path: Path):
    path = tmp_path / "a.run"
    with pytest.raises(ModelUnusable):
        a_job(at(wants_the_key)).run(path)
    a_job(at(wants_the_key, api_key_env=VARIABLE)).run(path, limit=3)
    assert Job.open(path).run().stats().interviews == 4


def test_what_a_file_keeps_later_is_a_claim_to_others(
    wants_the_key: HostileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "a.run"
    with pytest.raises(ModelUnusable):
        a_job(at(wants_the_key)).run(path)
    a_job(at(wants_the_key, api_key_env=VARIABLE, price=DEAR)).run(path, limit=3)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "somebody else"))
    calls = wants_the_key.calls
    with pytest.raises(NotConfirmed, match=VARIABLE):
        Job.open(path).run()
    assert wants_the_key.calls == calls


def test_later_limits_and_time_outs_are_those_that_the_file_goes_on_with(server: HostileServer, tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(at(server)).run(path, limit=1)
    a_job(at(server, requests_per_minute=600, timeout_s=30)).run(path, limit=2)
    (model,) = Job.open(path).models
    assert (model.requests_per_minute, model.timeout_s) == (600, 30)


def test_a_job_from_a_file_changes_nothing_in_it(tmp_path: Path):
    path, copy = tmp_path / "a.run", tmp_path / "copy.run"
    a_job(canned(price=CHEAP)).run(path, limit=1)
    before = Job.open(shutil.copy(path, copy))
    a_job(canned(price=DEAR)).run(path, limit=2)
    before.run(path, limit=3)
    assert kept(path)[0]["price"] == DEAR
    before.by(canned(price=CHEAP)).run(path)  # which the program gives
    assert kept(path)[0]["price"] == CHEAP


def test_a_file_whose_settings_are_the_same_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, written = tmp_path / "a.run", list[object]()

    def note(*given: object) -> None:
        written.append(given)

    monkeypatch.setattr("headrace.store.run_file.run_file.write_models", note)
    monkeypatch.setattr("headrace.store.run_file.run_file.write_budgets", note)
    for limit in (1, 2, 3):
        a_job(canned(price=CHEAP, rpm=5)).run(path, limit=limit)
    Job.open(path).run()
    assert not written


def test_the_plan_its_ordinals_and_its_positions_stay(tmp_path: Path):
    path, models = tmp_path / "a.run", ("one", "two", "three")
    a_job(*map(canned, models)).run(path, limit=5)
    digest, before = Job.open(path).identity(), [(r.ordinal, r.answer["q"]) for r in Results.open(path)]
    a_job(canned("one"), canned("two", price=DEAR), canned("three", rpm=9)).run(path, limit=6)
    assert [given.get("price") for given in kept(path)] == [None, DEAR, None]
    assert kept(path)[2]["requests_per_minute"] == 9
    assert Job.open(path).identity() == digest
    with Results.open(path) as results:
        assert [(r.ordinal, r.answer["q"]) for r in results][:5] == before
    with pytest.raises(PlanMismatch):
        a_job(canned("one"), canned("three"), canned("two")).run(path)
    assert not verify(path).findings


def test_an_extended_plan_keeps_what_was_given_with_it(tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(canned(price=CHEAP)).run(path)
    a_job(canned(price=DEAR), people=6).run(path, extend=True, limit=5)
    Job.open(path).run()
    assert [round((cost or 0) * 1e6) > 1000 for cost in costs(path)] == [False] * 4 + [True] * 2
    a_job(canned(price=CHEAP), people=6).run(path, n=2, limit=7)
    assert kept(path)[0]["price"] == CHEAP
    assert not verify(path).findings


def test_merged_files_keep_the_settings_of_the_first(tmp_path: Path, forks: Forks):
    for name, price in (("a.run", DEAR), ("b.run", CHEAP)):
        a_job(canned(price=CHEAP)).run(tmp_path / name, limit=1)
        a_job(canned(price=price)).run(tmp_path / name, limit=2)
    assert headrace(tmp_path, "merge", "a.run", "b.run", "-o", "both.run").returncode == 0
    assert kept(tmp_path / "both.run")[0]["price"] == DEAR
    a_job(canned(price=CHEAP)).run(tmp_path / "both.run", limit=3)
    assert kept(tmp_path / "both.run")[0]["price"] == CHEAP
    assert not verify(tmp_path / "both.run").findings


async def shout(request: Request) -> str:
    return request.question_name.upper()


def test_a_model_that_is_a_function_is_kept_by_its_reference(tmp_path: Path):
    path, model = tmp_path / "a.run", Model.from_function(shout)
    a_job(model).run(path, limit=1)
    (before,) = Job.open(path).models
    model.parameters["price"] = DEAR
    a_job(model).run(path, limit=2)
    (after,) = Job.open(path).models
    assert (after.price, after.function.reference) == (DEAR, before.function.reference)
    assert a_job(model).run(path).stats().interviews == 4


def test_a_key_that_a_function_gives_is_kept_by_its_reference_alone(wants_the_key: HostileServer, tmp_path: Path):
    path = tmp_path / "a.run"
    with pytest.raises(ModelUnusable):
        a_job(at(wants_the_key)).run(path)
    a_job(at(wants_the_key, api_key=lambda: "the key 0123456789")).run(path, limit=2)
    assert b"the key 0123456789" not in path.read_bytes()
    assert "lambda" in repr(kept(path)[0]["api_key"])


def test_an_address_file_that_moved_is_found_where_it_was_last(server: HostileServer, tmp_path: Path):
    path, places = tmp_path / "a.run", [tmp_path / "one", tmp_path / "two"]
    for limit, place in enumerate(places, 1):
        place.mkdir()
        (place / "servers.txt").write_text(f"{server.url}\n")
        model = Model("m", base_url=f"@{place / 'servers.txt'}", service_name="openai_compatible")
        a_job(model).run(path, limit=limit)
    shutil.rmtree(places[0])
    assert Job.open(path).run().stats().interviews == 4


def test_a_question_s_own_model_is_another_job_with_another_price(tmp_path: Path):
    path = tmp_path / "a.run"
    people = AgentList.from_list("n", range(4))
    survey(model=canned(price=CHEAP)).by(people, canned()).run(path, limit=1)
    with pytest.raises(PlanMismatch):
        survey(model=canned(price=DEAR)).by(people, canned()).run(path)


def test_settings_and_budgets_are_kept_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.run"
    a_job(canned(price=CHEAP)).run(path, limit=1, max_cost=0.5)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr("headrace.store.run_file.run_file.write_models", killed)
        with pytest.raises(KeyboardInterrupt):
            a_job(canned(price=DEAR)).run(path, max_cost=500)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'budget.max_cost'").fetchall() == [(0.5,)]
    assert kept(path)[0]["price"] == CHEAP


@pytest.mark.parametrize("read", [Job.open, verify])
def test_a_file_is_read_as_of_one_moment_while_a_run_changes_its_settings(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, changed = tmp_path / "a.run", a_job(canned(price=DEAR))
    a_job(canned(price=CHEAP)).run(path, limit=1)
    with closing(open_writer(path)) as writer:
        writer.execute("PRAGMA journal_mode=WAL").fetchall()

        def checksum_after_a_change(connection: apsw.Connection) -> int:
            with transaction(writer):
                write_models(writer, changed_models(writer, changed))
            return plan_checksum(connection)

        monkeypatch.setattr("headrace.store.run_file.stored_job.plan_check.plan_checksum", checksum_after_a_change)
        found = read(path)
        assert not getattr(found, "findings", None)


async def test_an_engine_keeps_what_its_survey_was_given(tmp_path: Path):
    path = tmp_path / "a.run"
    a_job(canned(price=CHEAP)).run(path, limit=1)
    async with Engine(tmp_path / "engine.run") as engine:
        await engine.run(a_job(canned(price=DEAR)), path)
    assert kept(path)[0]["price"] == DEAR
