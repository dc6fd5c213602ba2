import asyncio
import sys

import pytest

from headrace import Agent, AgentList, Engine, Model, Priority, QuestionFreeText, Results, Survey
from headrace.errors import EngineClosed, HeadraceError, OptionError, RunFileError, RunFileGone, SurveyError
from headrace.interviews.steering.client import ask
from headrace.interviews.steering.messages import StateRequest, StopRequest
from tests.agents.engine import isolated_functions as functions


def job_of(people, **model):
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well, {{ agent.age }}?")])
    agents = AgentList(Agent(traits={"age": i}) for i in range(people))
    return survey.by(agents).by(Model("test", **{"canned_response": "x", **model}))


async def short(ctx, number):
    return await ctx.step("s", abs, number)


async def test_a_survey_runs_beside_agents_and_neither_starves_the_other(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline", slots=2) as engine:
        survey = asyncio.ensure_future(engine.run(job_of(3000, latency_s=0.001), tmp_path / "s.run", concurrency=50))
        runs = [await engine.submit(short, -number) for number in range(40)]
        assert [await run.result() for run in runs] == list(range(40))
        results = await survey
        assert len(results) == 3000
        assert results[7].answer["q"] == "x"
    assert Results.open(tmp_path / "s.run").stats().interviews == 3000


async def test_a_survey_cut_short_by_leaving_the_engine_goes_on_in_the_next(tmp_path):
    job = job_of(2000, latency_s=0.05)
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        survey = asyncio.ensure_future(engine.run(job, tmp_path / "s.run", concurrency=20))
        while not (tmp_path / "s.run").exists() or not len(Results.open(tmp_path / "s.run")):
            await asyncio.sleep(0.02)
    with pytest.raises(EngineClosed, match="stopped after"):
        await survey
    done = len(Results.open(tmp_path / "s.run"))
    assert 0 < done < 2000
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        assert len(await engine.run(job, tmp_path / "s.run", priority=Priority.HIGH, concurrency=500)) == 2000


async def test_a_survey_that_cannot_be_asked_is_refused_and_the_engine_goes_on(tmp_path):
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well, {{ agent.nothing }}?")])
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        with pytest.raises(SurveyError):
            await engine.run(survey.by(Model("test", canned_response="x")), tmp_path / "s.run")
        with pytest.raises(OptionError, match="memory= is the engine's"):
            await engine.run(job_of(1), tmp_path / "s.run", memory="1GB")
        with pytest.raises(OptionError, match="no option"):
            await engine.run(job_of(1), tmp_path / "s.run", concurency=5)
        assert await (await engine.submit(short, -1)).result() == 1


@pytest.mark.parametrize(
    ("model", "path", "settings"),
    [
        ({"colour": "red"}, "s.run", {}),
        ({}, None, {"extend": True}),
    ],
    ids=["parameter", "path"],
)
async def test_an_engine_refuses_what_a_job_refuses_in_the_same_words(tmp_path, monkeypatch, model, path, settings):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    job, where = job_of(2, **model), path and tmp_path / path
    with pytest.raises(HeadraceError) as by_itself:
        await job.run_async(where, **settings)
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        with pytest.raises(HeadraceError) as in_engine:
            await engine.run(job, where, **settings)
    assert (type(in_engine.value), str(in_engine.value)) == (type(by_itself.value), str(by_itself.value))
    assert not (tmp_path / "s.run").exists()


async def test_an_engine_whose_file_and_survey_are_taken_away_says_so_and_logs_nothing_raw(tmp_path, caplog):
    engine, surveyed = tmp_path / "a.run", tmp_path / "t.run"

    async def both():
        async with Engine(engine, isolation="inline", memory="+200MB") as opened, asyncio.timeout(60):
            survey = asyncio.create_task(opened.run(job_of(5000, latency_s=0.05), surveyed, concurrency=5))
            while not surveyed.exists() or not len(Results.open(surveyed)):
                await asyncio.sleep(0.01)
            engine.rename(tmp_path / "moved.run")
            surveyed.unlink()
            with pytest.raises((RunFileGone, EngineClosed)):
                await survey

    with pytest.raises(RunFileGone, match=r"moved\.run"):
        await both()
    assert [record for record in caplog.records if record.name == "asyncio"] == []
    assert [each.name for each in tmp_path.glob("t.saved-*.run")]


@pytest.mark.skipif(sys.platform != "linux", reason="forked workers share memory only here")
async def test_an_engine_and_a_survey_inside_it_show_one_figure_for_one_tree(tmp_path):
    """Forked workers report memory that they share: only the engine's gauge takes it off."""
    path, differences = tmp_path / "s.run", list[float]()
    async with Engine(tmp_path / "a.run", slots=2, memory="+600MB", slot_memory="200MB") as engine:
        runs = [await engine.submit(functions.waiting, str(tmp_path / "go"), number) for number in range(2)]
        survey = asyncio.ensure_future(engine.run(job_of(100_000, latency_s=0.01), path, concurrency=5))
        while len(differences) < 15:
            try:
                live = await asyncio.to_thread(ask, path, StateRequest())
            except RunFileError:  # it is just starting
                await asyncio.sleep(0.05)
                continue
            shown = engine.status()
            assert live.progress.budget_bytes == shown.budget_bytes
            differences.append(abs(live.progress.memory_bytes - shown.memory_bytes) / 1_000_000)
            await asyncio.sleep(0.05)
        (tmp_path / "go").touch()
        await asyncio.to_thread(ask, path, StopRequest())
        with pytest.raises(EngineClosed, match="stopped after"):
            await survey
        assert [await run.result() for run in runs] == [0, 1]
    assert sorted(differences)[len(differences) // 2] < 5


def shown(engine):
    return {row.path.name: row for row in engine.status().surveys}


async def until(condition):
    async with asyncio.timeout(40):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_survey_that_raised_is_shown_as_failed_with_the_reason(tmp_path, caplog):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        with pytest.raises(HeadraceError) as raised:
            await engine.run(job_of(50, throw_exception=True), tmp_path / "s.run", stop_on_exception=True)
        row = shown(engine)["s.run"]
        assert (row.state, row.error) == ("failed", str(raised.value))
        (event,) = [event for event in await engine.events() if event.what == "survey failed"]
        assert event.reason.endswith(f"s.run: {raised.value}")
        assert not caplog.records, "its caller has the error"
        with pytest.raises(HeadraceError):  # another plan: no failure of the survey in that file
            await engine.run(job_of(7), tmp_path / "s.run")
        assert shown(engine)["s.run"].error == str(raised.value)


async def test_cancelling_the_task_of_a_survey_stops_it_and_keeps_everything(tmp_path):
    job, path = job_of(500, latency_s=0.05), tmp_path / "s.run"
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        first, other = (asyncio.ensure_future(engine.run(job, path, concurrency=5)) for _ in range(2))
        await until(lambda: "s.run" in shown(engine) and shown(engine)["s.run"].done > 5)
        first.cancel()
        done = shown(engine)["s.run"].done
        await until(lambda: shown(engine)["s.run"].done > done + 10)  # the other still waits for it
        other.cancel()
        await until(lambda: shown(engine)["s.run"].state == "stopped")
        done = shown(engine)["s.run"].done
        assert first.cancelled()
        assert other.cancelled()
        assert 5 < done == len(Results.open(path)) < 500
        again = asyncio.ensure_future(engine.run(job, path, concurrency=5))
        await until(lambda: shown(engine)["s.run"].done > done)
        again.cancel()
        await asyncio.sleep(0)
        assert len(await engine.run(job, path, concurrency=5, limit=None)) == 500  # waits for the end of that, goes on
        assert shown(engine)["s.run"].state == "complete"
