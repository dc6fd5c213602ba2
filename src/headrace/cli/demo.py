"""`headrace demo`: a survey worth looking at, with the test model. Covers: the job, and showing what came of it."""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.table import Table

from headrace.plan.job import Job
from headrace.plan.lists import AgentList, ScenarioList
from headrace.providers.contract import Request
from headrace.results.result import Result
from headrace.results.results import Results
from headrace.runtime.memory import tree_bytes
from headrace.survey.agents import Agent
from headrace.survey.models import Model
from headrace.survey.questions.free_text import QuestionFreeText
from headrace.survey.questions.multiple_choice import QuestionMultipleChoice
from headrace.survey.questions.numerical import QuestionNumerical
from headrace.survey.survey import Survey
from headrace.units import format_bytes, format_duration

_CITIES = ("Oslo", "Lima")
_JOBS = ("baker", "nurse", "teacher", "sailor", "clerk")
_MOODS = ("Good", "Mixed", "Bad")
# What EDSL 1.0.9 was measured to keep in RAM for each interview; see benchmarks/.
_PEER_BYTES_PER_INTERVIEW = 40_000


def run_demo(size: int, output: Path | None) -> None:
    console = Console(highlight=False)
    place = tempfile.TemporaryDirectory(prefix="headrace-demo-") if output is None else nullcontext()
    with place as directory:
        path = output or Path(str(directory)) / "demo.run"
        job = demo_job(size)
        console.print(f"Asking {size:,} interviews of {len(job.survey)} questions ...")
        samples, started_s = _MemorySamples(size), time.monotonic()
        results = job.run(path, limit=size, on_result=samples.take, progress_bar=True)
        _show_answers(console, results)
        _show_memory(console, results, samples, time.monotonic() - started_s)
        if output is not None:
            console.print(f'The run file is {path}. Open it with: Results.open("{path}")')
        results.close()


def demo_job(size: int) -> Job:
    survey = Survey(
        [
            QuestionMultipleChoice(
                question_name="mood",
                question_text="How do you feel about living in {{ scenario.city }}?",
                question_options=_MOODS,
            ),
            QuestionNumerical(
                question_name="rating",
                question_text="You said {{ mood.answer }}. Rate {{ scenario.city }}.",
                min_value=0,
                max_value=10,
            ),
            QuestionFreeText(question_name="why", question_text="Why, as a {{ agent.job }} of {{ agent.age }}?"),
        ]
    ).add_skip_rule("why", "{{ mood.answer }} == 'Mixed'")
    people = (
        Agent({"age": 20 + number * 7 % 60, "job": _JOBS[number % len(_JOBS)]}, name=f"p{number}")
        for number in range(-(-size // len(_CITIES)))
    )
    cities = ScenarioList.from_list("city", _CITIES[: min(size, len(_CITIES))])
    return survey.by(AgentList(people), cities, Model("test", canned_response=answer))


def answer(request: Request) -> str | int:
    """What the test model says: the same in every run, and different from person to person."""
    person = f"{request.agent['agent_name']} {request.scenario['city']}"
    chance = hashlib.blake2b(person.encode(), digest_size=2).digest()[0]
    mood = _MOODS[(chance + request.agent["age"]) % 3 if request.scenario["city"] == "Oslo" else chance % 2]
    match request.question_name:
        case "mood":
            return mood
        case "rating":
            return {"Good": 8, "Mixed": 5, "Bad": 2}[mood] + chance % 3 - 1
        case _:
            return f"A {request.agent['job']} sees {'much to like' if mood == 'Good' else 'little to like'} here."


class _MemorySamples:
    """Memory at some thirty moments of a run, whatever its length."""

    def __init__(self, interviews: int) -> None:
        self._every = max(1, interviews // 30)
        self._seen = 0
        self.taken_bytes = [tree_bytes()]

    def take(self, result: Result) -> None:
        del result
        self._seen += 1
        if self._seen % self._every == 0:
            self.taken_bytes.append(tree_bytes())


def _show_answers(console: Console, results: Results) -> None:
    table = Table(title=f"{len(results):,} interviews")
    for heading in ("city", "mood", "answers", "mean rating"):
        table.add_column(heading, justify="right" if heading in ("answers", "mean rating") else "left")
    groups = 'select "scenario.city", mood, count(*), avg(rating) from self group by 1, 2 order by 1, 2'
    for city, mood, count, rating in results.sql(groups):
        table.add_row(city, mood, f"{count:,}", f"{rating:.1f}")
    console.print(table)
    people = Table(title="the first few")
    columns = (
        "agent.agent_name",
        "agent.age",
        "agent.job",
        "scenario.city",
        "answer.mood",
        "answer.rating",
        "answer.why",
    )
    for name in columns:
        people.add_column(name.partition(".")[2].removeprefix("agent_"))
    for row in results.select(*columns).head(5).to_dicts():
        people.add_row(*(str(row[name]) if row[name] is not None else "[dim]skipped[/]" for name in columns))
    console.print(people)


def _show_memory(console: Console, results: Results, samples: _MemorySamples, took_s: float) -> None:
    stats, taken = results.stats(), samples.taken_bytes
    grown = max(taken) - taken[0]
    console.print(
        f"memory  {_sparkline(taken)}  {format_bytes(taken[0])} at the start, {format_bytes(max(taken))} at most"
    )
    console.print(
        f"        +{format_bytes(grown)} for {stats.interviews:,} interviews; "
        f"40 KB each would be +{format_bytes(stats.interviews * _PEER_BYTES_PER_INTERVIEW)}"
    )
    console.print(f"time    {format_duration(took_s)}, {stats.interviews / took_s:,.0f} interviews a second")


def _sparkline(values: list[int]) -> str:
    """Drawn from zero: a flat line means flat memory, not a magnified wobble."""
    levels = "▁▂▃▄▅▆▇█" if "utf" in (sys.stdout.encoding or "").lower() else "_.-=+*%#"
    return "".join(levels[min(7, value * 8 // (max(values) + 1))] for value in values)
