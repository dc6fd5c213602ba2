"""Programs that change while a run of theirs is unfinished: a replay notices before it goes on."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from headrace import Engine
from headrace.agents import step_marks
from headrace.errors import RunFailed
from headrace.store.engine_file.engine_schema import RunState

paid: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_paid():
    paid.clear()


JOURNEY = """
def fetch(topic):
    return topic.upper()

async def pay(amount):
    paid.append(amount)
    return amount

async def journey(ctx):
    page = await ctx.step("fetch", fetch, "tides")
    await ctx.step("pay", pay, 5, side_effect=True)
    await ctx.receive()
    return page
"""


def program(*changes):
    """The function as the program has it after these changes of its text."""
    text = JOURNEY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    space = {"__name__": "journeys", "paid": paid}
    exec(compile(text, "journeys.py", "exec"), space)  # noqa: S102 - a program that was edited
    return space["journey"]


async def waiting(engine, journey):
    run = await engine.submit(journey)
    async with asyncio.timeout(20):
        while run.status().state is not RunState.RECEIVING:
            await asyncio.sleep(0.01)
    return run


async def gone_on(path, journey, **options):
    """The result of the run that waits in `path`, and what was told of changed steps."""
    async with Engine(path, isolation="inline", **options) as engine, asyncio.timeout(20):
        run = await engine.submit(journey)
        await run.send("go on")
        try:
            result = await run.result()
        except RunFailed as error:
            result = error
        return result, [event.reason for event in await engine.events() if event.what == "step changed"]


async def begun(path):
    async with Engine(path, isolation="inline") as engine:
        await waiting(engine, program())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('fetch, "tides"', 'fetch, "ebbs"'), "other arguments"),
        (("topic.upper()", "topic.title()"), "other code of its function"),
        (("def fetch(topic)", "def fetch(topic, end='!')"), "other code of its function"),
        (('"fetch", fetch', '"fetch", str.lower'), "another function"),
    ],
)
async def test_a_step_that_has_changed_is_told_and_strictly_an_error(tmp_path, caplog, change, told):
    await begun(tmp_path / "a.run")
    (tmp_path / "b.run").write_bytes((tmp_path / "a.run").read_bytes())
    with caplog.at_level(logging.WARNING, "headrace"):
        result, reasons = await gone_on(tmp_path / "a.run", program(change))
    assert result == "TIDES"
    assert reasons == [f"step 'fetch': it was journaled with {told}"]
    assert reasons[0] in caplog.text
    failed, _ = await gone_on(tmp_path / "b.run", program(change), strict=True)
    assert isinstance(failed, RunFailed)
    for word in ("'fetch'", told, "run.retry()", "another name", "strict=True"):
        assert word in failed.reason
    assert paid == [5]


async def test_comments_and_lines_that_moved_are_no_change(tmp_path):
    await begun(tmp_path / "a.run")
    moved = program(("def fetch(topic):\n", "# loud\n\ndef fetch(topic):\n    # shout\n"))
    assert await gone_on(tmp_path / "a.run", moved, strict=True) == ("TIDES", [])


async def test_a_renamed_side_effect_is_told_before_it_is_paid_again_and_strictly_not_paid(tmp_path, caplog):
    await begun(tmp_path / "a.run")
    (tmp_path / "b.run").write_bytes((tmp_path / "a.run").read_bytes())
    renamed = program(('"pay"', '"charge"'))
    failed, _ = await gone_on(tmp_path / "a.run", renamed, strict=True)
    assert isinstance(failed, RunFailed)
    assert "journaled as 'pay'" in failed.reason
    assert paid == [5]
    with caplog.at_level(logging.WARNING, "headrace"):
        result, reasons = await gone_on(tmp_path / "b.run", renamed)
    assert (result, paid) == ("TIDES", [5, 5])
    assert "step 'charge': its side effect was journaled as 'pay'" in reasons[0]
    assert "came to its end without it" in reasons[1]


async def test_a_side_effect_that_was_taken_out_is_told_at_the_end(tmp_path):
    await begun(tmp_path / "a.run")
    result, reasons = await gone_on(
        tmp_path / "a.run", program(('    await ctx.step("pay", pay, 5, side_effect=True)\n', ""))
    )
    assert result == "TIDES"
    assert reasons == [
        "step 'pay': its side effect was journaled in an earlier attempt, and this one came to its end without it"
    ]


CALLS = """
from headrace import Model

async def child(ctx, word):
    return word

async def journey(ctx):
    model = Model("test", canned_response="fine")
    await ctx.ask(model, "How is it?", name="asked")
    await ctx.run(child, "hello", name="child")
    await ctx.command(["true", "one"], name="program", side_effect=True)
    await ctx.receive()
    return "TIDES"
"""


async def test_calls_to_models_children_and_programs_are_compared_too(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "JOURNEY", CALLS)
    path = tmp_path / "a.run"
    await begun(path)
    (tmp_path / "b.run").write_bytes(path.read_bytes())
    assert await gone_on(path, program(), strict=True) == ("TIDES", [])
    changed = program(("How is it?", "How was it?"), ('"hello"', '"hi"'), ('"one"', '"two"'))
    result, reasons = await gone_on(tmp_path / "b.run", changed)
    assert result == "TIDES"
    assert reasons == [
        f"step {name!r}: it was journaled with other arguments" for name in ("asked", "child", "program")
    ]


PROGRAM = """
async def journey(ctx):
    pay = ["sh", "-c", "echo $AMOUNT"]
    paid = await ctx.command(pay, environment={"AMOUNT": "5"}, directory="/", side_effect=True, name="pay")
    await ctx.receive()
    return paid.output
