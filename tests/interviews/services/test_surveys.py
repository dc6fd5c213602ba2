"""Whole runs against a model server on loopback that misbehaves by script."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    AgentList,
    Job,
    Model,
    ModelList,
    QuestionFreeText,
    QuestionMultipleChoice,
    Results,
    Survey,
)
from headrace.errors import BudgetSpent, ModelUnusable, OptionError
from tests.models.behaviours import Call
from tests.models.server import HostileServer, Storm

PRICE = {"input": 1000.0, "output": 2000.0}  # a tenth of a cent a token: sums that can be seen


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


def a_model(server: HostileServer, name: str = "m", **parameters: Any) -> Model:
    return Model(name, base_url=server.url, service_name="openai_compatible", **parameters)


def a_job(people: int, *models: Model) -> Job:
    asked = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ agent.n }}?")])
    return asked.by(AgentList.from_list("n", range(people)), ModelList(models))


def test_a_survey_of_a_real_endpoint_is_answered_counted_and_paid_for(server: HostileServer, tmp_path: Path):
    results = a_job(50, a_model(server, price=PRICE)).run(tmp_path / "a.run")
    stats = results.stats()
    assert (stats.interviews, stats.failed, stats.calls) == (50, 0, 50)
    assert server.calls == 50
    assert stats.cost == pytest.approx((stats.input_tokens * 1000 + stats.output_tokens * 2000) / 1e6)
    assert stats.cost > 0
    first = results[0]
    assert first.tokens["q"] == (11, 3, 4, 2)
    assert first.costs["q"] == pytest.approx(stats.cost / 50)


def test_the_cost_of_a_model_without_a_price_is_not_zero(server: HostileServer, tmp_path: Path):
    results = a_job(2, a_model(server)).run(tmp_path / "a.run")
    assert results.stats().cost is None
    assert results[0].costs == {"q": None}


def test_another_run_pays_nothing_for_what_the_cache_has(server: HostileServer, tmp_path: Path):
    a_job(20, a_model(server, price=PRICE)).run(tmp_path / "a.run")
    again = a_job(30, a_model(server, price=PRICE)).run(tmp_path / "b.run").stats()
    assert (again.interviews, again.cache_hits, again.calls) == (30, 20, 10)
    assert server.calls == 30
    for options in ({"cache": False}, {"fresh": True}):
        a_job(20, a_model(server)).run(tmp_path / f"{next(iter(options))}.run", **options)
    assert server.calls == 70
    a_job(20, a_model(server, temperature=0.5)).run(tmp_path / "d.run")
    assert server.calls == 90


@pytest.mark.parametrize("name", ["max_tokens_total", "max_cost"])
def test_answers_from_the_cache_do_not_make_the_others_look_cheaper(name: str, server: HostileServer, tmp_path: Path):
    first = a_job(15, a_model(server, price=PRICE)).run(tmp_path / "a.run").stats()
    most = 4 * (first.tokens if name == "max_tokens_total" else first.cost or 0.0)
    with pytest.raises(BudgetSpent):
        a_job(200, a_model(server, price=PRICE)).run(tmp_path / "b.run", **{name: most})
    stats = Results.open(tmp_path / "b.run").stats()
    assert stats.cache_hits == 15
    assert ((stats.tokens if name == "max_tokens_total" else stats.cost) or 0.0) <= most * 1.001


def test_a_spent_budget_tells_no_cost_that_is_not_known(server: HostileServer, tmp_path: Path):
    with pytest.raises(BudgetSpent, match=r"\([\d,]+ tokens\)"):
        a_job(200, a_model(server)).run(tmp_path / "a.run", max_tokens_total=500)


def test_identical_respondents_of_one_run_are_each_asked(server: HostileServer, tmp_path: Path):
    asked = Survey([QuestionFreeText(question_name="q", question_text="Who?")])
    asked.by(AgentList.from_list("n", [1] * 5), a_model(server)).run(tmp_path / "a.run", concurrency=1)
    assert server.calls == 5


def test_a_wrong_key_stops_its_own_model_with_one_message_and_no_other(server: HostileServer, tmp_path: Path):
    asked_for: list[str] = []

    def one_key_is_wrong(call: Call) -> str:
        asked_for.append(call.body["model"])
        return "401" if asked_for[-1] == "bad" else "ok"

    server.behave(one_key_is_wrong)
    job = a_job(300, a_model(server, "bad"), a_model(server, "good"))
    with pytest.raises(ModelUnusable, match=r"bad at .* answered 401.*300 of 600 interviews are done"):
        job.run(tmp_path / "a.run", concurrency=20)
    assert 1 <= asked_for.count("bad") <= 20
    assert asked_for.count("good") == 300
    assert Results.open(tmp_path / "a.run").stats().failed == 0
    server.behave("ok")
    assert len(job.run(tmp_path / "a.run")) == 600


def test_a_storm_of_429_costs_no_interview_and_few_calls(server: HostileServer, tmp_path: Path):
    server.behave(Storm("429-seconds", 1.6, after_calls=100), latency=lambda _: 0.01)
    stats = a_job(400, a_model(server)).run(tmp_path / "a.run", concurrency=50).stats()
    assert (stats.interviews, stats.failed) == (400, 0)
    assert 400 < server.calls <= 400 + 60
    (endpoint,) = stats.endpoints
    assert (endpoint.model, endpoint.circuit, endpoint.closed_reason) == ("m", "closed", None)
    assert endpoint.calls == server.calls
    assert endpoint.busy == server.calls - 400


def test_a_network_that_is_away_is_waited_for(tmp_path: Path):
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    model = Model("m", base_url=f"http://127.0.0.1:{port}/v1", service_name="openai_compatible")
    is_noticed = threading.Event()

    def come_back() -> None:
        is_noticed.wait(30)
        server.start()

    server = _Later(port)
    threading.Thread(target=come_back, daemon=True).start()
    from headrace.interviews.delivery import Delivery
    from headrace.limits import RunOptions

    try:
        with Delivery(a_job(30, model), tmp_path / "a.run", RunOptions(), listening=False) as delivery:
            delivery.start()
            for progress in delivery.progress(0.1):
                if "m away since" in progress.notice:
                    is_noticed.set()
            delivery.finish()
    finally:
        server.stop()
    assert is_noticed.is_set()
    stats = Results.open(tmp_path / "a.run").stats()
    assert (stats.interviews, stats.failed) == (30, 0)


class _Later:
    """A server that begins when it is told to."""

    def __init__(self, port: int) -> None:
        self._server = HostileServer(port)
        self._is_up = threading.Event()

    def start(self) -> None:
        self._server.__enter__()
        self._is_up.set()

    def stop(self) -> None:
        assert self._is_up.wait(60)
        self._server.__exit__(None, None, None)


@pytest.mark.parametrize("limit", [{"max_cost": 1.0}, {"max_tokens_total": 500}])
def test_a_budget_stops_the_run_before_it_is_passed_and_a_larger_one_goes_on(
    server: HostileServer, tmp_path: Path, limit: dict[str, Any]
):
    job = a_job(200, a_model(server, price=PRICE))
    with pytest.raises(BudgetSpent, match="of 200"):
        job.run(tmp_path / "a.run", **limit)
    stats = Results.open(tmp_path / "a.run").stats()
    assert 0 < stats.interviews < 200
    assert stats.cost is not None
    assert stats.cost <= limit.get("max_cost", 1e9) * 1.05
    assert stats.tokens <= limit.get("max_tokens_total", 1e9) * 1.05
    with pytest.raises(BudgetSpent):
        job.run(tmp_path / "a.run", **limit)  # the file remembers: starting again gives nothing more to spend
    assert len(Results.open(tmp_path / "a.run")) == stats.interviews
    lifted: dict[str, Any] = dict.fromkeys(limit, "none")
    assert len(job.run(tmp_path / "a.run", **lifted)) == 200


def test_a_cost_limit_needs_a_price(server: HostileServer, tmp_path: Path):
    with pytest.raises(OptionError, match="none is known of m"):
        a_job(2, a_model(server)).run(tmp_path / "a.run", max_cost=1.0)


@pytest.mark.parametrize(("behaviour", "cause"), [("cut-off", "invalid answer"), ("refusal", "no answer")])
def test_a_cut_off_or_refused_answer_is_no_answer(server: HostileServer, tmp_path: Path, behaviour: str, cause: str):
    server.behave(behaviour)
    results = a_job(2, a_model(server)).run(tmp_path / "a.run")
    assert {failed.cause for failed in results.failed()} == {cause}
    server.behave("ok")
    assert a_job(2, a_model(server)).run(tmp_path / "b.run").stats().cache_hits == 0


def test_options_come_back_through_a_schema(server: HostileServer, tmp_path: Path):
    server.behave("ok", answer="Good")
    asked = Survey([QuestionMultipleChoice(question_name="q", question_text="?", question_options=["Good", "Bad"])])
    assert asked.by(a_model(server)).run(tmp_path / "a.run")[0].answer == {"q": "Good"}
    assert server.last.body["response_format"]["type"] == "json_schema"
