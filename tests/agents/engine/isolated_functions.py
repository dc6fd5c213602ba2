"""Agents that run in worker processes and get into trouble there. A log has a line for every step they take."""

import asyncio
import contextlib
import ctypes
import mmap
import os
import signal
import sys
import threading
import time
from pathlib import Path

import headrace
from headrace import Model
from headrace.limits import BreakerLimits

MB = 1 << 20


def logged(log, line):
    with Path(log).open("a") as file:
        file.write(f"{line}\n")
    return line


def lines(log):
    return Path(log).read_text().splitlines() if Path(log).exists() else []


def filled(size_bytes):
    held = bytearray(size_bytes)
    held[::4096] = b"x" * len(held[::4096])
    return held


def _exits(log):
    os._exit(7)


def _aborts(log):
    os.abort()


def _faults(log):
    ctypes.string_at(0)


def _is_killed(log):
    os.kill(os.getpid(), signal.SIGKILL)


def _closes_its_line(log):
    for descriptor in range(3, 64):
        try:
            os.close(descriptor)
        except OSError:
            continue
    time.sleep(30)


DEATHS = {
    "exit": (_exits, "exited with code 7"),
    "abort": (_aborts, "SIGABRT"),
    "segfault": (_faults, "SIGSEGV"),
    "kill": (_is_killed, "SIGKILL"),
    "closed line": (_closes_its_line, "its worker"),
}


def die_once(log, how):
    """The first time; later there is nothing wrong."""
    first = f"dying by {how}" not in lines(log)
    logged(log, f"dying by {how}")
    if first:
        DEATHS[how][0](log)
    return how


async def dying(ctx, log, how):
    await ctx.step("before", logged, log, "before")
    await ctx.step("deadly", die_once, log, how)
    await ctx.step("after", logged, log, "after")
    return [how, ctx.attempt]


async def crashing(ctx):
    os._exit(3)


async def effect_then_death(ctx, log):
    return await ctx.step("pay", die_once, log, "kill", side_effect=True)


async def counting(ctx, log, count):
    total = 0
    for number in range(count):
        total += int(await ctx.step(f"s{number}", logged, log, number))
        await asyncio.sleep(0.02)
    return total


def _bytes(size):
    return len(filled(size))


