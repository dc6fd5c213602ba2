import subprocess
import sys
from pathlib import Path

import pytest

from headrace import Engine, Model, QuestionFreeText, Survey
from headrace.errors import OptionError, RunFailed
from headrace.telemetry.conventions import CAPTURE_VARIABLE
from tests.telemetry.collector import Collector, GotSpan
from tests.telemetry.watched_agents import failing, researcher

DURATION, TOKENS = "gen_ai.client.operation.duration", "gen_ai.client.token.usage"


TASKS = "invoke_agent tests.telemetry.watched_agents:"


def only(collector: Collector, name: str) -> GotSpan:
    (span,) = [span for span in collector.spans if span.name.startswith(name)]
    return span


@pytest.mark.parametrize("isolation", ["process", "inline"])
async def test_an_agent_run_is_a_span_with_its_steps_calls_and_children_inside(
    tmp_path: Path, collector: Collector, isolation: str
):
    async with Engine(tmp_path / "a.run", memory="+512MB", isolation=isolation, telemetry=True) as engine:
        run = await engine.submit(researcher, "tides")
        assert await run.result() == "secret-answer"
    agent, child = only(collector, f"{TASKS}researcher"), only(collector, f"{TASKS}child")
    inside = {span.name: span for span in collector.spans if span.parent == agent.id}
    assert sorted(inside) == [
        "chat test", "execute_tool check", "execute_tool search", child.name
    ]  # fmt: skip
    assert only(collector, "execute_tool child-step").parent == child.id
    assert {span.trace for span in collector.spans} == {agent.trace}
    assert agent.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent.name.removeprefix("invoke_agent "),
        "headrace.run": "a.run",
        "headrace.agent_run.id": 1,
        "headrace.agent_run.attempt": 1,
        "headrace.exit": "done",
    }
    assert inside["execute_tool check"].attributes == {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "check", "gen_ai.tool.type": "extension",
    }  # fmt: skip
    assert inside["execute_tool search"].attributes["gen_ai.tool.type"] == "function"
    chat = inside["chat test"]
    assert agent.started_at <= chat.started_at <= agent.started_at + agent.seconds
    assert collector.total(DURATION)[0] == 1
    assert collector.total(TOKENS, "gen_ai.token.type", "output") == (
        1, chat.attributes["gen_ai.usage.output_tokens"]
    )  # fmt: skip
    assert not [body for body in collector.bodies if b"secret" in body]


async def test_content_of_an_agent_s_calls_is_exported_where_it_is_switched_on(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(CAPTURE_VARIABLE, "true")
    async with Engine(tmp_path / "a.run", memory="+512MB", isolation="inline", telemetry=True) as engine:
        await (await engine.submit(researcher, "tides")).result()
    attributes = only(collector, "chat").attributes
    assert "secret-prompt: about tides" in attributes["gen_ai.input.messages"]
    assert "secret-answer" in attributes["gen_ai.output.messages"]


async def test_a_side_effect_that_raises_is_an_error_without_its_message(tmp_path: Path, collector: Collector):
    async with Engine(tmp_path / "a.run", memory="+512MB", isolation="inline", telemetry=True) as engine:
        run = await engine.submit(failing)
        with pytest.raises(RunFailed):
            await run.result()
    step, agent = only(collector, "execute_tool broken"), only(collector, "invoke_agent")
    assert (step.is_error, step.attributes["error.type"]) == (True, "raised")
    assert (agent.is_error, agent.attributes["error.type"], agent.attributes["headrace.exit"]) == (
        True, "failed", "failed"
    )  # fmt: skip
    assert not [body for body in collector.bodies if b"secret" in body]


async def test_a_survey_in_an_engine_with_telemetry_is_exported_too(tmp_path: Path, collector: Collector):
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    async with Engine(tmp_path / "a.run", memory="+512MB", isolation="inline", telemetry=True) as engine:
        await engine.run(survey.by(Model("test", canned_response="x")), tmp_path / "b.run")
    assert only(collector, "interview").attributes["headrace.run"] == "b.run"


def test_telemetry_of_an_engine_is_true_or_false(tmp_path: Path):
    with pytest.raises(OptionError, match="telemetry"):
        Engine(tmp_path / "a.run", telemetry="yes")


def test_an_engine_without_telemetry_loads_nothing_of_it(tmp_path: Path):
    program = """
import asyncio, sys
from headrace import Engine
from tests.telemetry.watched_agents import child
async def main():
    async with Engine(sys.argv[1], memory="+512MB", isolation="inline") as engine:
        await (await engine.submit(child, "tides")).result()
asyncio.run(main())
print(sorted(name for name in sys.modules if name.startswith(("opentelemetry", "headrace.telemetry"))))
"""
    command = [sys.executable, "-c", program, str(tmp_path / "a.run")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
