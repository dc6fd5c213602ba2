"""Priority at the model's door: who calls a model first where its limits are used up. A real service on loopback."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace import Engine, Model, Priority, QuestionFreeText, ScenarioList, Survey
from headrace.errors import EngineClosed
from tests.models.server import HostileServer


def a_model(server: HostileServer, **limits: Any) -> Model:
    return Model("m", service_name="openai_compatible", base_url=server.url, **limits)


def a_job(model: Model, people: int):
    survey = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ scenario.n }}?")])
    return survey.by(ScenarioList.from_list("n", range(people)), model)


async def asks(ctx, model, prompt):
    return await ctx.ask(Model(**model), prompt)


async def has_seen(server: HostileServer, calls: int) -> None:
    while server.calls < calls:
        await asyncio.sleep(0.02)


def place_of(server: HostileServer, prompt: str) -> int:
    """How many calls had come before this one."""
    return next(place for place, call in enumerate(server.script.kept) if prompt in call.prompt)


async def passed_by(
    tmp_path: Path, server: HostileServer, model: Model, priority: Priority, submitted: Priority
) -> int:
    """How many calls of a survey go out between an agent's submission and its call."""
    settings = {"name": "m", "service_name": "openai_compatible", **model.parameters}
    async with Engine(tmp_path / "e.run", isolation="inline") as engine:
        job = a_job(model, 400)
        survey = asyncio.ensure_future(
            engine.run(job, tmp_path / "s.run", concurrency=300, priority=priority, cache=False)
        )
        await has_seen(server, 30)  # more than may go out in one burst: the others wait for the rate
        before = server.calls
        run = await engine.submit(asks, settings, "Now?", priority=submitted)
        await run.result()
    with pytest.raises(EngineClosed):
        await survey
    return place_of(server, "Now?") - before


async def test_a_critical_call_passes_a_low_survey_that_uses_up_the_rate(tmp_path):
    with HostileServer() as server:
        model = a_model(server, requests_per_minute=600)
        # Each second ten calls go out: the submission itself takes a moment.
        assert await passed_by(tmp_path, server, model, Priority.LOW, Priority.CRITICAL) <= 40


async def test_a_run_passes_a_survey_that_uses_up_the_concurrency_within_one_call(tmp_path):
    with HostileServer() as server:
        server.behave("ok", latency=lambda _: 0.1)
        # Hundreds wait for at most some dozens of places; each gets free after a tenth of a second.
        assert await passed_by(tmp_path, server, a_model(server), Priority.NORMAL, Priority.HIGH) <= 150


async def names_its_priority(request):
    return request.priority.name


async def parent(ctx):
    model = Model.from_function(names_its_priority)
    return [await ctx.ask(model, "Who?"), await ctx.run(child)]


async def child(ctx):
    return await ctx.ask(Model.from_function(names_its_priority), "And you?")


async def test_calls_have_the_priority_of_what_they_are_for(tmp_path):
    model = Model.from_function(names_its_priority)
    survey = Survey([QuestionFreeText(question_name="q", question_text="Who?")])
    beats: list[str] = []

    async def beat(ctx):
        beats.append(await ctx.ask(model, "Heartbeat?"))

    async with Engine(tmp_path / "e.run", isolation="inline") as engine:
        engine.every(0.05, beat, jitter=0)
        run = await engine.submit(parent, priority=Priority.CRITICAL)
        assert await run.result() == ["CRITICAL", "CRITICAL"]
        assert await (await engine.submit(child)).result() == "HIGH"
        for priority in (None, Priority.LOW):
            given = {} if priority is None else {"priority": priority}
            results = await engine.run(survey.by(model), tmp_path / f"{priority}.run", cache=False, **given)
            assert results[0].answer["q"] == ("NORMAL" if priority is None else "LOW")
        while not beats:
            await asyncio.sleep(0.02)
    assert beats[0] == "LOW"
    alone = await survey.by(model).run_async(tmp_path / "alone.run", cache=False)
    assert alone[0].answer["q"] == "NORMAL"
