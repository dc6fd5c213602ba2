"""Runs a survey inside an engine, until it is killed: ENGINE RUN URL PEOPLE."""

import asyncio
import sys

from headrace import Agent, AgentList, Engine, Job, Model, Priority, QuestionNumerical, Survey


def job_of(url: str, people: int) -> Job:
    survey = Survey([QuestionNumerical(question_name="n", question_text="Number {{ agent.number }}, times 3.")])
    model = Model("m", service_name="openai_compatible", base_url=url, price={"input": 0, "output": 0})
    return survey.by(AgentList(Agent({"number": number}) for number in range(people))).by(model)


async def main(engine_path: str, run_path: str, url: str, people: str) -> None:
    async with Engine(engine_path, isolation="inline") as engine:
        await engine.run(job_of(url, int(people)), run_path, concurrency=4, priority=Priority.HIGH)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
