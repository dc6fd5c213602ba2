import re
import subprocess
import sys

import pytest

from headrace import Model, QuestionFreeText, QuestionNumerical, Survey
from headrace.errors import ListError
from headrace.models.services import provider_for
from headrace.survey.known_services import SERVICES, key_names
from tests.models.asking import a_request, ask


@pytest.fixture(autouse=True)
def _all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in key_names():
        monkeypatch.setenv(name, "a-key")


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("test", "test"),
        ("local", "local"),
        ("gpt-4o", "openai"),
        ("o1", "openai"),
        ("o3-mini", "openai"),
        ("chatgpt-4o-latest", "openai"),
        ("ft:gpt-4o:me", "openai"),
        ("claude-sonnet-4-5", "anthropic"),
        ("llama-3", "llama-3"),
    ],
)
def test_a_model_s_name_tells_its_service(name, service):
    assert Model(name).service_name == service


def test_an_address_alone_makes_a_compatible_service():
    assert Model("llama-3", base_url="http://localhost:8000/v1").service_name == "openai_compatible"


def test_a_given_service_comes_first():
    assert Model("gpt-oss", service_name="groq").service_name == "groq"


def test_models_in_older_run_files_are_the_same():
    row = b'{"name":"test","service":"test","parameters":{"canned_response":["Good"]}}'
    assert Model("test", canned_response="Good").to_row() == row
    assert Model.from_row(row) == Model("test", canned_response="Good")
    assert Model("tset").to_row() == b'{"name":"tset","service":"tset","parameters":{}}'


def test_an_unknown_model_is_an_error_that_lists_the_services():
    with pytest.raises(ListError, match=r"service_name=\.\.\.") as caught:
        provider_for(Model("llama-3"))
    for service in ("openai_compatible", "anthropic", "ollama", "test"):
        assert service in caught.value.fix
    with pytest.raises(ListError, match="Did you mean 'groq'"):
        provider_for(Model("llama-3", service_name="grok"))


@pytest.mark.parametrize("service", sorted(set(SERVICES) - {"openai_compatible"}))
def test_every_known_service_makes_a_provider(service):
    assert not provider_for(Model("m", service_name=service)).is_instant


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({}, "needs a base_url"),
        ({"base_url": "localhost:8000"}, "is not an address"),
        ({"base_url": "ftp://host/v1"}, "is not an address"),
        ({"base_url": "http://host:99999/v1"}, "is not an address"),
        ({"base_url": []}, "needs a base_url"),
        ({"base_url": 7}, "is not an address"),
        ({"base_url": "http://h", "temprature": 1}, "Did you mean 'temperature'"),
        ({"base_url": "http://h", "temperature": "hot"}, "must be a number"),
        ({"base_url": "http://h", "temperature": float("nan")}, "must be a number"),
        ({"base_url": "http://h", "max_tokens": 0}, "whole number"),
        ({"base_url": "http://h", "logprobs": 0}, "whole number"),
        ({"base_url": "http://h", "stop": []}, "list of texts"),
        ({"base_url": "http://h", "stream": 1}, "True or False"),
        ({"base_url": "http://h", "timeout_s": 0}, "must be a number"),
        ({"base_url": "http://h", "extra_body": {"messages": []}}, "without 'messages'"),
        ({"base_url": "http://h", "extra_headers": {"X": "a\nb"}}, "dict of texts"),
        ({"base_url": "http://h", "extra_headers": ["X"]}, "dict of texts"),
    ],
)
def test_parameters_are_checked_before_anything_runs(parameters, told):
    with pytest.raises(ListError, match=told):
        provider_for(Model("m", service_name="openai_compatible", **parameters))


def test_anthropic_has_no_seed():
    with pytest.raises(ListError, match="has no parameter 'seed'"):
        provider_for(Model("claude-x", seed=1))


def test_openai_s_own_models_get_the_newer_name_for_max_tokens(server):
    ask(Model("gpt-4o", base_url=server.url, max_tokens=5))
    assert server.last.body["max_completion_tokens"] == 5
    assert "max_tokens" not in server.last.body


def test_a_field_can_be_taken_out(server):
    ask(Model("m", base_url=server.url, stream=True, extra_body={"stream_options": None}))
    assert "stream_options" not in server.last.body


def test_an_address_keeps_its_query(server):
    ask(Model("m", base_url=f"{server.url}/?api-version=2024"))
    assert server.last.path == "/v1/chat/completions?api-version=2024"


