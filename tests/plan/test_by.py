"""What `by` means: any mix, any order, several times."""

import copy
import pickle

import pytest

from headrace import (
    Agent,
    AgentList,
    HeadraceWarning,
    Job,
    Jobs,
    Model,
    ModelList,
    QuestionFreeText,
    Scenario,
    ScenarioList,
    Survey,
    edsl_names,
)
from headrace.errors import ListError, OptionError, SurveyError

ASK = QuestionFreeText(question_name="q", question_text="Well?")
ONE, TWO = Model("test", canned_response="1"), Model("test", canned_response="2")


@pytest.fixture(autouse=True)
def _warned_of_nothing_yet(monkeypatch):
    monkeypatch.setattr(edsl_names, "_said", set())


def test_a_question_alone_is_asked(tmp_path):
    results = ASK.by(Model("test", canned_response="Fine")).run(tmp_path / "a.run")
    assert [result.answer["q"] for result in results] == ["Fine"]


def test_a_mix_in_any_order_is_taken_apart_by_kind():
    job = ASK.by(ONE, AgentList([Agent({"a": 1})]), {"s": 1}, TWO, Scenario({"s": 2}))
    assert (len(job.agents), len(job.scenarios), len(job.models), len(job)) == (1, 2, 2, 4)
    assert job.identity() == ASK.by(Scenario({"s": 1}), {"s": 2}).by([Agent({"a": 1})]).by(ONE, TWO).identity()


def test_an_empty_by_is_a_job_too():
    assert len(ASK.by().by(ONE)) == 1


def test_a_second_scenario_list_crosses_with_the_first():
    cities = ScenarioList.from_list("city", ["Oslo", "Lima"])
    job = ASK.by(cities).by(ScenarioList.from_list("year", [1, 2])).by(ONE)
    assert [dict(each) for each in job.scenarios] == [
        {"city": "Oslo", "year": 1},
        {"city": "Oslo", "year": 2},
        {"city": "Lima", "year": 1},
        {"city": "Lima", "year": 2},
    ]
    assert next(iter(job.by({"city": "Rome"}).scenarios)) == {"city": "Rome", "year": 1}


def test_a_second_agent_list_crosses_and_keeps_both_traits():
    job = ASK.by(Agent({"age": 1}, name="ada"), Agent({"age": 2})).by(Agent({"age": 3, "mood": "calm"}, name="bob"))
    assert [(agent.name, agent.traits) for agent in job.agents] == [
        ("ada", {"age": 1, "age_1": 3, "mood": "calm"}),
        ("bob", {"age": 2, "age_1": 3, "mood": "calm"}),
    ]


def test_later_models_replace_earlier_ones_with_a_warning_and_once():
    with pytest.warns(HeadraceWarning, match=r"replaces the models of an earlier one \(test\).*one call of by") as said:
        job = ASK.by(ONE).by(TWO)
    assert job.models == ModelList([TWO])
    ASK.by(ONE).by(TWO)  # a second warning would be an error here
    assert said[0].filename == __file__


def test_a_job_is_made_like_edsls_jobs_and_by_does_not_change_it():
    assert Jobs is Job
    job = Jobs(survey=Survey([ASK]), agents=AgentList([Agent(), Agent()]), models=[ONE], scenarios=ScenarioList([{}]))
    assert len(job) == 2
    assert len(job.by(Agent(), Agent())) == 4
    assert len(job) == 2
    with pytest.raises(SurveyError, match="cannot be made of 7"):
        Job(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([],), "The list is empty"),
        ((ModelList([]),), "list of models is empty"),
        (("Oslo",), "cannot be made with a str"),
        (("cities.csv",), r'ScenarioList.from_csv\("cities.csv"\), or AgentList.from_csv'),
        (("people.jsonl",), r'AgentList.from_jsonl\("people.jsonl"\)'),
        ((["gpt-4o", "gpt-4o-mini"],), r"begins with a str, 'gpt-4o'. Write Model\(\"gpt-4o\"\)"),
        ((None,), "cannot be made with a NoneType"),
        ((ONE, "gpt-4o"), r"cannot be made with a str, 'gpt-4o'. Write Model\(\"gpt-4o\"\)"),
    ],
)
def test_what_is_none_of_the_three_is_refused(given, said):
    with pytest.raises(ListError, match=said):
        ASK.by(*given)


