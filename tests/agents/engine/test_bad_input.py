import subprocess
import sys

import pytest

import headrace
from headrace import Engine, Model, QuestionFreeText, Results, Survey
from headrace.errors import (
    EngineClosed,
    HeadraceError,
    InvalidInput,
    NotARunFile,
    OptionError,
    RunFailed,
    RunFileBusy,
    RunFileError,
    RunFileGone,
    TaskError,
)
from headrace.limits import MemoryLimits


async def fine(ctx, *args, **keywords):
    return await ctx.step("ok", len, args)


def not_async(ctx):
    return 1


async def without_context():
    return 1


async def generating(ctx):
    yield 1


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (not_async, "is not async.*ctx.step"),
        (lambda ctx: None, "lambda.*no name.*@headrace.task"),
        (without_context, "takes no argument"),
        (generating, "has a `yield`.*ctx.emit"),
        ("research", "not a function"),
    ],
)
async def test_what_cannot_be_an_agent_run_is_refused(tmp_path, function, told):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        with pytest.raises(TaskError, match=told):
            await engine.submit(function)
        assert await (await engine.submit(fine)).result() == 0


async def test_arguments_that_cannot_be_encoded_are_named(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        with pytest.raises(InvalidInput, match=r"Argument 2 of .*fine cannot be journaled: it holds a set"):
            await engine.submit(fine, 1, {1, 2})
        with pytest.raises(InvalidInput, match=r"Argument 'when' of .*fine cannot be journaled"):
            await engine.submit(fine, when=object())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"memory": -5}, "'-5' is not an amount of memory.*\"60%\""),
        ({"memory": "-512MB"}, "'-512MB' is not an amount"),
        ({"memory": "0MB"}, "leaves no room"),
        ({"memory": 1.5}, '1.5 is not an amount of memory. Write "60%" for a share, or "1.5GB"'),
        ({"slots": 0}, "slots=0 must be a whole number from 1"),
        ({"slots": "2"}, "slots='2' must be"),
        ({"queue_depth": 0}, "queue_depth=0 must be"),
        ({"queue_depth": 2.5}, "queue_depth=2.5 must be"),
        ({"slot_memory": "nonsense"}, "'nonsense' is not an amount"),
        ({"slot_memory": "60%"}, '\'60%\' is not an amount of memory. Write it like "512MB" or "2GiB"'),
        ({"oom_retry_memory": "60%"}, "'60%' is not an amount of memory"),
        ({"oom_retry_memory": "50MB", "slot_memory": "60MB"}, "less than slot_memory=, 60 MB.*oom_retry=False"),
        ({"oom_retry_memory": "9000GB"}, "is more than the engine's memory="),
        ({"largest_file": -1}, "-1 is not an amount"),
        ({"preload": "mymodule"}, r"Write preload=\['mymodule'\]"),
        ({"preload": [1]}, "holds 1, which is not text"),
        ({"isolation": "thread"}, "isolation='thread' is not known"),
        ({"grace_s": -1}, "grace_s=-1 must be"),
        ({"grace_s": float("nan")}, "grace_s=nan must be"),
        ({"stuck_after_s": 0}, "stuck_after_s=0 must be .* above 0"),
        ({"breaker": 3}, "breaker=3 is not BreakerLimits"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_a_file_is_made(tmp_path, options, told):
    with pytest.raises(OptionError, match=told):
        Engine(tmp_path / "a.run", **options)
    assert not (tmp_path / "a.run").exists()


def test_a_second_try_is_allowed_or_not():
    with pytest.raises(OptionError, match=r"oom_retry='64MB' is neither True nor False.*oom_retry_memory="):
        headrace.task(oom_retry="64MB")(fine)


@pytest.mark.parametrize(
    ("options", "told"),
    [({"key": 5}, "key=5 is not text"), ({"priority": "HIGH"}, "priority='HIGH' is not known. .*Priority.CRITICAL")],
)
async def test_what_a_submission_cannot_have_is_refused(tmp_path, options, told):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        with pytest.raises(OptionError, match=told):
            await engine.submit(fine, **options)


async def test_only_a_survey_is_run_beside_agents(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        with pytest.raises(OptionError, match=r"a survey's job, not 'x'. .*survey.by"):
            await engine.run("x")


async def test_a_decision_that_nobody_waits_for_is_told_where_the_run_stands(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(fine)
        await run.result()
        with pytest.raises(HeadraceError, match="nothing to decide about step 'pay': it is done"):
            await run.resolve("pay", again=True)


def test_memory_limits_are_numbers():
    with pytest.raises(OptionError, match=r"budget_bytes='512MB' .* whole number of bytes.*budget='512MB'"):
        MemoryLimits(budget_bytes="512MB")
    with pytest.raises(OptionError, match="preempt_at='85%' of memory limits must be a number"):
        MemoryLimits(budget_bytes=10**9, preempt_at="85%")


def test_thresholds_out_of_order_are_refused():
    with pytest.raises(OptionError, match=r"must rise.*entered at 0.9, 0.8, 0.95.*up to 1"):
        MemoryLimits(budget_bytes=10**9, shrink_at=0.9, preempt_at=0.8)


@pytest.mark.parametrize(
    "options", [{"max_attempts": 0}, {"max_attempts": "3"}, {"timeout_s": -1}, {"timeout_s": "1"}, {"memory": "much"}]
)
def test_options_of_a_task_are_checked_when_it_is_decorated(options):
    with pytest.raises(OptionError):
        headrace.task(**options)(fine)


async def same_name_twice(ctx):
    await ctx.step("note", len, "a")
    await ctx.step("note", len, "b")


async def unstorable_result(ctx):
    await ctx.step("search", set, "abc")


async def large_checkpoint(ctx):
    await ctx.checkpoint({"text": "x" * 65_000_000})


async def unstorable_return(ctx):
    return {1: 2}


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (same_name_twice, "StepRepeated: The step name 'note' was used twice"),
        (unstorable_result, "The result of step 'search' cannot be journaled"),
        (large_checkpoint, "state of a checkpoint is too large.*ctx.spool"),
        (unstorable_return, "What .*unstorable_return returned cannot be journaled"),
    ],
)
async def test_a_run_that_journals_what_it_cannot_fails_with_a_clear_reason(tmp_path, function, told):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(function)
        with pytest.raises(RunFailed, match=told):
            await run.result()
        assert await (await engine.submit(fine, 1, 2)).result() == 2


async def test_an_engine_file_in_use_by_another_process_is_refused(tmp_path):
    program = """
import asyncio, sys
from headrace import Engine
async def main():
    async with Engine(sys.argv[1], isolation="inline"):
        print("open", flush=True)
        sys.stdin.readline()
asyncio.run(main())
"""
    command = [sys.executable, "-c", program, str(tmp_path / "a.run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        with pytest.raises(RunFileBusy, match=f"process {child.pid}.*engine of another path"):
            await Engine(tmp_path / "a.run", isolation="inline").__aenter__()
        child.communicate(b"\n", timeout=30)
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        assert await (await engine.submit(fine)).result() == 0


async def test_an_engine_file_that_is_moved_meanwhile_is_told_and_complete_where_it_is(tmp_path):
    with pytest.raises(RunFileGone, match=r"was moved to .*b\.run"):  # noqa: PT012 - leaving raises
        async with Engine(tmp_path / "a.run", isolation="inline") as engine:
            before = await (await engine.submit(fine, key="one")).result()
            (tmp_path / "a.run").rename(tmp_path / "b.run")
    assert [entry.name for entry in tmp_path.iterdir()] == ["b.run"]
    async with Engine(tmp_path / "b.run", isolation="inline") as engine:
        run = await engine.find("one")
        assert run is not None
        assert await run.result() == before


async def test_engine_files_and_run_files_are_told_apart(tmp_path):
    async with Engine(tmp_path / "agents.run", isolation="inline") as engine:
        await (await engine.submit(fine)).result()
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    survey.by(Model("test", canned_response="x")).run(tmp_path / "survey.run")
    with pytest.raises(NotARunFile, match=r"engine's file.*async with Engine"):
        Results.open(tmp_path / "agents.run")
    with pytest.raises(NotARunFile, match=r"survey's run file.*Results.open"):
        await Engine(tmp_path / "survey.run", isolation="inline").__aenter__()
    with pytest.raises(NotARunFile, match="engine's file"):
        survey.by(Model("test", canned_response="x")).run(tmp_path / "agents.run")
    assert len(Results.open(tmp_path / "survey.run")) == 1


async def test_files_that_are_no_engine_files_are_left_as_they_are(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear reader, " * 100)
    with pytest.raises(NotARunFile, match="not an engine file"):
        await Engine(tmp_path / "letter.txt", isolation="inline").__aenter__()
    assert (tmp_path / "letter.txt").read_text() == "Dear reader, " * 100
    with pytest.raises(RunFileError, match="is a directory"):
        await Engine(tmp_path, isolation="inline").__aenter__()


async def test_an_engine_that_is_not_open_says_so(tmp_path):
    engine = Engine(tmp_path / "a.run", isolation="inline")
    with pytest.raises(EngineClosed, match="not open"):
        await engine.submit(fine)
    async with engine:
        run = await engine.submit(fine)
        await run.result()
    with pytest.raises(EngineClosed, match="closed"):
        await engine.submit(fine)
    with pytest.raises(EngineClosed, match="closed"):
        await run.result()


async def test_heartbeats_that_cannot_be_kept_are_refused(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        for seconds, options in ((0, {}), ("1", {}), (1, {"jitter": 2}), (1, {"timeout_s": 0}), (1, {"max_skips": 0})):
            with pytest.raises(OptionError, match=f"{next(iter(options), 'seconds')}="):
                engine.every(seconds, lambda: None, **options)
        with pytest.raises(OptionError, match="needs a function"):
            engine.every(1, "ping")
        with pytest.raises(OptionError, match="name=5 is not text"):
            engine.every(60, lambda: None, name=5)
        engine.every(60, lambda: None, name="tide")
        with pytest.raises(OptionError, match=r"No heartbeat is called 'other'. Known here: tide"):
            engine.stop_beating("other")
        engine.stop_beating("tide")
        engine.every(60, lambda: "one")
        with pytest.raises(OptionError, match=r"Another function beats as .*<lambda>.*name="):
            engine.every(60, lambda: "two")
        assert len(engine.status().heartbeats) == 1
