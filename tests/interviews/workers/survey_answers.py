"""Answers of models that run in workers: each does what its agent's `act` says, so that a test can choose who does it.

A process of its own shares nothing with the test, which sees what was called through files.
"""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

from headrace.models.provider import Request

_held: list[Any] = []


def act(request: Request) -> str:
    """`act` is a word, with a colon and an argument where it needs one."""
    word, _, argument = str(request.agent.get("act") or "").partition(":")
    match word:
        case "eat":
            _held.append(b"x" * int(argument))
        case "children":
            _eat_in_children(int(argument))
        case "swallow":
            _eat_whatever_is_said()
        case "write":
            return "x" * int(argument)
        case "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "borrow":  # takes memory, and gives it back
            held = b"x" * int(argument)
            del held
        case "exit":
            os._exit(int(argument))
        case "hang":
            while True:
                time.sleep(60)
        case "once":  # kills its worker the first time
            if not Path(argument).exists():
                Path(argument).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        case _:
            pass
    return f"{request.question_name} of {request.agent.get('n')} by {word or 'nobody'}"


def answer_anew(request: Request) -> str:
    return f"new {request.user_prompt[:15]}"


async def act_slowly(request: Request) -> str:
    await asyncio.sleep(0.02)
    return act(request)


async def reply(request: Request) -> str:
    """A plain model of one's own."""
    await asyncio.sleep(0.001)
    return f"{request.user_prompt.split('?')[0]}: {request.agent['n']}"


async def late_below_ten(request: Request) -> str:
    await asyncio.sleep(30 if request.agent["n"] < 10 else 0.01)
    return "x"


def pid(request: Request) -> str:
    return str(os.getpid())


async def pid_once_there_are_three(request: Request) -> str:
    """Which process this is. `act` is a directory where each of them makes itself known and waits for the others."""
    met = Path(request.agent["act"])
    (met / str(os.getpid())).touch()
    give_up_at = time.monotonic() + 30
    while len(list(met.iterdir())) < 3 and time.monotonic() < give_up_at:
        await asyncio.sleep(0.02)
    return str(os.getpid())


def _eat_in_children(count: int) -> None:
    """In as many children as keep each below what a single process may have."""
    children = [_child_that_eats(20_000_000) for _ in range(count // 20_000_000)]
    for child in children:
        os.waitpid(child, 0)


def _child_that_eats(count: int) -> int:
    child = os.fork()
    if not child:
        try:
            _held.append(b"x" * count)
            time.sleep(60)
        finally:
            os._exit(0)
    return child


def _eat_whatever_is_said() -> None:
    while True:
        try:
            _held.append(b"x" * (1 << 20))
        except MemoryError:
            continue
