"""Six agents that take three times what they said, in a process that holds little else.

Prints what was stopped, and why.
"""

import asyncio
import json
import sys

import headrace
from headrace import Engine
from headrace.limits import MemoryLimits
from headrace.memory.measure.own_tree import tree_bytes

MB = 1_000_000


def filled(size_bytes: int) -> bytearray:
    held = bytearray(size_bytes)
    held[::4096] = b"x" * len(held[::4096])  # an untouched page takes no memory
    return held


@headrace.task(name="hungry", memory="20MB")
async def hungry(ctx, number):
    held = filled(60 * MB)
    state = ctx.state or {"i": 0}
    for i in range(state["i"], 30):
        await ctx.step(f"s{i}", asyncio.sleep, 0.03)
        await ctx.checkpoint({"i": i + 1})
    return [number, len(held)]


async def main() -> None:
    budget = MemoryLimits(budget_bytes=tree_bytes() + 220 * MB, calm_s=0.1, min_run_s=0.2, hopeless_after_s=2.0)
    async with Engine(sys.argv[1], isolation="inline", memory=budget, slots=4) as engine:
        runs = [await engine.submit(hungry, number) for number in range(6)]
        results = [await run.result() for run in runs]
        stopped = [event for event in await engine.events() if event.what in ("preempted", "killed")]
        attempts = sum(run.status().attempts for run in runs)
        preemptions = sum(run.status().preemptions for run in runs)
    told = [[event.reason, event.reading["used_bytes"] / event.reading["budget_bytes"]] for event in stopped]
    print(json.dumps({"results": results, "stopped": told, "attempts": attempts, "preemptions": preemptions}))


if __name__ == "__main__":
    asyncio.run(main())
