"""What becomes of a model that refuses, or cannot be reached: told, bounded, and mended without a restart."""

import asyncio
import socket
import sqlite3
import time

import pytest

from headrace import Engine, Model, QuestionFreeText, Results, ScenarioList, Survey, task
from headrace.errors import ModelUnusable, OptionError, ProviderTimeout, RunFailed
from headrace.limits import EndpointLimits
from headrace.models import shared_limiters
from headrace.workers.limit_mechanisms import can_isolate
from tests.models.server import HostileServer

VARIABLE = "KEY_OF_A_TEST"


def a_model(url: str, **parameters) -> Model:
    return Model("m", service_name="openai_compatible", base_url=url, **parameters)


def is_right(key: str):
    """A service that takes this key alone."""
    return lambda call: "ok" if call.headers.get("authorization") == f"Bearer {key}" else "401"


@task(memory="10MB")
async def asking(ctx, url: str, parameters: dict[str, str], prompt: str, options: dict[str, float]) -> str:
    try:
        return await ctx.ask(a_model(url, **parameters), prompt, **options)
    except (ModelUnusable, ProviderTimeout) as error:
        return f"{type(error).__name__}: {error}"


async def asked(engine: Engine, model: Model, prompt: str = "Well?", **options: float) -> str:
    """The reply that an agent run gets, or its error's words."""
    parameters = dict(model.parameters)
    return await (
        await engine.submit(asking, parameters.pop("base_url"), parameters, prompt, options, key=None)
    ).result()


async def told(engine: Engine) -> list[str]:
    return [event.what for event in await engine.events() if event.what.startswith("model ")]


@pytest.fixture
def port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("place", ["environment", "file"])
async def test_a_new_key_in_the_environment_reopens_a_model_that_refused_the_old_one(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)

    def set_key(key: str) -> None:
        if place == "environment":
            monkeypatch.setenv(VARIABLE, key)
        else:
            (tmp_path / ".env").write_text(f"{VARIABLE}={key}\n")

    set_key("wrong-key-of-the-test")
    with HostileServer() as server:
        server.behave(is_right("right-key-of-the-test"))
        model = a_model(server.url, api_key_env=VARIABLE)
        async with Engine(tmp_path / "e.run", isolation="inline") as engine:
            first = await asked(engine, model)
            assert first.startswith("ModelUnusable: m at ")
            assert f"Check the key ({VARIABLE} in" in first
            assert "engine.reopen('m')" in first
            calls = server.calls
            assert (await asked(engine, model)).startswith("ModelUnusable: m at ")
            assert server.calls == calls, "the same key is not sent again"
            [endpoint] = engine.status().endpoints
            assert (endpoint.model, endpoint.state, endpoint.waiting) == ("m", "closed", 0)
            assert "answered 401" in endpoint.reason
            assert 0 < (endpoint.retry_in_s or 0) <= 30
            assert time.time() - 60 < (endpoint.since or 0) <= time.time()
            assert "m is closed since " in str(engine.status())
            assert {engine.status().endpoints[0].since for _ in range(20)} == {endpoint.since}
            set_key("right-key-of-the-test")
            assert await asked(engine, model) == "Good"
            assert engine.status().endpoints[0].state == "open"
            assert await told(engine) == ["model closed", "model reopened"]


async def test_a_key_that_was_replaced_while_the_engine_ran_is_used_without_one_error(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "first-key-of-the-test")
    with HostileServer() as server:
        server.behave(is_right("first-key-of-the-test"))
        model = a_model(server.url, api_key_env=VARIABLE)
        async with Engine(tmp_path / "e.run", isolation="inline") as engine:
            assert await asked(engine, model) == "Good"
            server.behave(is_right("second-key-of-the-test"))
            monkeypatch.setenv(VARIABLE, "second-key-of-the-test")
            assert await asked(engine, model, "And now?") == "Good"
            assert await told(engine) == []


@pytest.mark.parametrize("by", ["name", "model", "all"])
async def test_a_closed_model_is_asked_again_when_its_owner_reopens_it(tmp_path, by):
    with HostileServer() as server:
        server.behave("402")
        model = a_model(server.url)
        async with Engine(tmp_path / "e.run", isolation="inline") as engine:
            assert (await asked(engine, model)).startswith("ModelUnusable")
            server.behave("ok")
            assert (await asked(engine, model)).startswith("ModelUnusable")
            with pytest.raises(OptionError, match=r"No call to a model 'n' was made here\. Known here: m\."):
                engine.reopen("n")
            assert server.calls == 0
            engine.reopen(*{"name": ["m"], "model": [model], "all": []}[by])
            assert await asked(engine, model) == "Good"
            assert await told(engine) == ["model closed", "model reopened"]


async def test_a_closed_model_is_asked_again_after_a_while(tmp_path, monkeypatch):
    quick = EndpointLimits(first_closed_s=0.5, longest_closed_s=0.5)
    monkeypatch.setattr(shared_limiters, "endpoint_limits", lambda _: quick)
    with HostileServer() as server:
        server.behave("403")
        model = a_model(server.url)
        async with Engine(tmp_path / "e.run", isolation="inline") as engine:
            assert (await asked(engine, model)).startswith("ModelUnusable")
            server.behave("ok")
            await asyncio.sleep(0.6)
            assert await asked(engine, model) == "Good"
            assert await told(engine) == ["model closed", "model back"]


