"""An engine whose disk fills up while a step is journaled, and has room again later: FOLDER LOG inline|process.

A small disk is mounted over FOLDER, which needs namespaces of its own: unshare -Urm. LOG, on another disk, has a line
for each time a step ran. Tells how the engine, its runs and its owners' wishes ended: while it filled up, while it is
full, and with room.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import headrace
from headrace import Engine
from headrace.agents.context import AgentContext
from tests.trouble.programs.small_disks import fill, mount
from tests.trouble.programs.telling import tell

PAGES, FULL_AT, CHARS = 8, 5, 20_000


def write_page(folder: str, log: str, number: int) -> str:
    """The first time it gets to one of them, the disk is full when it returns."""
    with Path(log).open("a+") as file:
        file.seek(0)
        is_first = f"{number}\n" not in file
        file.write(f"{number}\n")
    if number == FULL_AT and is_first:
        fill(Path(folder, "filler"))
        time.sleep(0.2)  # the engine goes on meanwhile: nothing has to be written
    return str(number) * CHARS


@headrace.task(name="diary", memory="40MB")
async def keep_diary(ctx: AgentContext, folder: str, log: str) -> str:
    pages = [await ctx.step(f"page-{number}", write_page, folder, log, number) for number in range(PAGES)]
    return "".join(page[0] for page in pages)


@headrace.task(name="bystander", memory="40MB")
async def wait_for_it(ctx: AgentContext, number: int) -> int:
    """Still there when the disk is full."""
    if ctx.attempt == 1:
        await asyncio.sleep(60)
    return number


async def use(folder: Path, log: str, isolation: Any) -> dict[str, str]:
    """What came of each, in words."""
    ended: dict[str, str] = {}
    try:
        async with Engine(folder / "agents.run", isolation=isolation, memory="+512MB", stuck_after_s=0.3) as engine:
            bystander = await engine.submit(wait_for_it, 7)
            diary = await engine.submit(keep_diary, str(folder), log)
            for name, waited in (("diary", diary.result()), ("bystander", bystander.result())):
                ended[name] = await outcome(waited)
            if "StorageFull" in ended["diary"]:
                ended["submitted"] = await outcome(engine.submit(wait_for_it, 8))
    except Exception as error:  # noqa: BLE001 - told to the test, which judges it
        ended["engine"] = f"{type(error).__name__}: {error}"
    return ended


async def outcome(waited: Any) -> str:
    try:
        return str(await waited)
    except Exception as error:  # noqa: BLE001 - told to the test, which judges it
        return f"{type(error).__name__}: {error}"


def main(folder: Path, log: str, isolation: str) -> None:
    mount(folder, "size=4m")
    tell(**asyncio.run(use(folder, log, isolation)))
    tell(**asyncio.run(use(folder, log, isolation)))
    (folder / "filler").unlink()
    tell(**asyncio.run(use(folder, log, isolation)), ran=[int(line) for line in Path(log).read_text().split()])


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
