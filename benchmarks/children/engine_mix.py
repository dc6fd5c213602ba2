"""Hungry agents, a survey and ten heartbeats in one engine. Prints what became of them as JSON.

    python -m benchmarks.children.engine_mix FILE AGENTS INTERVIEWS MEMORY SLOTS inline|process KIND

KIND is what agents do: `crunch` holds 50 to 150 MB, each agent its own size from its start to its end. `swell` holds
200 MB on average and 390 MB at the most; `swell_declared` is the same with the most declared (`memory=`),
`swell_lent` with the average: what is beyond it has to be lent.
Run again after it was killed, it goes on.
"""

import asyncio
import json
import sys
import time

import headrace
from headrace import Agent, AgentList, Engine, Model, Priority, QuestionFreeText, Survey

MB = 1_000_000
STEPS = 8
HEARTBEATS = 10
IDLE_S = 0.5  # before anything is submitted: what the engine takes by itself
SWELL_STEPS, SWELL_STEP_S = 24, 0.1
TOP_STEPS = range(10, 15)  # the same in every agent: two that begin together reach their tops together
LOW_MB, TOP_MB = 137, 379  # 150 and 390 MB with what a worker takes beside them: 200 MB on average


def size_mb(number: int) -> int:
    return 50 + number * 37 % 101


async def work(number: int, step: int, seconds: float = 0.02) -> int:
    await asyncio.sleep(seconds)
    return number * 100 + step


@headrace.task(name="crunch")
async def crunch(ctx, number: int) -> int:
    held = holding(size_mb(number))
    state = ctx.state or {"i": 0, "sum": 0}
    for i in range(state["i"], STEPS):
        state = {"i": i + 1, "sum": state["sum"] + await ctx.step(f"s{i}", work, number, i)}
        await ctx.checkpoint(state)
    return state["sum"] + held[0]


def holding(mb: int) -> bytearray:
    held = bytearray(mb * MB)
    for place in range(0, len(held), 4096):
        held[place] = 1  # an untouched page takes no memory
    return held


@headrace.task(name="swell")
async def swell(ctx, number: int) -> int:
    return await _swell(ctx, number)


@headrace.task(name="swell declared", memory="400MB")
async def swell_declared(ctx, number: int) -> int:
    return await _swell(ctx, number)


@headrace.task(name="swell lent", memory="200MB")
async def swell_lent(ctx, number: int) -> int:
    return await _swell(ctx, number)


async def _swell(ctx, number: int) -> int:
    held = bytearray()
    state = ctx.state or {"i": 0, "sum": 0}
    for i in range(state["i"], SWELL_STEPS):
        mb = TOP_MB if i in TOP_STEPS else LOW_MB
        if len(held) != mb * MB:
            held = bytearray()  # gives the former back first
            held = holding(mb)
        state = {"i": i + 1, "sum": state["sum"] + await ctx.step(f"s{i}", work, number, i, SWELL_STEP_S)}
        await ctx.checkpoint(state)
    return state["sum"]


def right(number: int) -> int:
    return sum(number * 100 + i for i in range(STEPS)) + 1


def right_of_swell(number: int) -> int:
    return sum(number * 100 + i for i in range(SWELL_STEPS))


SWELLING = {function.__name__: (function, right_of_swell) for function in (swell, swell_declared, swell_lent)}
KINDS = {"crunch": (crunch, right), **SWELLING}


def survey_of(interviews: int):
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well, {{ agent.age }}?")])
    people = AgentList(Agent(traits={"age": i % 90}) for i in range(interviews))
    return survey.by(people).by(Model("test", canned_response="x"))


async def main(path: str, agents: int, interviews: int, memory: str, slots: int, isolation: str, kind: str) -> None:
    function, expected = KINDS[kind]
    # Inline it is what a run is taken to need before one was seen; in processes it is also the most that one may have.
    slot_memory = "100MB" if isolation == "inline" else "400MB"
    async with Engine(
        path, isolation=isolation, memory=memory, slots=slots, slot_memory=slot_memory, queue_depth=5
    ) as engine:
        for number in range(HEARTBEATS):
            engine.every(0.25, lambda: None, name=f"beat {number}")
        await asyncio.sleep(IDLE_S)
        began_at = time.time()
        survey = asyncio.ensure_future(
            engine.run(survey_of(interviews), f"{path}.survey", priority=Priority.NORMAL, concurrency=100)
        )
        runs = [await engine.submit(function, number) for number in range(agents)]
        results = [await run.result() for run in runs]
        agents_ended_at = time.time()
        answered = len(await survey)
        status = engine.status()
        events = [[event.at, event.what, event.reason] for event in await engine.events(5000)]
    figures = {
        "right": sum(result == expected(number) for number, result in enumerate(results)),
        "answered": answered,
        "peak_bytes": status.peak_bytes,
        "budget_bytes": status.budget_bytes,
        "preemptions": status.counts.get("preempted", 0),
        "kills": status.counts.get("killed", 0),
        "shortages": status.counts.get("out of memory", 0),
        "beats": sum(beat.runs for beat in status.heartbeats),
        "skips": sum(beat.skips for beat in status.heartbeats),
        "began_at": began_at,
        "agents_ended_at": agents_ended_at,
        "seconds": time.time() - began_at,
        "events": events,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), *sys.argv[6:]))
