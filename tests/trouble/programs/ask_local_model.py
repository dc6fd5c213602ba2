"""Asks the local model, tells the id of its process, and then has it write for as long as it will."""

import asyncio
import os
from pathlib import Path

from headrace import Model
from headrace.models.protocols.local import LocalProvider
from headrace.models.provider import Request
from tests.trouble.programs.telling import tell


async def main() -> None:
    model = LocalProvider(Model("local", max_tokens=2000))
    await model.ask(Request("q", "", "Good or bad?", {"enum": ["Good", "Bad"]}, {}, {}, 0, 1))
    asking = asyncio.create_task(model.ask(Request("q", "", "Count to 1000.", {"type": "string"}, {}, {}, 0, 1)))
    await asyncio.sleep(0.1)
    tell(pid=int(Path(f"/proc/self/task/{os.getpid()}/children").read_text()))
    await asking


asyncio.run(main())
