"""Asks a service whose replies are large: HOW PATH COUNT URL, HOW being "job" or "engine". Tells the memory it had."""

import asyncio
import sys
from pathlib import Path

from headrace import Agent, AgentList, Engine, Job, Model, QuestionFreeText, Survey
from tests.trouble.programs.telling import outcome_of, peak_bytes, resident_bytes, tell

EXTRA_BYTES = 64_000_000


def job_of(count: int, url: str) -> Job:
    survey = Survey([QuestionFreeText(question_name="letter", question_text="Write to {{ agent.number }}.")])
    model = Model("m", service_name="openai_compatible", base_url=url, price={"input": 0, "output": 0})
    return survey.by(AgentList(Agent({"number": number}) for number in range(count))).by(model)


def by_itself(job: Job, path: Path) -> None:
    job.run(path, memory="+64MB", cache=False).close()


def in_an_engine(job: Job, path: Path) -> None:
    async def main() -> None:
        async with Engine(path.with_suffix(".engine"), memory="+64MB", isolation="inline") as engine:
            (await engine.run(job, path, cache=False)).close()

    asyncio.run(main())


if __name__ == "__main__":
    how, path, count, url = sys.argv[1:]
    job, budget_bytes = job_of(int(count), url), resident_bytes() + EXTRA_BYTES
    ended = outcome_of(lambda: {"job": by_itself, "engine": in_an_engine}[how](job, Path(path)))
    tell(**ended, peak_bytes=peak_bytes(), budget_bytes=budget_bytes)
