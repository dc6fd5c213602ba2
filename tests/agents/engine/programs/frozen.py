"""An agent whose regular expression holds Python's lock for seconds: `frozen FILE`.

Prints when that began and ended, and what the engine recorded.
"""

import asyncio
import json
import re
import sys
import time

import headrace
from headrace import Engine

took: dict[str, float] = {}


def catastrophe() -> None:
    took["began"] = time.time()
    letters = "a" * 18
    while time.time() - took["began"] < 1.2:  # each letter doubles it, and the last one takes more than half of it all
        letters += "a"
        re.match(r"(a+)+$", letters + "b")
    took["ended"] = time.time()


@headrace.task(name="freezing")
async def freezing(ctx):
    catastrophe()


async def main() -> None:
    async with Engine(sys.argv[1], isolation="inline", stuck_after_s=0.3) as engine:
        await (await engine.submit(freezing)).result()
        await asyncio.sleep(0.5)
        events = [event.reason for event in await engine.events() if event.what == "loop stuck"]
    print(json.dumps({**took, "events": events}))


if __name__ == "__main__":
    asyncio.run(main())
