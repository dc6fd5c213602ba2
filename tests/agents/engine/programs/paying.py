"""An engine whose run is inside a side effect for as long as it is let: prints the run's number then."""

import asyncio
import sys

from headrace import Engine

patience = {"s": 600.0}


async def pay() -> str:
    print(1, flush=True)
    await asyncio.sleep(patience["s"])
    return "paid again"


async def shop(ctx):
    return await ctx.step("pay", pay, side_effect=True)


async def main(path: str) -> None:
    async with Engine(path, isolation="inline", memory="+300MB") as engine:
        run = await engine.submit(shop)
        assert run.id == 1
        await run.result()


if __name__ == "__main__":
    import importlib  # under its own name: the run's kind has the module's name in it

    asyncio.run(importlib.import_module("tests.agents.engine.programs.paying").main(sys.argv[1]))
