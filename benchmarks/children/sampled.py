"""Memory of a process tree, sampled from outside while something runs. Covers: starting the sampler."""

import asyncio
import sys

from benchmarks.processes import ROOT


async def started_sampler(*pids: int) -> asyncio.subprocess.Process:
    """Sampling when this returns; it tells what it saw when it is told to end."""
    pipe = asyncio.subprocess.PIPE
    sampler = await asyncio.create_subprocess_exec(
        *(sys.executable, "-S", "-m", "benchmarks.children.tree_sampler", *map(str, pids)),
        cwd=ROOT, stdin=pipe, stdout=pipe,
    )  # fmt: skip
    assert sampler.stdout is not None
    await sampler.stdout.readline()
    return sampler
