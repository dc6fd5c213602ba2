import asyncio
import shutil
import sys

import pytest

from headrace.errors import InvalidInput
from headrace.workers.command import CommandLimits, run_command, with_heap_limit
from headrace.workers.pool import WorkerPool
from headrace.workers.wire import DeathKind
from tests.workers.trees import MB, children_of, soon

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
LIMITS = CommandLimits(memory_bytes=100 * MB, output_bytes=MB, timeout_s=20)
PYTHON = sys.executable


async def ended(pool: WorkerPool, *argv: str, limits: CommandLimits = LIMITS, **options):
    result = await run_command(pool, argv, limits, **options)
    with result.output:
        return result, result.output.read()


async def test_a_program_gets_its_input_and_its_output_is_kept(pool, tmp_path):
    result, output = await ended(
        pool,
        "sh",
        "-c",
        "cat; pwd; echo $TIDE",
        input=b"in\n",
        directory=tmp_path,
        environment={"TIDE": "high", "PATH": "/bin:/usr/bin"},
    )
    assert result.succeeded
    assert output == f"in\n{tmp_path}\nhigh\n".encode()


async def test_an_exit_code_and_a_signal_are_told_apart(pool):
    result, _ = await ended(pool, "sh", "-c", "echo why >&2; exit 9")
    assert (result.kind, result.code, result.signal) == (DeathKind.EXITED, 9, None)
    assert result.in_words() == "exited with 9; it said: why"
    result, _ = await ended(pool, "sh", "-c", "kill -9 $$")
    assert (result.kind, result.code, result.signal) == (DeathKind.SIGNALLED, None, 9)
    assert "SIGKILL" in result.in_words()


async def test_a_program_whose_children_take_too_much_is_ended(pool):
    taking = f"{PYTHON} -c 'x = bytearray(b\"x\") * (70 << 20); import time; time.sleep(30)' & "
    result, _ = await ended(pool, "sh", "-c", taking * 2 + "wait")
    assert result.kind is DeathKind.OUT_OF_MEMORY
    assert LIMITS.memory_bytes < result.peak_bytes < LIMITS.memory_bytes + 32 * MB


async def test_too_much_output_ends_a_program(pool):
    result, output = await ended(pool, "sh", "-c", "yes")
    assert result.kind is DeathKind.TOO_MUCH_OUTPUT
    assert len(output) > MB


async def test_too_much_output_is_no_result_though_the_program_was_quicker_than_the_watchdog(pool):
    result, _ = await ended(pool, "sh", "-c", f"head -c {LIMITS.output_bytes + 1} /dev/zero")
    assert result.kind is DeathKind.TOO_MUCH_OUTPUT
    assert f"more than {LIMITS.output_bytes:,}" in result.in_words()


async def test_a_program_that_takes_too_long_is_ended_with_its_children(pool):
    limits = CommandLimits(memory_bytes=100 * MB, timeout_s=0.2)
    result, _ = await ended(pool, "sh", "-c", "sleep 60 & sleep 60", limits=limits)
    assert result.kind is DeathKind.HUNG
    assert "longer than 0.2 s" in result.in_words()


async def test_a_cancelled_command_ends_its_program(pool):
    running = asyncio.ensure_future(run_command(pool, ["sleep", "60"], LIMITS))
    assert await soon(lambda: bool(children_of(pool.warden_pid)))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await soon(lambda: not children_of(pool.warden_pid))


async def test_what_cannot_be_run_is_refused_before_anything_starts(pool):
    with pytest.raises(InvalidInput, match="no program"):
        await run_command(pool, ["no-such-program"], LIMITS)
    with pytest.raises(InvalidInput, match="list"):
        await run_command(pool, "ls", LIMITS)


def test_node_is_told_how_large_its_heap_may_be():
    assert with_heap_limit(["/usr/bin/node", "x.js"], 400 * MB) == ["/usr/bin/node", "--max-old-space-size=300", "x.js"]
    chosen = ["node", "--max-old-space-size=50", "x.js"]
    assert with_heap_limit(chosen, 400 * MB) == chosen
    assert with_heap_limit(["sh", "x"], 400 * MB) == ["sh", "x"]


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node here")
async def test_node_runs_within_its_limit_and_its_own_heap_ends_it(pool):
    limits = CommandLimits(memory_bytes=150 * MB, timeout_s=30)
    result, output = await ended(pool, "node", "-e", "console.log(6 * 7)", limits=limits)
    assert (result.succeeded, output) == (True, b"42\n"), result.in_words()
    taking = "const held = []; for (;;) held.push(new Array(10000).fill({}))"
    result, _ = await ended(pool, "node", "-e", taking, limits=limits)
    assert not result.succeeded
    assert "heap" in result.error_tail
    assert result.peak_bytes < 150 * MB + 32 * MB
