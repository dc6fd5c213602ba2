"""Engines that are open at the same time, one for each path, each with a run that waits for a message: prints a line
when all of them do.
"""

import asyncio
import sys
from contextlib import AsyncExitStack

from headrace import Engine


async def listening(ctx):
    return await ctx.receive()


async def main(paths: list[str]) -> None:
    async with AsyncExitStack() as opened:
        for path in paths:
            engine = await opened.enter_async_context(Engine(path, isolation="inline", memory="+300MB"))
            await engine.submit(listening)
        print("open", flush=True)
        await asyncio.sleep(600)


if __name__ == "__main__":
    import importlib  # under its own name: the run's kind has the module's name in it

    asyncio.run(importlib.import_module("tests.agents.engine.programs.waiting").main(sys.argv[1:]))
