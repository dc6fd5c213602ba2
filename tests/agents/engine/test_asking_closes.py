"""What `ctx.ask` opens is closed with its engine."""

import subprocess
import sys
from pathlib import Path

from tests.models.server import HostileServer

PROGRAM = """
import asyncio, gc, sys
from headrace import Engine, Model

model = Model("m", service_name="openai_compatible", base_url=sys.argv[1])

async def agent(ctx):
    return await asyncio.gather(*(ctx.ask(model, f"Who is {number}?") for number in range(8)))

async def main():
    async with Engine("e.run", isolation="inline") as engine:
        run = await engine.submit(agent)
        print(await run.result())

asyncio.run(main())
gc.collect()
"""


def test_no_session_is_left_open_when_a_run_asks_several_times_at_once(tmp_path: Path):
    with HostileServer() as server:
        server.behave("ok")
        command = [sys.executable, "-X", "dev", "-c", PROGRAM, server.url]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.count("Good") == 8
    assert "Unclosed" not in ran.stderr, ran.stderr