def test_headrace_model_answers_where_no_model_is_given(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADRACE_MODEL", 'test,canned_response="Well, {yes}",latency_s=0')
    assert ASK.run(tmp_path / "a.run")[0].answer["q"] == "Well, {yes}"
    assert Survey([ASK]).run(tmp_path / "a.run", progress_bar=False)[0].answer["q"] == "Well, {yes}"
    assert Model().parameters == {"canned_response": "Well, {yes}", "latency_s": 0}
    assert Model(temperature=1).parameters["temperature"] == 1
    monkeypatch.setenv("HEADRACE_MODEL", "test,canned_response")
    with pytest.raises(OptionError, match="HEADRACE_MODEL 'test,canned_response'"):
        ASK.by().identity()


def test_without_any_model_the_keyless_ways_are_named(monkeypatch):
    monkeypatch.delenv("HEADRACE_MODEL", raising=False)
    assert len(ASK.by(Agent(), Agent())) == 2
    for ask in (ASK.run, ASK.by().estimate, Model):
        with pytest.raises(ListError, match=r'no model.*Model\("local"\) needs no key.*HEADRACE_MODEL'):
            ask()


def test_a_model_may_be_named_in_edsls_ways():
    assert Model(model="gpt-4o") == Model("gpt-4o") == Model(model_name="gpt-4o") == Model("gpt-4o", "openai")
    assert (Model("gpt-4o").model, Model("gpt-4o").inference_service) == ("gpt-4o", "openai")
    with pytest.raises(ListError, match="named twice"):
        Model("gpt-4o", model="gpt-4")


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("gemini-2.5-flash", "google"),
        ("grok-4", "xai"),
        ("mistral-small-latest", "mistral"),
        ("deepseek-chat", "deepseek"),
    ],
)
def test_a_bare_name_finds_its_service_and_an_address_outweighs_it(name, service):
    assert Model(name).service_name == service
    assert Model(name, base_url="http://localhost:1/v1").service_name == "openai_compatible"


def test_edsls_names_of_services_are_known():
    assert Model("x", service_name="deep_infra").service_name == "deepinfra"


def test_the_known_models_and_services_are_listed_without_a_network(monkeypatch):
    assert {"service": "google"} in list(Model.services())
    assert {"service": "test"} not in list(Model.services())
    assert Model("gemini-2.5-pro") in Model.available("gemini")
    assert {model.service_name for model in Model.available(service_name="openai")} == {"openai"}
    shown = Model.available("claude", output_format="scenario_list")
    assert next(iter(shown)).keys() == {"model_name", "service_name"}
    monkeypatch.setenv("XAI_API_KEY", "k")
    at_hand = {model.service_name for model in Model.available(local_only=True)}
    assert {"xai", "test", "local"} <= at_hand
    with pytest.raises(ListError, match="Did you mean 'openai'"):
        Model.available(service_name="openay")
    with pytest.raises(OptionError, match=r"no option 'sevice_name'\. Did you mean 'service_name'"):
        Model.available(sevice_name="openai")
    with pytest.warns(HeadraceWarning, match="force_refresh= of Model.available has no effect"):
        Model.available(force_refresh=True)


def test_a_models_parameters_are_attributes_and_edsls_words_are_ours():
    model = Model("gpt-4o", temperature=0.7, rpm=10, tpm=20, skip_api_key_check=True)
    assert (model.temperature, model.requests_per_minute, model.tokens_per_minute) == (0.7, 10, 20)
    assert "skip_api_key_check" not in model.parameters
    with pytest.raises(AttributeError, match="no attribute 'temprature'"):
        _ = model.temprature
    with pytest.raises(ListError, match="given twice"):
        Model("gpt-4o", rpm=1, requests_per_minute=2)
    assert pickle.loads(pickle.dumps(model)) == copy.deepcopy(model) == model


def test_the_test_model_answers_and_fails_as_edsls_does(tmp_path):
    echo = Model("test", func=lambda user_prompt, system_prompt, files_list: f"{len(files_list)} {user_prompt[:4]}")
    assert ASK.by(echo).run(tmp_path / "a.run")[0].answer["q"] == "0 Well"
    failed = ASK.by(Model("test", throw_exception=True, temperature=1)).run(tmp_path / "b.run")
    assert failed[0].answer["q"] is None
    assert "throw_exception" in next(iter(failed.failed())).message
