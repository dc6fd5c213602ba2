"""How much memory comes back when an agent is preempted: `engine_reclaimed FILE blocks|objects`.

The agent takes 60 MB piece by piece, in turns with another that stays: in large blocks, or as small objects. Then
memory gets short and it is told to stop. What the process uses is read before that and after.
"""

import asyncio
import sys
import threading

import headrace
from benchmarks.processes import print_figures
from headrace import Engine
from headrace.limits import MemoryLimits
from headrace.memory.measure.own_tree import tree_bytes

MB = 1_000_000
PIECES = 30
PIECE_BYTES = 2 * MB
_OBJECT_BYTES = 100
_is_over = threading.Event()
_has_all = threading.Event()


def piece(what: str, size_bytes: int) -> object:
    if what == "blocks":
        held = bytearray(size_bytes)
        held[::4096] = b"x" * len(held[::4096])  # an untouched page takes no memory
        return held
    return [f"{number:043d}" for number in range(size_bytes // _OBJECT_BYTES)]  # with its place in the list


@headrace.task(name="stays", memory="20MB")
async def stays(ctx, what: str) -> None:
    held: list[object] = []
    for number in range(PIECES):
        held.append(piece(what, PIECE_BYTES // 4))
        await ctx.step(f"s{number}", asyncio.sleep, 0)
    await asyncio.to_thread(_is_over.wait)


@headrace.task(name="goes", memory="70MB")
async def goes(ctx, what: str) -> int:
    if ctx.attempt > 1:
        return ctx.attempt
    held: list[object] = []
    for number in range(PIECES):
        held.append(piece(what, PIECE_BYTES))
        await ctx.step(f"s{number}", asyncio.sleep, 0)
    _has_all.set()
    number = PIECES
    while True:
        await ctx.step(f"s{number}", asyncio.sleep, 0.02)
        number += 1


async def until_one_has_stopped(engine: Engine) -> None:
    for _ in range(3000):
        if engine.status().counts.get("stopped"):
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


async def main(path: str, what: str) -> None:
    limits = MemoryLimits(budget_bytes=tree_bytes() + 300 * MB, calm_s=0.1, min_run_s=0.1)
    async with Engine(path, isolation="inline", memory=limits, slots=2) as engine:
        first = await engine.submit(stays, what)
        run = await engine.submit(goes, what)
        await asyncio.to_thread(_has_all.wait)
        filler = piece("blocks", int(0.88 * limits.budget_bytes) - tree_bytes())
        before = tree_bytes()
        await until_one_has_stopped(engine)
        after = tree_bytes()
        del filler
        assert await run.result() > 1
        _is_over.set()
        await first.result()
    print_figures(held_bytes=PIECES * PIECE_BYTES, given_back_bytes=before - after)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
