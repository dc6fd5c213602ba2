"""Agents, a survey and a heartbeat in one engine; run again and again, it goes on where it was killed.

    python -m tests.agents.engine.programs.mix FILE EFFECTS inline|process

Each side effect appends a line to EFFECTS. Undecided runs are decided by looking whether theirs is there, as an owner
would. At the end the results are printed as JSON.
"""

import asyncio
import json
import sys
from pathlib import Path

import headrace
from headrace import Agent, AgentList, Engine, Model, Priority, QuestionFreeText, Survey
from headrace.errors import RunUndecided

AGENTS, NOTES, PEOPLE = 6, 8, 400
EFFECTS = Path(sys.argv[2])


def pay(name: str) -> str:
    with EFFECTS.open("a") as file:
        file.write(f"{name}\n")
        file.flush()
    return f"receipt of {name}"


async def look_up(number: int) -> dict:
    await asyncio.sleep(0.002)
    return {"number": number, "pages": [number] * 3}


@headrace.task(name="research", memory="5MB")
async def research(ctx, number):
    found = await ctx.step("search", look_up, number)
    state = ctx.state or {"i": 0, "sum": 0}
    for i in range(state["i"], NOTES):
        noted = await ctx.step(f"note-{i}", look_up, found["number"] + i)
        state = {"i": i + 1, "sum": state["sum"] + noted["number"]}
        await ctx.checkpoint(state)
    await ctx.sleep(0.01)
    receipt = await ctx.step("pay", pay, f"agent {number}", side_effect=True)
    said = await ctx.ask(Model("test", canned_response="Well done."), f"{number} is done")
    return [ctx.state["sum"], receipt, said]


def expected() -> list:
    sums = [sum(number + i for i in range(NOTES)) for number in range(AGENTS)]
    return [[total, f"receipt of agent {number}", "Well done."] for number, total in enumerate(sums)]


def survey_job():
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well, {{ agent.agent_name }}?")])
    people = AgentList(Agent(name=f"p{i}") for i in range(PEOPLE))
    return survey.by(people).by(Model("test", canned_response="x"))


async def outcome(engine: Engine, number: int):
    run = await engine.submit(research, number, key=f"agent {number}")
    while True:
        try:
            return await run.result()
        except RunUndecided as undecided:
            paid = f"agent {number}" in EFFECTS.read_text().splitlines() if EFFECTS.exists() else False
            if paid:
                await run.resolve(undecided.step, result=f"receipt of agent {number}")
            else:
                await run.resolve(undecided.step, again=True)


async def main() -> None:
    async with Engine(sys.argv[1], isolation=sys.argv[3], memory="+256MB", slots=3) as engine:
        engine.every(0.05, lambda: None, name="pulse")
        survey = asyncio.ensure_future(engine.run(survey_job(), sys.argv[1] + ".survey", priority=Priority.NORMAL))
        results = await asyncio.gather(*(outcome(engine, number) for number in range(AGENTS)))
        answered = len(await survey)
        print(json.dumps({"results": results, "answered": answered}))


if __name__ == "__main__":
    asyncio.run(main())
