import asyncio
import base64
import contextlib
import functools
import logging
import os
import pickle
import subprocess
import sys
import traceback
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from headrace import Model, QuestionFreeText, QuestionMultipleChoice, Results, Survey
from headrace.errors import ListError, ModelUnusable, ProviderError
from headrace.interviews import open_chunks
from headrace.limits import BreakerLimits, EndpointLimits, RetryLimits
from headrace.models import shared_limiters
from headrace.models.keys import read_env_file
from headrace.models.services import provider_for
from headrace.survey.known_services import key_names
from tests.models.asking import a_request, ask, opened, outcome
from tests.models.behaviours import error, http
from tests.models.raw_server import RawCall, RawServer, chat, ok

SECRET = "sk-very-secret-4711-abcdefghijklmnop"
NAME = "HEADRACE_TEST_KEY"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (*key_names(), NAME):
        monkeypatch.delenv(name, raising=False)


def a_model(server, **parameters):
    return Model("m", service_name="openai_compatible", base_url=server.url, **parameters)


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"api_key": SECRET}, "api_key is text"),
        ({"api_key_env": SECRET}, "api_key_env is not the name"),
        ({"api_key_env": "gsk_abcdef0123456789"}, "api_key_env is not the name"),
        ({"base_url": f"https://me:{SECRET}@example.com/v1"}, "user or password"),
        ({"base_url": ["http://a/v1", f"https://example.com/v1?api-key={SECRET}"]}, "holds a secret"),
        ({"extra_headers": {"authorization": f"Bearer {SECRET}"}}, "for secrets"),
        ({"extra_headers": {"X-Api-Key": SECRET}}, "for secrets"),
        ({"extra_body": {"api_key": SECRET}}, "for a secret"),
        ({"extra_body": {"gateway": [{"token": "x"}]}}, "for a secret"),
        ({"extra_body": {"metadata": {"note": f"Bearer {SECRET}"}}}, "holds a secret"),
        ({"base_url": f"https://example.com/{SECRET}/v1"}, "secret in its path"),
        ({"base_url": f"https://example.com/t%2F{SECRET}/v1"}, "secret in its path"),
        ({"base_url": "https://example.com/p/4f9Kd0sLq2Zx7Rt8Wv3Yb6Nm/v1"}, "secret in its path"),
        ({"base_url": "https://example.com/v1?code=abc"}, "holds a secret"),
        ({"base_url": f"https://example.com/v1?tenant={SECRET}"}, "holds a secret"),
        ({"base_url": "https://example.com/v1?auth=abc"}, "holds a secret"),
        ({"extra_headers": {"X-Custom": SECRET}}, "holds a secret"),
        ({"extra_headers": {"X-Custom": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x"}}, "holds a secret"),
        ({"extra_headers": {"X-Custom": "4f9Kd0sLq2Zx7Rt8Wv3Yb6Nm"}}, "holds a secret"),
    ],
)
def test_a_key_written_into_a_model_is_refused_with_the_way_out_and_not_repeated(parameters, told):
    with pytest.raises(ListError, match=told) as caught:
        Model("m", service_name="openai_compatible", **parameters)
    assert "secret-4711" not in str(caught.value)
    assert "gsk_" not in str(caught.value)
    assert "4f9Kd0" not in str(caught.value)


@pytest.mark.parametrize(
    "parameters",
    [
        {"base_url": "https://gateway.ai.cloudflare.com/v1/0123456789abcdef0123456789abcdef/my-gateway/openai"},
        {
            "base_url": "https://my-lab.openai.azure.com/openai/deployments/gpt-4o-mini-2024-07-18?api-version=2024-10-21"
        },
        {"base_url": "https://dbc-a1b2c3d4-e5f6.cloud.databricks.com/serving-endpoints"},
        {"base_url": "https://api.runpod.ai/v2/abc123def456gh/openai/v1"},
        {"base_url": "https://example.com/v1/projects/our-project-2024/locations/europe-west4/endpoints/openapi"},
        {"extra_headers": {"OpenAI-Organization": "org-AbCdEf0123456789AbCdEf01"}},
        {"extra_headers": {"anthropic-beta": "prompt-caching-2024-07-31,output-128k-2025-02-19"}},
        {"extra_headers": {"HTTP-Referer": "https://example.org/our/project", "X-Title": "The survey of 2026"}},
        {"extra_headers": {"X-Trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
        {"extra_body": {"prompt_cache_key": "survey-7", "max_completion_tokens": 5, "metadata": {"code": 7}}},
    ],
)
def test_what_is_no_secret_is_taken(parameters):
    model = Model("m", service_name="openai_compatible", **parameters)
    assert parameters.items() <= model.parameters.items()


@pytest.mark.parametrize(
    "parameters",
    [
        {"base_url": "https://example.com/plainlowercasekey/v1"},
        {"base_url": "https://example.com/v1?tenant=plainlowercasekey"},
        {"extra_headers": {"X-Lab": "plainlowercasekey"}},
        {"extra_body": {"lab": ["plainlowercasekey"]}},
    ],
)
def test_a_key_that_is_known_is_refused_by_its_value_before_a_file_is_made(parameters, monkeypatch, tmp_path):
    monkeypatch.setenv(NAME, "plainlowercasekey")
    given = {"base_url": "https://example.com/v1"} | parameters
    model = Model("m", service_name="openai_compatible", api_key_env=NAME, **given)
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    with pytest.raises(ListError, match="holds its key") as caught:
        survey.by(model).run(tmp_path / "a.run")
    assert "plainlowercasekey" not in str(caught.value)
    assert not (tmp_path / "a.run").exists()


@pytest.mark.parametrize(("service", "header"), [("openai_compatible", "authorization"), ("anthropic", "x-api-key")])
def test_a_key_from_the_environment_is_sent(server, monkeypatch, service, header):
    monkeypatch.setenv(NAME, SECRET)
    ask(Model("m", service_name=service, base_url=server.url, api_key_env=NAME))
    assert server.last.headers[header].endswith(SECRET)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (f"{NAME}={SECRET}", SECRET),
        (f"export {NAME} = '{SECRET}'  # mine", SECRET),
        (f'{NAME}="a # b"', "a # b"),
        (f"{NAME}=abc # a comment", "abc"),
        (f"# {NAME}=abc", None),
        (f"{NAME}_2=abc", None),
        (f"{NAME}=one\n{NAME}=two", "two"),
        ("", None),
    ],
)
def test_a_line_of_an_env_file_is_read(tmp_path, line, value):
    (tmp_path / ".env").write_text(f"OTHER=1\n{line}\n")
    assert read_env_file(tmp_path / ".env", NAME) == value


def test_the_environment_comes_before_the_env_file(server, monkeypatch):
    Path(".env").write_text(f"{NAME}={SECRET}\nOTHER=x\n")
    ask(a_model(server, api_key_env=NAME))
    assert server.last.headers["authorization"] == f"Bearer {SECRET}"
    assert NAME not in os.environ
    monkeypatch.setenv(NAME, "from-the-environment")
    ask(a_model(server, api_key_env=NAME))
    assert server.last.headers["authorization"] == "Bearer from-the-environment"


def test_a_key_from_a_function_is_asked_for_once(server):
    given: list[str] = []

    async def fetch() -> str:
        await asyncio.sleep(0.01)
        given.append(SECRET)
        return SECRET

    async def many() -> None:
        async with opened(a_model(server, api_key=fetch)) as provider:
            await asyncio.gather(*(provider.ask(a_request()) for _ in range(20)))

    asyncio.run(many())
    assert server.last.headers["authorization"] == f"Bearer {SECRET}"
    assert len(given) == 1


def test_a_key_that_has_expired_is_asked_for_again(server):
    keys = iter(["old-key", "new-key", "never"])

    async def fetch() -> str:
        await asyncio.sleep(0)
        return next(keys)

    server.behave(lambda call: "ok" if call.headers["authorization"].endswith("new-key") else "401")
    found = ask(a_model(server, api_key=fetch), a_request(), a_request())
    assert [reply.text for reply in found] == ["Good", "Good"]
    assert server.calls == 3


@pytest.mark.parametrize("given", [None, "", 7, "a\nb", "schlüssel"])
def test_a_function_that_gives_no_key_makes_the_model_unusable(server, given):
    (error,) = ask(a_model(server, api_key=lambda: given))
    assert isinstance(error, ModelUnusable)
    assert server.calls == 0


def test_a_function_that_fails_is_named_but_not_quoted(server):
    def broken() -> str:
        raise RuntimeError(SECRET)

    (error,) = ask(a_model(server, api_key=broken))
    assert isinstance(error, ModelUnusable)
    assert "RuntimeError" in str(error)
    assert SECRET not in "".join(traceback.format_exception(error))


def test_a_missing_key_is_an_error_before_anything_runs(tmp_path):
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    with pytest.raises(ListError, match="OPENAI_API_KEY is neither in the environment nor in") as caught:
        survey.by(Model("gpt-4o")).run(tmp_path / "a.run")
    assert "api_key_env" in caught.value.fix
    assert not (tmp_path / "a.run").exists()


def test_a_service_s_own_key_goes_to_that_service_only(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    ask(Model("gpt-4o", base_url=server.url))
    assert "authorization" not in server.last.headers
    ask(Model("gpt-4o", base_url=server.url, api_key_env="OPENAI_API_KEY"))
    assert server.last.headers["authorization"] == f"Bearer {SECRET}"


def test_a_refused_key_is_told_by_its_origin(server, monkeypatch):
    monkeypatch.setenv(NAME, SECRET)
    server.behave("401")
    (error,) = ask(a_model(server, api_key_env=NAME))
    shown = str(error)
    assert isinstance(error, ModelUnusable)
    for told in ("m at", server.url, "401", "Incorrect API key provided", f"{NAME} in the environment"):
        assert told in shown


@pytest.mark.parametrize("behaviour", ["echo-key", "echo-key-200", "garbage", "reset", "drip"])
@pytest.mark.parametrize("service", ["openai_compatible", "anthropic"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_key_is_in_no_reply_error_traceback_or_log(server, monkeypatch, caplog, service, behaviour, stream):
    monkeypatch.setenv(NAME, SECRET)
    caplog.set_level(logging.DEBUG)
    server.behave(behaviour)
    model = Model("m", service_name=service, base_url=server.url, api_key_env=NAME, timeout_s=0.3, stream=stream)
    (found,) = ask(model)
    assert server.calls == 1
    shown = [str(found), repr(found), repr(model), repr(provider_for(model)), caplog.text]
    if isinstance(found, ProviderError):
        shown += traceback.format_exception(found)
        shown += [repr(found.__context__), repr(found.__cause__), repr(pickle.dumps(str(found)))]
    assert not [text for text in shown if "secret-4711" in text]


def test_what_a_function_was_made_with_is_not_shown():
    model = Model("m", service_name="openai_compatible", api_key=functools.partial(str.strip, SECRET))
    assert "secret-4711" not in repr(model)
    assert b"secret-4711" not in model.to_row()


PROGRAM = """
import subprocess, sys
import traceback
from headrace import Model, QuestionFreeText, QuestionMultipleChoice, Survey
from headrace.errors import ModelUnusable
survey = Survey([
    QuestionFreeText(question_name="q", question_text="Well?"),
    QuestionMultipleChoice(question_name="m", question_text="Well?", question_options=["Good", "Bad"]),
])
model = Model("m", service_name="openai_compatible", base_url=sys.argv[1], api_key_env="HEADRACE_TEST_KEY")
print(subprocess.run(["ps", "axww"], capture_output=True, text=True).stdout)
try:
    results = survey.by(model).run("keys.run", progress_bar=True)
    print(results, results[0], list(results.failed()))
except ModelUnusable as error:
    traceback.print_exception(error)
"""


@pytest.mark.parametrize("behaviour", ["ok", "echo-key", "echo-key-200"])
def test_a_key_is_in_no_file_that_a_run_leaves_and_nothing_it_prints(server, tmp_path, behaviour):
    server.behave(behaviour)
    home = tmp_path / "home"
    environment = {**os.environ, NAME: SECRET, "HEADRACE_HOME": str(home)}
    command = [sys.executable, "-c", PROGRAM, server.url]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert server.calls >= 1
    assert server.last.headers["authorization"] == f"Bearer {SECRET}"
    assert "secret-4711" not in ran.stdout + ran.stderr
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert tmp_path / "keys.run" in left
    assert not [path for path in left if b"secret-4711" in path.read_bytes()]


def test_a_run_file_s_details_hold_no_key_either(server, tmp_path, monkeypatch):
    """They are compressed: the bytes of the file alone would not show it."""
    monkeypatch.setenv(NAME, SECRET)
    server.behave("echo-key-200")
    survey = Survey([QuestionMultipleChoice(question_name="q", question_text="Well?", question_options=["a", "b"])])
    results = survey.by(a_model(server, api_key_env=NAME)).run(tmp_path / "a.run")
    assert "[key]" in repr(results[0].raw_responses)
    assert "secret-4711" not in repr([results[0].raw_responses, results[0].answer, *results.failed()])


def _in_pieces(call: RawCall) -> bytes:
    pieces = [
        {"choices": [{"delta": {"content": each}}]} for each in ("Sure: sk-very-sec", "ret-4711-abcdefgh", "ijklmnop!")
    ]
    thoughts = [{"choices": [{"delta": {"reasoning": each}}]} for each in (SECRET[:9], SECRET[9:])]
    events = [*pieces, *thoughts, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    body = b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    return http(200, body, streamed=True)


ECHOES = {
    "redirect": lambda _: http(307, b"", f"Location: http://other.invalid/a/{SECRET}/b"),
    "redirect-escaped": lambda _: http(
        307, b"", f"Location: http://u:{quote(SECRET.replace('-', '%2D'))}@other.invalid/b"
    ),
    "json": lambda _: http(401, error(SECRET).replace(b"s", b"\\u0073")),
    "json-200": lambda _: http(200, chat(SECRET).replace(b"e", b"\\u0065")),
    "cut": lambda _: http(400, error("x" * 280 + SECRET)),
    "cut-bad-reply": lambda _: http(200, b"x" * 100 + SECRET.encode()),
    "cut-at-64k": lambda _: http(500, b"<title>no</title>" + b" " * (65_536 - 30) + SECRET.encode(), "X-A: b"),
    "cut-by-the-service": lambda _: http(400, error(f"Bad key: {SECRET[:20]}...")),
    "pieces": _in_pieces,
    "basic": lambda _: http(500, error(f"Bad: {base64.b64encode(f'me:{SECRET}'.encode()).decode()}")),
    "hex": lambda _: http(200, chat(SECRET.encode().hex())),
}
TOLD = ("secret-4711", "cret-4711", "very-sec", base64.b64encode(b"secret-4711").decode()[:10], b"secret-4711".hex())


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_a_key_that_a_service_repeats_in_any_form_is_in_nothing_that_a_run_keeps_or_says(
    echo, tmp_path, monkeypatch, capfd, caplog
):
    monkeypatch.setenv(NAME, SECRET)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    # Calls that fail are tried again, without the usual waits.
    soon = EndpointLimits(breaker=BreakerLimits(cool_down_s=0.01))
    monkeypatch.setattr(shared_limiters, "endpoint_limits", lambda _: soon)
    monkeypatch.setattr(open_chunks, "RetryLimits", functools.partial(RetryLimits, first_wait_s=0.01))
    caplog.set_level(logging.DEBUG)

    async def answer(call: RawCall) -> None:
        call.write(echo(call))

    shown: list[str] = []
    with RawServer(answer) as server:
        for stream in (False, True):
            path = tmp_path / f"{stream}.run"
            model = Model("m", base_url=server.url, api_key_env=NAME, stream=stream)
            survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
            with contextlib.suppress(ModelUnusable):
                survey.by(model).run(path)
            results = Results.open(path)
            shown += [repr((one.raw_responses, one.answer, one)) for one in results]
            shown += [repr(list(results.failed())), repr(results.stats())]
            found = asyncio.run(_outcome(model))
            shown += [repr(found), *(traceback.format_exception(found) if isinstance(found, Exception) else [])]
    shown += [*capfd.readouterr(), caplog.text]
    shown += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert not [(told, text) for told in TOLD for text in shown if told in text]


async def _outcome(model: Model):
    async with opened(model) as provider:
        return await outcome(provider, a_request())


def test_the_former_key_is_hidden_after_a_renewal(tmp_path):
    former, latest = "former-key-0123456789-abcdef", "latest-key-0123456789-abcdef"
    given = iter([former, latest])

    async def answer(call: RawCall) -> None:
        is_old = call.headers["authorization"].endswith(former)
        call.write(http(401, error("expired")) if is_old else ok(f"you had {former}, you have {latest}"))

    with RawServer(answer) as server:
        model = Model("m", base_url=server.url, api_key=lambda: next(given))
        survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
        results = survey.by(model).run(tmp_path / "a.run")
    assert results[0].answer["q"] == "you had [key], you have [key]"
    assert "0123456789" not in repr(results[0].raw_responses)
