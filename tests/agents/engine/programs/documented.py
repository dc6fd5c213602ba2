"""The example that documents show, as it is written there, in a process that holds little else."""

import asyncio
import sys

from headrace import Agent, AgentList, Engine, Model, Priority, QuestionFreeText, ScenarioList, Survey


async def search(topic):
    return f"all about {topic}"


def write_note(page, i):
    return f"{page}, note {i}"


def ping():
    pass


async def research(ctx, topic):  # an agent run is any async function
    page = await ctx.step("search", search, topic)  # journaled: never repeated after a crash or a preemption
    for i in range((ctx.state or {"i": 0})["i"], 20):
        note = await ctx.step(f"note-{i}", write_note, page, i)
        await ctx.checkpoint({"i": i + 1})  # durable, and a place where the run may be preempted
    assert note == "all about tides, note 19"
    return "done"


async def main(isolation: str) -> None:
    survey = Survey([QuestionFreeText(question_name="mood", question_text="How do you like {{ scenario.city }}?")])
    job = (
        survey.by(AgentList(Agent(name=f"p{i}") for i in range(10)))
        .by(ScenarioList.from_list("city", ["Oslo", "Lima"]))
        .by(Model("test", canned_response="Good"))
    )
    async with Engine(
        "agents.run", memory="1GB", slots=2, slot_memory="400MB", queue_depth=5, isolation=isolation
    ) as engine:
        run = await engine.submit(research, "tides", priority=Priority.HIGH)  # waits while the queue is full
        engine.every(30, ping, name="heartbeat")  # LOW priority: skipped above 70 % of the budget, never a failure
        results = await engine.run(job, priority=Priority.NORMAL)  # a survey is one more tenant
        print(await run.result(), engine.status())
    assert len(results) == 20


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
