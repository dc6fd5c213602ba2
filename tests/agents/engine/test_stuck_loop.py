import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace import Engine
from tests.agents.engine import edge_functions

ROOT = Path(__file__).parents[3]


def started(path: Path) -> subprocess.Popen[str]:
    arguments = ["tests.agents.engine.programs.frozen", str(path), str(path.with_name("seen"))]
    command = [sys.executable, "-W", "error", "-m", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def seen_frozen(path: Path, child: subprocess.Popen[str]) -> float:
    """When the stack was there for this process to see."""
    place, give_up_at = path.with_name(f".{path.name}-stuck"), time.monotonic() + 60
    while not (place.exists() and "catastrophe" in place.read_text()):
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    return time.time()


def ended(child: subprocess.Popen[str]) -> dict:
    out, complaints = child.communicate(timeout=60)
    assert child.returncode == 0, complaints
    return json.loads(out)


def test_what_holds_pythons_lock_is_written_down_while_it_does(tmp_path):
    path = tmp_path / "a.run"
    child = started(path)
    seen_at = seen_frozen(path, child)
    path.with_name("seen").touch()
    told = ended(child)
    assert told["began"] < seen_at < told["ended"]
    (reason,) = told["events"][:1]
    assert "in catastrophe" in reason
    assert 're.match(r"(a+)+$"' in reason
    assert not list(tmp_path.glob(".*stuck"))


async def test_a_process_that_was_killed_while_stuck_leaves_word_of_it(tmp_path):
    path = tmp_path / "a.run"
    child = started(path)
    seen_frozen(path, child)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    async with Engine(path, isolation="inline") as engine:
        told = [event.reason for event in await engine.events() if event.what == "loop stuck"]
        assert "until an earlier process ended" in told[-1]
        assert "in catastrophe" in told[-1]
    assert not list(tmp_path.glob(".*stuck"))


async def stuck_in(engine: Engine, function: str) -> list[tuple[int | None, str]]:
    """Reports that name the function: a busy machine may hold up other loops, too."""
    events = [event for event in await engine.events() if event.what == "loop stuck"]
    return [(event.run, event.reason) for event in events if f"in {function}" in event.reason]


@pytest.mark.usefixtures("small_warden")
async def test_what_blocks_a_workers_loop_is_told_while_it_does(tmp_path):
    over = tmp_path / "over"
    async with Engine(tmp_path / "a.run", memory="+400MB", slots=3, stuck_after_s=1.0) as engine:
        waiting = await engine.submit(edge_functions.waiting_beside_them, 2.0)
        sleeping = await engine.submit(edge_functions.sleeping_in_its_loop, 2.5)
        spinning = await engine.submit(edge_functions.spinning_in_its_loop, str(over))
        give_up_at = time.monotonic() + 30
        while not (await stuck_in(engine, "sleeping_in_its_loop") and await stuck_in(engine, "spinning_in_its_loop")):
            assert time.monotonic() < give_up_at
            await asyncio.sleep(0.02)
        over.touch()
        assert await spinning.result() == "over"
        assert await sleeping.result() >= 2.5, "being asked does not wake it"
        assert await waiting.result() == 1
        (asleep,) = await stuck_in(engine, "sleeping_in_its_loop")  # each is reported once
        (spun,) = await stuck_in(engine, "spinning_in_its_loop")
        assert await stuck_in(engine, "waiting_beside_them") == []
    assert (asleep[0], spun[0]) == (sleeping.id, spinning.id)
    assert re.match(r"for \d+\.\d s so far, in a worker of 'sleeping', by:\n", asleep[1])
    assert asleep[1].rstrip().endswith("time.sleep(seconds)")
    assert "in a worker of 'spinning'" in spun[1]
