"""What waits, while the wall clock is set by a day: it waits as long as it was to."""

import asyncio
import time

import pytest

from headrace import Engine, task
from headrace.models.http_client.failures import service_time_s
from headrace.models.http_client.rate_headers import anthropic_rates
from headrace.store.engine_file.engine_schema import RunState
from tests.agents.engine.isolated_functions import napping

DAY_S = 86_400.0
NAP_S = 3.0  # long enough to be seen asleep on a busy machine


@pytest.fixture
def set_clock(monkeypatch):
    """Sets this process's wall clock, as a user or a time service would."""
    true_time = time.time
    return lambda by_s: monkeypatch.setattr(time, "time", lambda: true_time() + by_s)


async def until(run, state):
    async with asyncio.timeout(60):
        while run.status().state is not state:
            assert run.status().state is not RunState.DONE, f"it ended before it was seen {state}"
            await asyncio.sleep(0.01)


@pytest.mark.usefixtures("small_warden")
@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_a_sleeper_wakes_after_its_time_though_the_clock_was_set_back(tmp_path, set_clock, isolation):
    async with Engine(tmp_path / "a.run", isolation=isolation, slots=1) as engine, asyncio.timeout(90):
        run = await engine.submit(napping, NAP_S)
        await until(run, RunState.SLEEPING)
        set_clock(-DAY_S)
        assert await run.result() == "rested"
        while "clock set" not in {event.what for event in await engine.events()}:
            await asyncio.sleep(0.05)


async def test_a_sleeper_does_not_wake_early_because_the_clock_was_set_forward(tmp_path, set_clock):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(napping, 3600)
        await until(run, RunState.SLEEPING)
        set_clock(DAY_S)
        await asyncio.sleep(0.3)
        assert run.status().state is RunState.SLEEPING
        assert run.status().attempts == 1
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.register(napping)
        await asyncio.sleep(0.3)
        assert engine.handle((await engine.unfinished())[0]).status().state is RunState.SLEEPING


async def test_a_restart_after_the_clock_was_set_back_waits_no_longer(tmp_path, set_clock):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(napping, NAP_S)
        await until(run, RunState.SLEEPING)
    set_clock(-DAY_S)
    async with Engine(tmp_path / "a.run", isolation="inline") as engine, asyncio.timeout(20):
        assert await (await engine.submit(napping, 0.5)).result() == "rested"


fails_left = []


@task(max_attempts=2)
async def failing_once(ctx):
    if fails_left:
        fails_left.pop()
        raise ValueError("once")
    return "second time"


async def test_a_retry_comes_after_its_pause_though_the_clock_was_set_back(tmp_path, set_clock, monkeypatch):
    monkeypatch.setattr("headrace.agents.engine.run_commands._FIRST_RETRY_S", NAP_S)
    fails_left.append(1)
    async with Engine(tmp_path / "a.run", isolation="inline") as engine, asyncio.timeout(20):
        run = await engine.submit(failing_once)
        await until(run, RunState.SLEEPING)
        set_clock(-DAY_S)
        assert await run.result() == "second time"


def test_a_services_dates_are_read_by_its_own_clock(set_clock):
    set_clock(-DAY_S)
    headers = {
        "Date": "Tue, 01 Jan 2030 00:00:00 GMT",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2030-01-01T00:00:07Z",
    }
    hint = anthropic_rates(headers, service_time_s(headers))
    assert hint is not None
    assert hint.requests_reset_s == pytest.approx(7)
