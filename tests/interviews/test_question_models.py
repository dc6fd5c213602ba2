"""A question with a model of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import Agent, AgentList, Job, Model, ModelList, QuestionFreeText, Results, Survey
from headrace.errors import ListError, ModelUnusable, NotConfirmed
from headrace.models.provider import Request
from tests.models.server import HostileServer


def free(name: str, model: Model | None = None) -> QuestionFreeText:
    return QuestionFreeText(question_name=name, question_text="Well?", model=model)


def canned(text: str, name: str = "test", **parameters: object) -> Model:
    return Model(name, service_name="test", canned_response=text, **parameters)


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


def behind_http(server: HostileServer, **parameters: object) -> Model:
    return Model("m", base_url=server.url, service_name="openai_compatible", **parameters)


async def shout(request: Request) -> str:
    return request.question_name.upper()


@pytest.mark.parametrize("workers", [None, 2])
def test_its_calls_go_to_that_model_at_its_price_and_ordinals_stay(workers: int | None, tmp_path: Path):
    dear = canned("own", price={"input": 0.0, "output": 1000.0})
    survey = Survey([free("a"), free("b", dear), free("c", Model.from_function(shout)), free("d", dear)])
    models = ModelList([canned("one", "m1", price={"input": 0.0, "output": 0.0}), canned("two", "m2")])
    job = survey.by(AgentList.from_list("n", range(3)), models)
    assert (len(job), job.shape(1).model, [m.name for m in job.called_models]) == (6, 2, ["m1", "m2", "test", "shout"])
    with job.run(tmp_path / "a.run", workers=workers) as results:
        answers = [(r.model.name, *r.answer.values()) for r in results]
        assert answers == [("m1", "one", "own", "C", "own"), ("m2", "two", "own", "C", "own")] * 3
        assert results[0].costs == {"a": 0.0, "b": 0.001, "c": None, "d": 0.001}


def test_a_job_needs_no_other_model_where_every_question_has_one(tmp_path: Path):
    with Survey([free("a", canned("own"))]).run(tmp_path / "a.run") as results:
        assert results[0].answer == {"a": "own"}
    with pytest.raises(ListError, match="has no model"):
        Survey([free("a", canned("own")), free("b")]).run(tmp_path / "b.run")


def test_answers_of_the_job_s_model_are_journaled_while_a_question_s_own_model_is_waited_for(
    server: HostileServer, tmp_path: Path
):
    server.behave("401")
    survey = Survey([free("a"), free("b", behind_http(server))])
    job = survey.by(AgentList.from_list("n", range(40)), canned("one"))
    with pytest.raises(ModelUnusable, match="0 of 40 interviews are done"):
        job.run(tmp_path / "a.run")
    server.behave("ok")
    with job.run(tmp_path / "a.run") as results:
        assert (len(results), results.stats().failed, results[0].answer["a"]) == (40, 0, "one")


def test_a_file_s_question_models_are_claims_as_its_other_models_are(
    server: HostileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    job = Survey([free("a", behind_http(server))]).by(AgentList.from_list("n", range(2)), canned("one"))
    job.run(tmp_path / "a.run", limit=1)
    calls = server.calls
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "somebody else"))
    with pytest.raises(NotConfirmed, match=server.url):
        Job.open(tmp_path / "a.run").run()
    assert server.calls == calls
    Job.open(tmp_path / "a.run", allow=[server.url]).run()
    with Results.open(tmp_path / "a.run") as results:
        assert len(results) == 2


def test_a_survey_keeps_its_question_s_models_when_it_is_stored():
    survey = Survey([free("a", canned("own"))])
    assert Survey.from_row(survey.to_row())["a"].model == canned("own")
    assert survey.by(Agent(), canned("x")).identity() != Survey([free("a")]).by(Agent(), canned("x")).identity()
