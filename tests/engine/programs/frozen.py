"""An agent whose regular expression holds Python's lock for seconds: `frozen FILE [theirs]`.

Prints when that began and ended, and what the engine recorded. With `theirs`, a timer of the program's own was there
before, and is to write to that file two seconds later.
"""

import asyncio
import faulthandler
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
    if len(sys.argv) > 2:
        with Path(sys.argv[2]).open("w") as theirs:
            faulthandler.dump_traceback_later(2.0, file=theirs)
            asyncio.run(main())
            give_up_at = time.monotonic() + 30
            while not Path(sys.argv[2]).stat().st_size and time.monotonic() < give_up_at:
                time.sleep(0.02)
    else:
        asyncio.run(main())
