"""What every pool is asked to do. Plain functions, in a module that any worker can import."""

import os
import signal
import time
from pathlib import Path
from typing import Any

TASKS, KILLER = 20, 4
STEPS, DEADLY_STEP = 10, 6
BATCHES, BATCH_S = 5, 0.4  # of round trips
LIMIT_BYTES = 300 << 20
RUNAWAY_MB = 1000


def echo(value: int) -> int:
    return value


def wait_or_die(number: int) -> int:
    """One of them takes its worker with it, while others run and wait."""
    if number == KILLER:
        die()
    time.sleep(0.05)
    return number


def run_away(megabytes: int) -> int:
    return len([bytearray(1 << 20) for _ in range(megabytes)])


def take_steps(path: str) -> int:
    """Each step leaves a line. The first attempt is killed in its sixth."""
    for step in range(STEPS):
        one_step(path, step)
    return STEPS


async def take_journaled_steps(ctx: Any, path: str) -> int:
    """The same as an agent run."""
    for step in range(STEPS):
        await ctx.step(f"step-{step}", one_step, path, step)
    return STEPS


def one_step(path: str, step: int) -> int:
    with Path(path).open("a") as file:
        file.write(f"{step}\n")
    if step == DEADLY_STEP - 1 and len(Path(path).read_text().splitlines()) == DEADLY_STEP:
        die()
    return step


def steps_taken(path: str) -> int:
    return len(Path(path).read_text().splitlines())


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# The same as tasks of our workers, which take a port and a payload.


def echo_in_worker(port: Any, payload: bytes) -> bytes:
    return payload


def wait_or_die_in_worker(port: Any, payload: bytes) -> bytes:
    return str(wait_or_die(int(payload))).encode()


def run_away_in_worker(port: Any, payload: bytes) -> bytes:
    return str(run_away(int(payload))).encode()
