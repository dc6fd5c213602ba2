"""Surveys that an engine ran go on after a kill or a restart, when that is asked for."""

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from headrace import Agent, AgentList, Engine, Job, Model, Priority, QuestionFreeText, Results, Survey
from headrace.errors import EngineClosed, HeadraceError, OptionError
from headrace.interviews.session import Session
from tests.agents.engine.programs.surveyed import job_of as numbers_job
from tests.trouble.number_server import NumberServer

ROOT = Path(__file__).parents[3]
PEOPLE = 120


def job_of(people: int, model: Model | None = None, latency_s: float = 0.005) -> Job:
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well, {{ agent.age }}?")])
    agents = AgentList(Agent(traits={"age": i}) for i in range(people))
    return survey.by(agents).by(model or Model("test", canned_response="x", latency_s=latency_s))


def done_in(path: Path) -> int:
    return len(Results.open(path)) if path.exists() else 0


async def until(is_true: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not is_true():
            await asyncio.sleep(0.02)


async def events_of(engine: Engine, what: str) -> list[str]:
    return [event.reason for event in await engine.events() if event.what == what]


async def left_behind(
    folder: Path, *, name: str = "s.run", people: int = 1000, latency_s: float = 0.005, **settings: object
) -> Path:
    """A survey that an engine was left in the middle of."""
    path, job = folder / name, job_of(people, latency_s=latency_s)
    async with Engine(folder / "a.run", isolation="inline") as engine:
        survey = asyncio.ensure_future(engine.run(job, path, concurrency=5, **settings))
        await until(lambda: done_in(path) > 5)
    with pytest.raises(EngineClosed, match="stopped after"):
        await survey
    return path


async def test_a_survey_of_a_killed_engine_goes_on_when_asked_and_repeats_only_what_was_in_flight(tmp_path):
    engine_path, path = tmp_path / "a.run", tmp_path / "s.run"
    with NumberServer(latency_s=0.1) as server:
        command = [sys.executable, "-W", "error", "-m", "tests.agents.engine.programs.surveyed"]
        child = subprocess.Popen([*command, str(engine_path), str(path), server.url, str(PEOPLE)], cwd=ROOT)
        with child:
            give_up_at = time.monotonic() + 60
            while done_in(path) < 20:
                assert child.poll() is None
                assert time.monotonic() < give_up_at
                time.sleep(0.02)
            child.send_signal(signal.SIGKILL)
        await until(lambda: server.connections == 0)  # it answers what the killed process had sent, too
        server.latency_s = 0.01
        async with Engine(engine_path, isolation="inline") as engine:
            (before,) = engine.status().surveys
            assert (before.path, before.state, before.priority, before.total) == (path, "stopped", "HIGH", PEOPLE)
            asked = server.calls
            await asyncio.sleep(0.3)
            assert server.calls == asked, "nothing is asked before it is asked for"
            assert await engine.resume_surveys() == [path]
            assert await engine.resume_surveys() == [], "it is under way"
            await engine.drain()
            (after,) = engine.status().surveys
            assert (after.state, after.done, after.total) == ("complete", PEOPLE, PEOPLE)
            assert await engine.resume_surveys() == []
        again = sum(count - 1 for count in server.answered.values())
    assert again <= 4
    assert sorted(result.answer["n"] for result in Results.open(path)) == [3 * number for number in range(PEOPLE)]


async def test_a_survey_goes_on_with_what_it_was_asked_for(tmp_path):
    path = await left_behind(tmp_path, latency_s=0.02, limit=300, priority=Priority.LOW)
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        (shown,) = engine.status().surveys
        assert (shown.state, shown.priority, shown.total) == ("stopped", "LOW", 300)
        assert 5 < shown.done < 300
        assert f"survey s.run stopped: {shown.done} of 300" in str(engine.status())
        assert await engine.resume_surveys() == [path]
        await until(lambda: engine.status().surveys[0].done > shown.done)
        assert engine.status().surveys[0].state == "running"
        await engine.drain()
        assert len(await events_of(engine, "survey resumed")) == 1
    assert done_in(path) == 300


async def test_the_same_job_and_path_wait_for_a_survey_that_goes_on_already(tmp_path):
    path = await left_behind(tmp_path)
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        await engine.resume_surveys()
        with pytest.raises(OptionError, match="by this engine already, with another job or other options"):
            await engine.run(job_of(1000), path, limit=20)
        first, second = await asyncio.gather(engine.run(job_of(1000), path), engine.run(job_of(1000), path))
        assert len(first) == len(second) == 1000
        assert len(await engine.run(job_of(1000), path)) == 1000, "and it is the same afterwards"


async def test_a_survey_that_cannot_go_on_is_told_and_the_others_do(tmp_path, caplog):
    gone, other, path = [
        await left_behind(tmp_path, name=name, people=people)
        for name, people in (("gone.run", 900), ("other.run", 901), ("s.run", 902))
    ]
    gone.unlink()
    other.unlink()
    job_of(3).run(other).close()
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        assert await engine.resume_surveys() == [path]
        first, second, third = engine.status().surveys
        assert (first.state, second.state, third.state) == ("failed", "failed", "running")
        assert "gone.run" in first.error
        assert "another plan" in second.error
        assert "another plan" in str(engine.status())
        told = await events_of(engine, "survey not resumed")
        await engine.drain()
    assert len(told) == 2
    assert {f"survey not resumed: {each}" for each in told} <= {record.message for record in caplog.records}
    assert done_in(path) == 902
    assert done_in(other) == 3


async def test_nobody_is_contacted_whom_this_user_has_not_confirmed(tmp_path, monkeypatch):
    path = tmp_path / "s.run"
    with NumberServer(latency_s=0.02) as server:
        async with Engine(tmp_path / "a.run", isolation="inline") as engine:
            survey = asyncio.ensure_future(engine.run(numbers_job(server.url, 200), path, concurrency=2))
            await until(lambda: done_in(path) > 5)
        with contextlib.suppress(EngineClosed):
            await survey
        await until(lambda: server.connections == 0)
        asked = server.calls
        monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "another user's"))
        async with Engine(tmp_path / "a.run", isolation="inline") as engine:
            assert await engine.resume_surveys() == []
            (shown,) = engine.status().surveys
            assert server.url in shown.error
        assert server.calls == asked


