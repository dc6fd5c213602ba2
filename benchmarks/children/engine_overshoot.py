"""Each allocator as two agents at once in a real engine, watched from outside: `engine_overshoot DIRECTORY MEMORY`.

Each takes far more than there is, dies of it beside the other, is tried again alone with all there is, and is set
aside.
Does not cover: single workers with fixed limits (children.overshoot).
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import apsw

import headrace
from benchmarks.children import allocators
from benchmarks.children.sampled import started_sampler
from benchmarks.processes import print_figures
from headrace import Engine
from headrace.errors import RunFailed

_TOGETHER = 2


def allocate(name: str, directory: str) -> None:
    getattr(allocators, name)(None, directory.encode())


@headrace.task(name="take", memory="100MB")
async def take(ctx, name: str, files: str, number: int) -> None:
    if ctx.attempt > 1:  # nothing leads from files on tmpfs to a writer that has ended: whoever comes next tidies up
        for left in os.listdir(files):  # noqa: PTH208
            shutil.rmtree(f"{files}/{left}")
    directory = f"{files}/{number}"
    os.mkdir(directory)  # noqa: PTH102
    await ctx.step("take", allocate, name, directory)


async def main(directory: str, memory: str) -> list[dict[str, Any]]:
    return [await _watched(Path(directory, f"{one.__name__}.run"), memory, one.__name__) for one in allocators.ALL]


async def _watched(path: Path, memory: str, name: str) -> dict[str, Any]:
    files = tempfile.mkdtemp(prefix="headrace-", dir="/dev/shm")
    try:
        async with Engine(
            path, isolation="process", memory=memory, slots=_TOGETHER, slot_memory="400MB",
            preload=["benchmarks.children.allocators"],
        ) as engine:  # fmt: skip
            sampler = await started_sampler(os.getpid(), _warden_of(path))
            runs = [await engine.submit(take, name, files, number) for number in range(_TOGETHER)]
            ends = await asyncio.gather(*(run.result() for run in runs), return_exceptions=True)
            told, _ = await sampler.communicate(b"end")
            budget_bytes, deaths = engine.status().budget_bytes, engine.status().counts.get("out of memory", 0)
    finally:
        shutil.rmtree(files)
    for end in ends:
        if not isinstance(end, RunFailed):
            raise AssertionError(f"{name} was to be set aside, and ended with {end!r}")
    return {"allocator": name, "budget_bytes": budget_bytes, "deaths": deaths, **json.loads(told)}


def _warden_of(path: Path) -> int:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute("SELECT value FROM meta WHERE key = 'warden'").get
    finally:
        connection.close()


if __name__ == "__main__":
    print_figures(engine=asyncio.run(main(sys.argv[1], sys.argv[2])))
