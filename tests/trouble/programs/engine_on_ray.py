"""Agent runs on a Ray cluster: PATH LOG RUNS STEPS ADDRESS. LOG has a line for each step that was taken.

Tells when the engine is open, and the results in the end. Run again after a kill, it goes on.
"""

import asyncio
import logging
import sys
from pathlib import Path

from headrace import Engine, Ray
from headrace.agents.context import AgentContext
from tests.trouble.programs.telling import tell

PAUSE_S = 0.05


def note(log: str, line: str) -> str:
    with Path(log).open("a") as file:
        file.write(f"{line}\n")
    return line


async def take(log: str, line: str) -> str:
    note(log, line)
    await asyncio.sleep(PAUSE_S)
    return line


async def walk(ctx: AgentContext, log: str, number: int, steps: int) -> int:
    for step in range(steps):
        await ctx.step(f"step-{step}", take, log, f"{number}-{step}")
    paid = await ctx.step("pay", note, log, f"{number}-paid", side_effect=True)
    said = await ctx.command(["sh", "-c", "echo done"])
    return len(paid) + len(said.output)


async def main(path: str, log: str, runs: int, steps: int, address: str) -> None:
    ray = Ray(address, slots_per_node=2)
    async with Engine(path, executor=ray, memory="+600MB", queue_depth=runs) as engine:
        submitted = [await engine.submit(walk, log, number, steps) for number in range(runs)]
        tell(open=True)
        results = await asyncio.gather(*(run.result() for run in submitted))
        tell(results=results, events=[event.what for event in await engine.events()])


if __name__ == "__main__":
    logging.getLogger("headrace").addHandler(logging.NullHandler())  # what it says of lost nodes is no complaint
    place, log, runs, steps, address = sys.argv[1:]
    asyncio.run(main(place, log, int(runs), int(steps), address))