def test_an_address_may_be_the_whole_one(server):
    ask(Model("m", base_url=f"{server.url}/chat/completions"))
    assert server.last.path == "/v1/chat/completions"


def test_a_proxy_of_the_environment_is_used(server, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (reply,) = ask(Model("m", base_url="http://no-such-host.invalid/v1"))
    assert reply.text == "Good"
    assert server.last.path == "http://no-such-host.invalid/v1/chat/completions"
    (reply,) = ask(Model("m", base_url=server.url))
    assert server.last.path == "/v1/chat/completions"


def test_a_job_without_a_model_says_which_there_are(monkeypatch):
    job = Survey([QuestionFreeText(question_name="q", question_text="Well?")]).by({"a": 1})
    with pytest.raises(ListError, match="no model") as caught:
        job.estimate()
    assert 'Model("local")' in caught.value.fix
    assert "found ANTHROPIC_API_KEY" in caught.value.fix
    for name in key_names():
        monkeypatch.delenv(name)
    with pytest.raises(ListError, match="none is set of") as caught:
        job.estimate()
    assert "OPENAI_API_KEY" in caught.value.fix
    assert "a-key" not in str(caught.value)


def test_a_run_of_the_test_model_loads_no_http_client(tmp_path):
    program = """
import sys
from headrace import Model, QuestionFreeText, Survey
survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
survey.by(Model("test", canned_response="x")).run(sys.argv[1])
print([name for name in ("aiohttp", "yarl", "urllib.request") if name in sys.modules])
"""
    command = [sys.executable, "-c", program, str(tmp_path / "a.run")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_a_survey_is_run_over_http(server, tmp_path):
    survey = Survey(
        [
            QuestionFreeText(question_name="why", question_text="Why {{ scenario.city }}?"),
            QuestionNumerical(question_name="rating", question_text="Rate it.", min_value=0, max_value=10),
        ]
    )
    server.behave("ok", answer="7")
    model = Model("m", service_name="openai_compatible", base_url=server.url)
    results = survey.by([{"city": city} for city in ("Oslo", "Lima")]).by(model).run(tmp_path / "a.run")
    assert [result.answer for result in results] == [{"why": "7", "rating": 7}] * 2
    assert server.calls == 4
    assert server.script.prompts.total() == 4


def test_a_prompt_that_fits_no_context_costs_only_its_own_interview(server, tmp_path):
    server.behave(lambda call: "context" if "Oslo" in call.prompt else "ok")
    survey = Survey([QuestionFreeText(question_name="why", question_text="Why {{ scenario.city }}?")])
    job = survey.by([{"city": city} for city in ("Oslo", "Lima", "Rome")])
    results = job.by(Model("m", base_url=server.url)).run(tmp_path / "a.run")
    assert [result.answer["why"] for result in results] == [None, "Good", "Good"]
    assert server.calls == 3


def test_a_request_is_what_the_server_reads(server):
    ask(Model("m", base_url=server.url), a_request("Well?", system=""))
    assert server.last.body == {"model": "m", "messages": [{"role": "user", "content": "Well?"}]}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gtp-4o", "gpt-4o"), ("gpt4o", "gpt-4o"), ("GPT-4o", "gpt-4o"), ("cluade-sonnet-4-5", "claude-sonnet-4-5"),
        ("tset", "test"), ("locla", "local"),
    ],
)  # fmt: skip
def test_a_mistyped_model_is_met_with_the_name_that_was_meant(name, meant):
    with pytest.raises(ListError, match=f"No service is known.*Did you mean '{re.escape(meant)}'[?] Name its service"):
        provider_for(Model(name))


def test_a_mistyped_service_is_met_with_the_name_that_was_meant():
    with pytest.raises(ListError, match=r"there is no service 'opnai'\. Did you mean 'openai'\? There are anthropic, "):
        provider_for(Model("gpt-4o", service_name="opnai"))


def test_an_engine_imports_the_http_client_in_a_thread():
    program = """
import asyncio, sys, threading
from headrace.models.services import load_service
from headrace.survey.model import Model

importing = set()

class Recorder:
    def find_spec(self, name, path=None, target=None):
        if name == "aiohttp":
            importing.add(threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Recorder())
asyncio.run(load_service(Model("gpt-4o")))
print(importing, "aiohttp" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "{False} True\n"
