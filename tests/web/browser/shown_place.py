"""What the page shows in the browser tests: a run that goes on, one that ended with failures, agents, a damaged file;
all for as long as a module's tests need them.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace import (
    Agent,
    Engine,
    Model,
    QuestionCheckBox,
    QuestionFreeText,
    QuestionMultipleChoice,
    QuestionNumerical,
    ScenarioList,
    Survey,
)
from headrace.agents.context import AgentContext
from tests.cli.live import live
from tests.web.running_page import RunningPage

_SURVEY = """
questions:
  - {kind: multiple_choice, name: mood, text: 'How do you feel about {{ scenario.city }}?', options: [Good, Bad]}
  - {kind: numerical, name: rating, text: Rate it., min: 0, max: 10}
  - {kind: free_text, name: why, text: 'Why?'}
"""
_CANNED = '{"mood":"Good","rating":7,"why":"The sea is near, and the light is long in summer."}'


@dataclass(frozen=True, slots=True)
class Shown:
    """The page, and the ids of its files."""

    page: RunningPage
    ended: str
    going: str
    engine: str


@pytest.fixture(scope="module")
def shown_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("shown")
    run_survey(place / "a run that ended.run")
    asyncio.run(_run_agents(place / "agents.run"))
    (place / "broken.run").write_bytes(b"this is no database at all" * 200)
    with live(place, *_words(place)) as running:
        running.state_once(place / "going.run", done=20)
        yield place


@pytest.fixture
def shown(shown_files: Path) -> Iterator[Shown]:
    with RunningPage(shown_files) as page:
        ids = {file["name"]: file["id"] for file in page.api("/runs")["files"]}
        yield Shown(page, ids["a run that ended.run"], ids["going.run"], ids["agents.run"])


def _words(place: Path) -> list[str]:
    """A run that nobody waits for, at a pace that leaves the machine to the browser."""
    (place / "s.yaml").write_text(_SURVEY)
    (place / "people.csv").write_text("agent_name,age,city\n" + "".join(f"p{i},{i},Oslo\n" for i in range(20_000)))
    (place / "cities.csv").write_text("city\nOslo\nLima\n")
    lists = ["--agents", "people.csv", "--scenarios", "cities.csv", "--concurrency", "8"]
    return ["run", "s.yaml", *lists, "--model", f"test,latency_s=0.05,canned_response={_CANNED}", "-o", "going.run"]


def run_survey(path: Path) -> None:
    survey = Survey(
        [
            QuestionMultipleChoice(
                question_name="mood",
                question_text="How do you feel about {{ scenario.city }}?",
                question_options=["Good", "Bad", "I would rather not say so here"],
            ),
            QuestionNumerical(question_name="rating", question_text="Rate it.", min_value=0, max_value=10),
            QuestionCheckBox(question_name="uses", question_text="Which?", question_options=["bus", "tram", "ferry"]),
            QuestionFreeText(question_name="why", question_text="Why? " + "Say it in your own words. " * 40),
        ]
    )
    agents = [
        Agent(name=f"p{number}", traits={"age": 20 + number, "city": ["Oslo", "Reykjavík"][number % 2]})
        for number in range(30)
    ]
    models = [
        Model("test", canned_response={"mood": "Good", "rating": 7, "uses": ["bus", "tram"], "why": "The sea. " * 90}),
        Model("test", canned_response={"mood": "Neither", "rating": "seven", "uses": ["ferry"], "why": "W" * 900}),
        Model("test", throw_exception=True, exception_probability=0.2, seed=1, canned_response="Bad"),
    ]
    survey.by(agents).by(ScenarioList.from_list("city", ["Oslo", "Lima"])).by(models).run(path, cache=False)


async def _run_agents(path: Path) -> None:
    async with Engine(path, isolation="inline") as engine:
        runs = [await engine.submit(_research, f"topic {number}", key=f"r{number}") for number in range(3)]
        for run in runs:
            await run.result()
        failing = await engine.submit(_fail, key="failing")
        with pytest.raises(Exception, match="no such library"):
            await failing.result()


async def _look_up(topic: str) -> str:
    return f"what is known about {topic}"


async def _research(ctx: AgentContext, topic: str) -> str:
    found = await ctx.step("look up", _look_up, topic)
    ctx.emit({"found": found})
    await ctx.checkpoint({"found": found})
    return found


async def _fail(ctx: AgentContext) -> None:
    raise RuntimeError("no such library: <b>tides</b>")