async def test_a_survey_that_is_run_again_in_the_same_engine_tries_what_was_refused(tmp_path):
    survey = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ scenario.n }}?")])
    with HostileServer() as server:
        server.behave("402")
        job = survey.by(ScenarioList.from_list("n", range(50)), a_model(server.url))
        async with Engine(tmp_path / "e.run", isolation="inline") as engine:
            with pytest.raises(ModelUnusable, match="0 of 50 interviews are done"):
                await engine.run(job, tmp_path / "s.run", cache=False)
            calls = server.calls
            with pytest.raises(ModelUnusable, match="0 of 50 interviews are done"):
                await engine.run(job, tmp_path / "s.run", cache=False)
            assert calls < server.calls <= calls + 4, "a few find out for all"
            server.behave("ok")
            assert len(await engine.run(job, tmp_path / "s.run", cache=False)) == 50


async def test_an_address_that_refuses_connections_is_shown_and_a_wait_for_it_can_be_bounded(tmp_path, port):
    url = f"http://127.0.0.1:{port}/v1"
    model = a_model(url)

    @task(memory="10MB")
    async def patient(ctx):
        return await ctx.ask(model, "Still there?")

    async with Engine(tmp_path / "e.run", isolation="inline", slots=4) as engine:
        waiting = await engine.submit(patient)
        while not engine.status().endpoints or engine.status().endpoints[0].state == "open":
            await asyncio.sleep(0.02)
        words = await asked(engine, model, "Quickly?", timeout_s=0.3)
        [endpoint] = engine.status().endpoints
        assert (endpoint.state, endpoint.in_flight + endpoint.waiting) == ("away", 1)
        assert url in endpoint.reason
        assert endpoint.since is not None
        assert words.startswith("ProviderTimeout: m gave no reply within timeout_s=0.3, and is not asked any more.")
        assert "m is away since " in words
        assert url in words
        assert await told(engine) == ["model away"]
        with HostileServer(port) as server:
            engine.reopen("m")  # or it is tried at some time
            assert await waiting.result() == "Good"
            assert await asked(engine, model, "And now?", timeout_s=60) == "Good"
            assert server.script.prompts == {"Still there?": 1, "And now?": 1}, "what was given up is never sent"
    steps = sqlite3.connect(tmp_path / "e.run").execute("SELECT count(*) FROM steps").fetchone()[0]
    assert steps == 2, "a wait that was too long is no result"


async def test_a_call_that_is_given_up_in_flight_frees_its_place_and_an_uncaught_timeout_fails_its_run(tmp_path):
    with HostileServer() as server:
        server.behave("ok", latency=lambda _: 30.0)
        model = a_model(server.url)

        async def agent(ctx):
            return await ctx.ask(model, "Well?", timeout_s=0.2)

        async def wrong(ctx):
            return await ctx.ask(model, "Well?", timeout_s=0)

        async with Engine(tmp_path / "e.run", isolation="inline") as engine:
            with pytest.raises(RunFailed, match="m gave no reply within timeout_s="):
                await (await engine.submit(agent)).result()
            assert [(each.state, each.in_flight) for each in engine.status().endpoints] == [("open", 0)]
            with pytest.raises(RunFailed, match="timeout_s=0 must be a number of seconds above 0"):
                await (await engine.submit(wrong)).result()


async def test_a_failing_and_a_busy_service_are_told_with_what_they_said(tmp_path, monkeypatch):
    quick = EndpointLimits(first_pause_s=0.05, longest_pause_s=0.1, longest_asked_pause_s=0.1)
    monkeypatch.setattr(shared_limiters, "endpoint_limits", lambda _: quick)
    with HostileServer() as server:
        model = a_model(server.url)
        async with Engine(tmp_path / "e.run", isolation="inline") as engine:
            server.behave(["429", "429", "429", "ok"])
            assert await asked(engine, model) == "Good"
            server.behave(["500", "500", "500", "ok"])
            assert await asked(engine, model, "Again?") == "Good"
            events = [event for event in await engine.events() if event.what.startswith("model ")]
            assert [event.what for event in events] == ["model busy", "model back", "model failing", "model back"]
            assert "answered 429" in events[0].reason
            assert "answered 500" in events[2].reason
            assert all(event.reason.endswith(". It is asked again, more slowly.") for event in events[::2])
            assert events[3].reason.startswith("m answers again, after ")


async def test_a_survey_goes_on_with_a_model_that_is_reopened_meanwhile(tmp_path):
    survey = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ scenario.n }}?")])
    with HostileServer() as server:
        refused = ["402"]

        def slow_a_and_mended_b(call):
            return "ok" if call.body["model"] == "a" else refused[0]

        # There is work left for a when b is reopened, on a busy machine too.
        server.behave(slow_a_and_mended_b, latency=lambda _: 0.03 if refused == ["ok"] else 0.2)
        models = [Model(name, service_name="openai_compatible", base_url=server.url) for name in "ab"]
        job = survey.by(ScenarioList.from_list("n", range(150)), *models)
        async with Engine(tmp_path / "e.run", isolation="inline") as engine:
            run = asyncio.ensure_future(engine.run(job, tmp_path / "s.run", cache=False, concurrency=10))
            while not any(each.state == "closed" for each in engine.status().endpoints):
                await asyncio.sleep(0.02)
            refused[0] = "ok"
            engine.reopen("b")
            with pytest.raises(ModelUnusable, match=r"Mend that and run again"):
                await run
            done = len(Results.open(tmp_path / "s.run"))
            assert 250 < done < 300, "all of both but the few that were refused"
            assert len(await engine.run(job, tmp_path / "s.run", cache=False)) == 300


@pytest.mark.skipif(not can_isolate(), reason="needs worker processes")
async def test_a_run_in_a_worker_gets_the_same_error(tmp_path, port):
    model = a_model(f"http://127.0.0.1:{port}/v1")
    async with Engine(tmp_path / "e.run", memory="+256MB", slots=1) as engine:
        words = await asked(engine, model, timeout_s=0.5)
    assert words.startswith("ProviderTimeout: m gave no reply within timeout_s=0.5")
    assert "m is away since " in words
