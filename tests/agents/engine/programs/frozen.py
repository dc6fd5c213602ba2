"""An agent whose regular expression holds Python's lock for seconds: `frozen FILE SEEN`. It goes on until the file SEEN
is there, for half a minute at most.

Prints when that began and ended, and what the engine recorded.
"""

import asyncio
import json
import re
import sys
import time
from pathlib import Path

import headrace
from headrace import Engine

took: dict[str, float] = {}


def catastrophe() -> None:
    took["began"] = time.time()
    letters, match_s, seen = "a" * 18, 0.0, Path(sys.argv[2])
    while match_s < 0.6 or (not seen.exists() and time.time() - took["began"] < 30):
        began_s = time.time()
        letters += "a" * (match_s < 0.6)  # each letter doubles it
        re.match(r"(a+)+$", letters + "b")
        match_s = time.time() - began_s
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