async def test_a_survey_that_fails_in_the_background_ends_nothing_else(tmp_path):
    async def slow(_: object) -> str:
        await asyncio.sleep(0.01)
        return "fine"

    path = tmp_path / "s.run"
    job = job_of(400, Model.from_function(slow))
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        survey = asyncio.ensure_future(engine.run(job, path, concurrency=2))
        await until(lambda: done_in(path) > 3)
    with contextlib.suppress(EngineClosed):
        await survey
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        await engine.resume_surveys()  # the run file does not hold the model's function
        await engine.drain()
        (shown,) = engine.status().surveys
        assert shown.state == "failed"
        assert shown.error
        assert len(await engine.run(job, path)) == 400, "with the job it goes on"
        (shown,) = engine.status().surveys
        assert (shown.state, shown.error) == ("complete", "")


async def test_an_engine_that_is_left_at_once_leaves_a_survey_that_can_go_on(tmp_path):
    path = await left_behind(tmp_path)
    for pause_s in (0.0, 0.05, 0.1):
        async with Engine(tmp_path / "a.run", isolation="inline") as engine:
            assert await engine.resume_surveys() == [path]
            await asyncio.sleep(pause_s)
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        assert len(await engine.run(job_of(1000), path)) == 1000


async def test_an_engine_file_from_before_opens_and_remembers_surveys_from_then_on(tmp_path):
    path = tmp_path / "a.run"
    async with Engine(path, isolation="inline"):
        pass
    with contextlib.closing(apsw.Connection(os.fspath(path))) as connection:
        connection.execute("DROP TABLE surveys; ALTER TABLE runs DROP COLUMN preempted")
    async with Engine(path, isolation="inline") as engine:
        assert engine.status().surveys == ()
        assert await engine.resume_surveys() == []
        await engine.run(job_of(3), tmp_path / "s.run")
        (shown,) = engine.status().surveys
        assert (shown.state, shown.done) == ("complete", 3)


async def test_a_survey_is_shown_from_the_call_on_and_what_is_done_never_falls(tmp_path, monkeypatch):
    may_answer = threading.Event()

    async def answering(_: object) -> str:
        while not may_answer.is_set():
            await asyncio.sleep(0.005)
        return "x"

    is_held, made = threading.Event(), Session.__init__
    monkeypatch.setattr(Session, "__init__", lambda *given, **named: is_held.wait(60) and made(*given, **named))
    seen: list[tuple[str, int]] = []
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        job = job_of(60, Model.from_function(answering))
        survey = asyncio.ensure_future(engine.run(job, tmp_path / "s.run", concurrency=5))
        await until(lambda: engine.status().surveys)
        assert "survey s.run opening" in str(engine.status())
        is_held.set()
        while not survey.done():
            (shown,) = engine.status().surveys
            seen.append((shown.state, shown.done))
            if shown.state == "running":
                may_answer.set()
            await asyncio.sleep(0)
        await survey
        (shown,) = engine.status().surveys
        assert (shown.state, shown.done, shown.total) == ("complete", 60, 60)
    assert [done for _, done in seen] == sorted(done for _, done in seen)
    assert [state for state, _ in itertools.groupby(seen, key=lambda each: each[0])][:2] == ["opening", "running"]


async def test_a_survey_that_is_cancelled_while_it_opens_is_shown_as_stopped_and_a_refused_one_is_not_shown(
    tmp_path, monkeypatch
):
    is_held, made = threading.Event(), Session.__init__
    monkeypatch.setattr(Session, "__init__", lambda *given, **named: is_held.wait(60) and made(*given, **named))
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        survey = asyncio.ensure_future(engine.run(job_of(6), tmp_path / "s.run"))
        await until(lambda: engine.status().surveys)
        survey.cancel()
        await until(lambda: engine.status().surveys[0].state == "stopped")
        assert engine.status().surveys[0].error == "cancelled before it began: run it again"
        is_held.set()
        assert len(await engine.run(job_of(6), tmp_path / "s.run")) == 6
        with pytest.raises(HeadraceError):
            await engine.run(job_of(7), tmp_path / "s.run")
        with pytest.raises(HeadraceError):
            await engine.run(job_of(7), tmp_path / "s.run" / "t.run")
        assert [(shown.state, shown.done) for shown in engine.status().surveys] == [("complete", 6)]