"""


@pytest.mark.parametrize(
    "change",
    [
        ('"AMOUNT": "5"', '"AMOUNT": "500"'),
        ('{"AMOUNT": "5"}', '{"AMOUNT": "5", "CURRENCY": "EUR"}'),
        ('environment={"AMOUNT": "5"}, ', ""),
        ('directory="/"', 'directory="/usr"'),
    ],
)
async def test_a_program_s_environment_and_directory_are_compared_too(tmp_path, monkeypatch, change):
    monkeypatch.setattr(sys.modules[__name__], "JOURNEY", PROGRAM)
    path, strict, same = tmp_path / "a.run", tmp_path / "b.run", tmp_path / "c.run"
    await begun(path)
    for copy in (strict, same):
        copy.write_bytes(path.read_bytes())
    assert await gone_on(same, program(), strict=True) == ("5\n", [])
    told = "it was journaled with another directory or environment"
    assert await gone_on(path, program(change)) == ("5\n", [f"step 'pay': {told}"])
    failed, _ = await gone_on(strict, program(change), strict=True)
    assert isinstance(failed, RunFailed)
    assert told in failed.reason


async def test_a_renamed_program_with_another_environment_is_another_effect(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "JOURNEY", PROGRAM)
    await begun(tmp_path / "a.run")
    (tmp_path / "b.run").write_bytes((tmp_path / "a.run").read_bytes())
    _, reasons = await gone_on(tmp_path / "a.run", program(('"pay"', '"charge"')))
    assert "journaled as 'pay'" in reasons[0]
    result, reasons = await gone_on(tmp_path / "b.run", program(('"pay"', '"charge"'), ('"5"', '"7"')))
    assert (result, len(reasons)) == ("7\n", 1)
    assert "came to its end without it" in reasons[0]


LOOP = """
async def ping():
    paid.append(1)

async def journey(ctx):
    for i in range((ctx.state or {"i": 0})["i"], 4):
        await ctx.step(f"ping-{i}", ping, side_effect=True)
        if i == 2:
            await ctx.receive()
        await ctx.checkpoint({"i": i + 1})
    return "rung"
"""


async def test_a_loop_that_goes_on_from_its_state_has_renamed_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "JOURNEY", LOOP)
    await begun(tmp_path / "a.run")
    assert await gone_on(tmp_path / "a.run", program(), strict=True) == ("rung", [])
    assert len(paid) == 4


DEFAULTS = """
async def journey(ctx):
    for i in range((ctx.state or {"i": 0})["i"], 3):
        await ctx.step(f"note-{i}", lambda i=i: i)
        await ctx.checkpoint({"i": i})
    await ctx.receive()
    return "noted"
"""


async def test_a_loop_of_functions_with_other_defaults_has_changed_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "JOURNEY", DEFAULTS)
    await begun(tmp_path / "a.run")
    step_marks._known.clear()  # pyright: ignore[reportPrivateUsage] - as in a new process, which begins with the last
    assert await gone_on(tmp_path / "a.run", program(), strict=True) == ("noted", [])


async def test_an_effect_that_its_owner_wants_again_is_not_taken_for_a_renamed_one(tmp_path, monkeypatch):
    twice = JOURNEY.replace(
        '    await ctx.step("pay", pay, 5, side_effect=True)\n',
        '    await asyncio.gather(*(ctx.step(f"pay-{i}", pay, 5, side_effect=True) for i in range(2)))\n',
    ).replace(
        "    paid.append(amount)\n",
        "    paid.append(amount)\n    if len(paid) == 1:\n        raise ValueError\n",
    )
    monkeypatch.setattr(sys.modules[__name__], "JOURNEY", f"import asyncio\n{twice}")
    path = tmp_path / "a.run"
    async with Engine(path, isolation="inline", strict=True) as engine, asyncio.timeout(20):
        run = await engine.submit(program())
        with pytest.raises(RunFailed):
            await run.result()
        await run.retry()
        with pytest.raises(RunFailed):
            await run.result()  # it is undecided
        await run.resolve("pay-0", again=True)
        await run.send("go on")
        assert await run.result() == "TIDES"
    assert len(paid) == 3


MAIN = """
import asyncio, os, sys, time
from headrace import Engine

def pay(log, amount):
    with open(log, "a") as file:
        file.write(f"{amount}\\n")

def slowly():
    time.sleep(float(sys.argv[2]))

async def journey(ctx, log):
    await ctx.step("pay", pay, log, 5, side_effect=True)
    await ctx.step("think", slowly)
    return "done"

async def main():
    async with Engine("a.run", isolation="process", slots=1, memory="+300MB", strict=True) as engine:
        run = await engine.submit(journey, os.path.abspath("log"))
        print(await run.result())

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_a_script_that_was_killed_and_changed_pays_nothing_twice_and_says_what_changed(tmp_path):
    script, log = tmp_path / "main.py", tmp_path / "log"
    script.write_text(textwrap.dedent(MAIN))
    killed = subprocess.Popen([sys.executable, script, "x", "60"], cwd=tmp_path, start_new_session=True)
    give_up_at = time.monotonic() + 30
    while not (log.exists() and _steps(tmp_path / "a.run")) and time.monotonic() < give_up_at:
        time.sleep(0.05)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    script.write_text(textwrap.dedent(MAIN).replace('"pay", pay', '"charge", pay'))
    changed = subprocess.run(
        [sys.executable, script, "x", "0"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Step 'charge' has changed since it was journaled" in changed.stderr
    assert log.read_text() == "5\n"


def _steps(path: Path) -> bool:
    import apsw

    try:
        with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) as file:
            return bool(file.execute("SELECT count(*) FROM steps WHERE finished_at IS NOT NULL").get)
    except apsw.Error:
        return False