def _small_objects(size):
    return len([{str(number): number} for number in range(size // 300)])


def _numpy(size):
    import numpy as np

    return int(np.ones(size // 8).sum())


def _threads(size):
    held = []
    threads = [threading.Thread(target=lambda: held.append(filled(size // 8))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(held) if len(held) == 8 else memory_was_short()


def memory_was_short():
    raise MemoryError


def _mapped(size, flags):
    area = mmap.mmap(-1, size, flags)
    for at in range(0, size, 4096):
        area[at] = 1
    return area


def _private(size):
    return len(_mapped(size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def _shared(size):
    held = _mapped(size, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    time.sleep(1)
    return len(held)


def _memfd(size):
    descriptor = os.memfd_create("held")
    for _ in range(size // MB):
        os.write(descriptor, b"x" * MB)
    time.sleep(1)
    return size


def _child(size):
    pid = os.fork()
    if pid == 0:
        try:
            held = filled(size)
            time.sleep(30)
            os._exit(len(held) % 1)
        finally:
            os._exit(1)
    os.waitpid(pid, 0)
    return memory_was_short()


def _swallowing(size):
    held = []
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(MemoryError):
            held.append(filled(MB))
    return len(held)


def _aborting(size_bytes):
    """As code that is not Python's may where it gets no memory."""
    held = []
    with contextlib.suppress(MemoryError):
        for _ in range(size_bytes // MB):
            held.append(filled(MB))  # noqa: PERF401 - what it has is kept
    time.sleep(0.05)
    os.abort()


ALLOCATORS = {
    "bytearray": _bytes, "small objects": _small_objects, "numpy": _numpy, "threads": _threads, "private": _private,
    "shared": _shared, "memfd": _memfd, "child": _child, "swallowing": _swallowing,
    "aborting": _aborting,
}  # fmt: skip


async def taking(ctx, log, how, size_mb):
    await ctx.step("before", logged, log, f"before {how}")
    return await ctx.step("take", ALLOCATORS[how], size_mb * MB)


@headrace.task(name="grows", memory="40MB")
async def grows(ctx, log):
    logged(log, "try")
    return await ctx.step("take", _bytes, 90 * MB)


async def with_a_child_that_grows(ctx, log):
    await ctx.step("before", logged, log, "before")
    return await ctx.run(grows, log)


async def returning_a_lot(ctx, size_bytes):
    return "x" * size_bytes


async def modest(ctx, number):
    await asyncio.sleep(0.05)
    return await ctx.step("think", abs, -number)


async def waiting(ctx, file, number):
    """Hold a worker until a file is there."""
    while not Path(file).exists():
        await asyncio.sleep(0.02)
    return number


async def never_awaiting(ctx, log):
    await ctx.step("begin", logged, log, "begin")
    while True:
        pass


async def ignoring(ctx, log):
    await ctx.step("begin", logged, log, "begin")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            logged(log, "ignored")


async def wordy(ctx):
    for number in range(10_000):
        print("much to say", number, file=sys.stderr)
    return "said"


async def family(ctx, log):
    mine = await ctx.step("pid", os.getpid)
    theirs = [await ctx.run(member, log, number) for number in range(2)]
    return [mine == pid for pid in theirs]


async def member(ctx, log, number):
    await ctx.step("log", logged, log, number)
    return os.getpid()


async def asking(ctx):
    said = await ctx.ask(Model("test", canned_response="Fine."), "How is it?")
    with ctx.spool() as spool:
        spool.write(said.encode() * 1000)
        size = spool.tell()
    message = await ctx.receive()
    ctx.emit({"size": size})
    return [said, size, message]


async def asking_a_function(ctx):
    return await ctx.ask(Model.from_function(answering), "How is it?")


async def answering(request):
    return "Fine."


async def commanding(ctx, log, script, **options):
    end = await ctx.command([sys.executable, "-c", script, str(log)], **options)
    return [end.code, end.signal, end.output, end.errors[-200:]]


async def commanding_and_dying(ctx, log, command):
    """Its worker dies while the program runs."""

    async def die():
        while not lines(log):
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

    others = [die()] if ctx.attempt == 1 else []
    end, *_ = await asyncio.gather(ctx.command(command, name="send", side_effect=True), *others)
    return [end.code, end.output]


async def commanding_then_dying(ctx, log):
    end = await ctx.command([sys.executable, "-c", APPENDING, str(log)])
    await ctx.step("deadly", die_once, log, "kill")
    return end.output


APPENDING = "import sys; open(sys.argv[1], 'a').write('program\\n'); print('done')"


async def large(ctx, log):
    first = await ctx.step("large", times, "x", 5_000_000)
    await ctx.step("deadly", die_once, log, "kill")
    again = await ctx.step("larger", times, "y", 20_000_000)
    return [len(first), len(again)]


def times(text, count):
    return text * count


async def sleeping_in_a_step(ctx, log):
    await ctx.step("begin", logged, log, "begin")
    await ctx.step("long", time.sleep, 60)


async def commanding_badly(ctx):
    await ctx.command("ls -l")


async def stopping_itself(ctx, log):
    if not lines(log):
        logged(log, "stopping")
        os.kill(os.getpid(), signal.SIGSTOP)
    return ctx.attempt


async def napping(ctx, seconds):
    await ctx.sleep(seconds)
    return "rested"


async def conversation(ctx, *first):
    """Answers messages and parks between them, until one says "bye"."""
    said = [await ctx.step("first", answered, message) for message in first]
    while "bye" not in said:
        message = await ctx.receive(name=f"message {len(said)}")
        said.append(await ctx.step(f"reply {len(said)}", answered, message))
    return said


def answered(message):
    if message == "die":
        os._exit(9)
    if message == "raise":
        raise ValueError(message)
    return message


async def raising(ctx, words):
    raise ValueError(f"{words}\nand a second line")


@headrace.task(breaker=None)
async def raising_freely(ctx, number):
    raise ValueError(number)


@headrace.task(breaker=BreakerLimits(failures=1, cool_down_s=25.0))
async def raising_once(ctx, number):
    raise ValueError(number)


async def with_failing_child(ctx, number):
    try:
        await ctx.run(raising_freely, number)
    except headrace.HeadraceError:
        return "its child failed"


async def sleeping_long(ctx):
    await asyncio.sleep(600)


def ones(size_bytes):
    import numpy as np

    return np.ones(size_bytes // 8)


@headrace.task(name="growing", memory="60MB")
async def growing(ctx, log, size_mb, until=None, step_s=0.15):
    """Take 10 MB a step, and hold all of it, until a file is there."""
    held = []
    for number in range(size_mb // 10):
        held.append(ones(10 * MB))
        await ctx.step(f"more {number}", logged, log, number)
        await asyncio.sleep(step_s)
    while until and not Path(until).exists():
        await asyncio.sleep(0.02)
    return len(held)


@headrace.task(name="holding", memory="130MB")
async def holding(ctx, log, size_mb, until):
    held = ones(size_mb * MB)
    await ctx.step("hold", logged, log, "holds")
    while not Path(until).exists():
        await asyncio.sleep(0.02)
    return int(held.sum()) * 8 // MB


@headrace.task(name="promised", memory="130MB")
async def promised(ctx, log, size_mb, until):
    """Take it at once, when a file is there."""
    logged(log, "begin")
    while not Path(until).exists():
        await asyncio.sleep(0.02)
    return await ctx.step("take", _numpy, size_mb * MB)


@headrace.task(name="greedy", oom_retry=False)
async def greedy(ctx, size_mb):
    return await ctx.step("take", _bytes, size_mb * MB)
