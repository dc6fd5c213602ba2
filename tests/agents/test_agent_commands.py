import asyncio
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from headrace.agents.commands import AgentCommands
from headrace.agents.contract import ProgramCall
from headrace.priority import Priority
from headrace.workers.lender import Lender
from headrace.workers.pool import WorkerPool

MB = 1 << 20


async def test_a_run_that_is_cancelled_when_its_program_has_just_ended_closes_the_programs_files(
    tmp_path: Path, monkeypatch
):
    files: list[IO[bytes]] = []
    gives_back = asyncio.Event()

    def opened(*arguments: Any, **options: Any) -> IO[bytes]:
        files.append(TemporaryFile(*arguments, **options))  # noqa: SIM115 - what is tested closes it
        return files[-1]

    async def never_settled(_lender: Lender) -> None:
        gives_back.set()
        await asyncio.sleep(60)

    monkeypatch.setattr("headrace.workers.command.TemporaryFile", opened)
    monkeypatch.setattr(Lender, "settle", never_settled)
    async with WorkerPool() as pool:
        commands = AgentCommands(pool, Lender(400 * MB, 300 * MB), tmp_path)
        call = ProgramCall(["true"], b"", str(tmp_path), None, None, None, 1000)
        running = asyncio.create_task(commands.run(call, Priority.HIGH))
        await gives_back.wait()
        running.cancel()
        await asyncio.wait([running])
    assert running.cancelled()
    assert [file.closed for file in files] == [True] * 3
