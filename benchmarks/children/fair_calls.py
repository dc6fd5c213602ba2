"""Scenarios of benchmarks.fairness at a model's door: calls beside calls or a survey, and a survey's large replies."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import aiohttp

import headrace
from benchmarks.children.fair_stage import PriorityPool, Scenario, Stage, Waits, asking, model, since
from headrace import Agent, AgentList, Job, Model, Priority, QuestionFreeText, Survey

REQUESTS_PER_MINUTE = 300
_INTERVIEWS = 3_000  # more than any of the asks can wait for
_HEAD_START_S = 3.0
_BETWEEN_S = 0.5


@headrace.task(name="one call", memory="40MB")
async def one_call(ctx, url: str, prompt: str, requests_per_minute: int | None) -> float:
    limit = {} if requests_per_minute is None else {"requests_per_minute": requests_per_minute}
    await ctx.ask(model(url, **limit), prompt)
    return time.time()


async def four_calls(stage: Stage) -> Waits:
    """Four runs, each of which asks a model once, on two slots."""
    async with stage.engine() as engine:
        await (await engine.submit(one_call, stage.url, "warm up", None)).result()
        began_at = time.time()
        runs = [await engine.submit(one_call, stage.url, f"call {n}", None) for n in range(4)]
        return {"HIGH": [await since(began_at, run) for run in runs]}


async def pool_four_calls(stage: Stage) -> Waits:
    async with aiohttp.ClientSession() as session, PriorityPool() as pool:
        services = [asking(session, stage.url, f"call {n}") for n in range(4)]
        return {"HIGH": await asyncio.gather(*map(pool.timed, services))}


def _survey(interviews: int, asked: Model) -> Job:
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well, {{ agent.number }}?")])
    return survey.by(AgentList(Agent(traits={"number": n}) for n in range(interviews))).by(asked)


async def ask_beside_survey(stage: Stage) -> Waits:
    """CRITICAL runs that ask the model which a LOW survey uses up to its rate."""
    waits: list[float | None] = []
    async with stage.engine() as engine:
        await (await engine.submit(one_call, stage.url, "warm up", REQUESTS_PER_MINUTE)).result()
        job = _survey(_INTERVIEWS, model(stage.url, requests_per_minute=REQUESTS_PER_MINUTE))
        survey = asyncio.ensure_future(engine.run(job, stage.directory / "survey.run", priority=Priority.LOW))
        await asyncio.sleep(_HEAD_START_S)
        for number in range(stage.size(3, 1)):
            began_at = time.time()
            run = await engine.submit(
                one_call, stage.url, f"ask {number}", REQUESTS_PER_MINUTE, priority=Priority.CRITICAL
            )
            waits.append(await since(began_at, run))
            await asyncio.sleep(_BETWEEN_S)
        survey.cancel()
        with suppress(asyncio.CancelledError):
            await survey
    return {"CRITICAL": waits}


async def pool_ask_beside_survey(stage: Stage) -> Waits:
    """The survey's calls wait in the queue; whoever takes one out waits for the rate."""
    door = _Rate(60.0 / REQUESTS_PER_MINUTE)
    async with aiohttp.ClientSession() as session, PriorityPool() as pool:
        survey = [
            asyncio.ensure_future(pool.call(door.behind(asking(session, stage.url, f"{n}")), Priority.LOW))
            for n in range(200)
        ]
        await asyncio.sleep(_HEAD_START_S)
        waits: list[float] = []
        for number in range(stage.size(3, 1)):
            service = door.behind(asking(session, stage.url, f"ask {number}"))
            waits.append(await pool.timed(service, Priority.CRITICAL))
            await asyncio.sleep(_BETWEEN_S)
        for call in survey:
            call.cancel()
        await asyncio.gather(*survey, return_exceptions=True)
    return {"CRITICAL": waits}


async def large_replies(stage: Stage) -> Waits:
    """A survey whose replies have a megabyte each, in a budget of 100 MB."""
    began_at, job = time.time(), _survey(stage.size(600, 100), model(stage.url))
    await job.run_async(stage.directory / "survey.run", memory="100MB", progress_bar=False)
    return {"NORMAL": [time.time() - began_at]}


async def pool_large_replies(stage: Stage) -> Waits:
    async with aiohttp.ClientSession() as session, PriorityPool() as pool:
        services = [asking(session, stage.url, f"{n}") for n in range(stage.size(600, 100))]
        return {"NORMAL": await asyncio.gather(*map(pool.timed, services))}


class _Rate:
    """One call each so many seconds, first come, first served."""

    def __init__(self, apart_s: float) -> None:
        self._apart_s = apart_s
        self._next_s = 0.0

    def behind(self, service):
        async def waiting():
            now_s = time.monotonic()
            self._next_s = max(self._next_s, now_s) + self._apart_s
            await asyncio.sleep(self._next_s - self._apart_s - now_s)
            return await service()

        return waiting


SCENARIOS = {
    "four_calls": Scenario(four_calls, pool_four_calls),
    "ask_beside_survey": Scenario(ask_beside_survey, pool_ask_beside_survey),
    "large_replies": Scenario(large_replies, pool_large_replies),
}
