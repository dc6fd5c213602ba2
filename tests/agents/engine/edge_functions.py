"""Agents at the edges of what worker processes allow."""

import asyncio
import faulthandler
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import headrace
from headrace import Model
from headrace.errors import RunFailed
from tests.agents.engine.isolated_functions import MB, filled, logged


async def hungry(ctx, number, size_mb):
    return len(filled(size_mb * MB))


async def commanding_with_a_number_in_its_environment(ctx):
    return (await ctx.command(["true"], environment={"PORT": 8080})).code


async def asking_a_number(ctx):
    return await ctx.ask(Model("test", canned_response="Fine."), 5)


async def stepping_with_bytes_for_a_name(ctx):
    return await ctx.step(b"name", abs, -1)


async def speaking_nonsense(ctx):
    ctx._link.entering(5)  # whatever gets past `ctx` some day
    await asyncio.sleep(60)


async def child(ctx, log):
    return await ctx.step("child", logged, log, "child")


async def leaving_a_child_behind(ctx, log):
    child_run = asyncio.create_task(ctx.run(child, log))
    await asyncio.sleep(0)
    return child_run.done()


async def leaving_a_thread_behind(ctx):
    asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)


async def leaving_a_task_behind(ctx):
    asyncio.get_running_loop().call_later(0.001, time.sleep, 60)


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError


async def raising_what_cannot_be_said(ctx):
    raise Unspeakable


async def raising_generator_exit(ctx):
    raise GeneratorExit


async def raising_cancelled(ctx):
    raise asyncio.CancelledError


async def raising_keyboard_interrupt(ctx):
    raise KeyboardInterrupt


async def has_preloaded(ctx, module):
    return module in sys.modules


async def spooling_much(ctx):
    ctx.spool().write(bytes(1_500_000))


async def becoming_another_program(ctx):
    os.execvp("sleep", ["sleep", "60"])


async def emitting_much(ctx):
    for _ in range(60):
        ctx.emit("x" * 5_000_000)
    return "emitted"


async def listing_what_its_program_has_open(ctx):
    end = await ctx.command(["sh", "-c", "ls /proc/$$/fd"])
    return end.output.split()


@headrace.task(timeout_s=0.3)
async def too_slow(ctx):
    await asyncio.sleep(60)


class Holder:
    async def method(self, ctx):
        return 1


async def stopping_its_loop(ctx):
    asyncio.get_running_loop().stop()
    await asyncio.sleep(1)


async def commanding_in_a_place_that_is_not_there(ctx):
    return (await ctx.command(["true"], directory="/not/there")).errors


def forked(count):
    for _ in range(count):
        if os.fork() == 0:
            taken = filled(8 * MB)
            time.sleep(60)
            os._exit(len(taken) and 0)
    time.sleep(60)


async def forking(ctx):
    await ctx.step("fork", forked, 150)


async def commanding_many_small_programs(ctx):
    ends = await asyncio.gather(*[ctx.command(["sh", "-c", f"echo {number}"], memory="12MB") for number in range(40)])
    return [end.output for end in ends], max(end.peak_bytes for end in ends)


async def refused_at_once(ctx):
    return len(bytearray(2000 * MB))


async def outliving_a_childs_memory_error(ctx):
    try:
        await ctx.run(refused_at_once)
    except RunFailed as error:
        return [str(error), len(filled(60 * MB))]


async def leaving(ctx, what):
    match what:
        case "a thread":
            threading.Thread(target=time.sleep, args=[60], daemon=True).start()
        case "a process":
            subprocess.Popen(["sleep", "60"], start_new_session=True)
        case "a stream closed":
            os.close(0)
        case "a timer":
            signal.alarm(60)
        case "another directory":
            os.chdir("/")
        case "a signal ignored":
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        case "another limit":
            resource.setrlimit(resource.RLIMIT_NOFILE, (30, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        case _:
            faulthandler.enable()
            await asyncio.to_thread(abs, 1)
            await ctx.step("clean", subprocess.call, ["true"])
    return os.getpid()


def forked_and_awaited(count):
    pids = []
    for _ in range(count):
        if (pid := os.fork()) == 0:
            time.sleep(1.5)
            os._exit(0)
        pids.append(pid)
    return len([os.waitpid(pid, 0) for pid in pids])


async def forking_a_few(ctx):
    return await ctx.step("fork", forked_and_awaited, 16)


@headrace.task(name="sleeping", memory="30MB")
async def sleeping_in_its_loop(ctx, seconds):
    began = time.monotonic()
    time.sleep(seconds)
    return time.monotonic() - began


@headrace.task(name="spinning", memory="30MB")
async def spinning_in_its_loop(ctx, over):
    while not os.path.exists(over):  # noqa: PTH110 - as a thoughtless agent would
        pass
    return "over"


@headrace.task(name="waiting", memory="30MB")
async def waiting_beside_them(ctx, seconds):
    await asyncio.sleep(seconds)
    return await ctx.step("on", abs, -1)


async def failing_to_pay_and_never_awaiting_again(ctx, log):
    try:
        await ctx.step("pay", int, "none", side_effect=True)
    except ValueError:
        logged(log, "failed")
    while True:
        time.sleep(0.1)


async def stopping_its_warden(ctx):
    os.kill(os.getppid(), signal.SIGSTOP)
    await asyncio.sleep(0.2)
    return "gone on"


async def killing_its_warden(ctx, log):
    logged(log, "kills")
    os.kill(os.getppid(), signal.SIGKILL)
    while True:
        await asyncio.sleep(0.1)
