"""The adversarial mix with side effects in it, to be killed and started again until it has ended.

    python -m benchmarks.children.killed_mix DIRECTORY AGENTS INTERVIEWS MEMORY SLOTS inline|process

Everything that happens adds a line to a file in DIRECTORY, behind the life that the environment names: `steps` (agent,
step, time) as each begins, `effects` when one happens, `asked` for each interview, `decided` for what the owner says of
an effect that was cut short. A line is one write at the end of a file, so a kill leaves whole lines. Prints the results
as JSON.
"""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import headrace
from benchmarks.children.engine_mix import HEARTBEATS, MB, STEPS, right, size_mb
from benchmarks.engine_lives import LIFE
from benchmarks.processes import print_figures
from headrace import Agent, AgentList, Engine, Model, Priority, QuestionFreeText, Survey
from headrace.errors import RunUndecided

_EFFECT_EVERY = 4
_HALF_STEP_S = 0.05  # long enough for kills to meet steps under way


def has_effect(step: int) -> bool:
    return step % _EFFECT_EVERY == _EFFECT_EVERY - 1


def note(directory: str, file: str, *told: object) -> None:
    line = " ".join(map(str, (os.environ[LIFE].rpartition(":")[2], *told)))
    descriptor = os.open(f"{directory}/{file}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


async def work(directory: str, number: int, step: int) -> int:
    note(directory, "steps", number, f"s{step}", time.time())
    await asyncio.sleep(_HALF_STEP_S)
    if has_effect(step):
        note(directory, "effects", number, f"s{step}")
    await asyncio.sleep(_HALF_STEP_S)
    return result_of(number, step)


def result_of(number: int, step: int) -> int:
    return number * 100 + step


@headrace.task(name="spend")
async def spend(ctx, directory: str, number: int) -> int:
    held = bytearray(size_mb(number) * MB)
    for place in range(0, len(held), 4096):
        held[place] = 1  # an untouched page takes no memory
    state = ctx.state or {"i": 0, "sum": 0}
    for i in range(state["i"], STEPS):
        took = await ctx.step(f"s{i}", work, directory, number, i, side_effect=has_effect(i))
        state = {"i": i + 1, "sum": state["sum"] + took}
        await ctx.checkpoint(state)
    return state["sum"] + held[0]


def survey_of(directory: str, interviews: int):
    def answer(request: Any) -> str:
        number = request.agent["number"]
        note(directory, "asked", number)
        return f"{number} it is"

    survey = Survey([QuestionFreeText(question_name="q", question_text="Well, {{ agent.number }}?")])
    people = AgentList(Agent(traits={"number": i}) for i in range(interviews))
    return survey.by(people).by(Model("test", canned_response=answer))


async def outcome(engine: Engine, directory: str, number: int) -> int:
    run = await engine.submit(spend, directory, number, key=str(number))
    while True:
        try:
            return await run.result()
        except RunUndecided as undecided:
            await _decide(run, undecided.step, directory, number)


async def _decide(run: Any, step: str, directory: str, number: int) -> None:
    """As an owner does who can look whether it has happened."""
    if _has_happened(directory, number, step):
        note(directory, "decided", number, step, "happened")
        await run.resolve(step, result=result_of(number, int(step[1:])))
    else:
        note(directory, "decided", number, step, "again")
        await run.resolve(step, again=True)


def _has_happened(directory: str, number: int, step: str) -> bool:
    effects = Path(directory, "effects")
    lines = effects.read_text("ascii").splitlines() if effects.exists() else []
    return any(line.split()[1:] == [str(number), step] for line in lines)


async def main(directory: str, agents: int, interviews: int, memory: str, slots: int, isolation: Any) -> None:
    path = Path(directory, "mix.run")
    slot_memory = "100MB" if isolation == "inline" else "400MB"
    async with Engine(
        path, isolation=isolation, memory=memory, slots=slots, slot_memory=slot_memory, queue_depth=5
    ) as engine:
        for number in range(HEARTBEATS):
            engine.every(0.25, lambda: None, name=f"beat {number}")
        job = survey_of(directory, interviews)
        survey = asyncio.ensure_future(engine.run(job, f"{path}.survey", priority=Priority.NORMAL, concurrency=100))
        results = await asyncio.gather(*(outcome(engine, directory, number) for number in range(agents)))
        answered = len(await survey)
        counts = engine.status().counts
    as_expected = sum(result == right(number) for number, result in enumerate(results))
    print_figures(right=as_expected, results=results, answered=answered, counts=counts)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), sys.argv[6]))
