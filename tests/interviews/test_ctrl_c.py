"""Ctrl-C in a program: one line at once, one line at the end, and the exit status that a shell expects."""

import asyncio
import gc
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from headrace import Job, Model, QuestionFreeText, Results, Survey
from headrace.errors import HeadraceError, Interrupted
from headrace.interviews import delivery
from headrace.interviews.standalone import StandaloneRun
from headrace.interviews.steering.client import ask, state_of
from headrace.interviews.steering.messages import StopRequest
from headrace.interviews.stopping import RunStop
from headrace.threads import loop_thread
from tests.trouble.children import until

PROGRAM = """
import atexit, sys
from headrace import Agent, AgentList, Model, QuestionFreeText, Survey

people = AgentList(Agent(name=f"p{i}") for i in range(200))
question = QuestionFreeText(question_name="q", question_text="Why?")
job = Survey([question]).by(people).by(Model("test", canned_response="x", latency_s=LATENCY))
atexit.register(print, "closed down", flush=True)
"""
RUN = "job.run('a.run', concurrency=10)"


def interrupted(
    directory: Path, program: str, *, times: int = 1, latency_s: float = 2, once: Callable[[], bool] | None = None
) -> tuple[int, list[str], str]:
    """Exit status, standard error by lines, and standard output of a program that gets Ctrl-C while calls are out, or
    `once` something else is so."""
    command = [sys.executable, "-W", "error", "-c", PROGRAM.replace("LATENCY", str(latency_s)) + program]
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    is_time = once or (lambda: _has_calls_out(directory / "a.run"))
    until(lambda: is_time() or process.poll() is not None, "the moment for Ctrl-C", every_s=0.02)
    process.send_signal(signal.SIGINT)
    heard: list[str] = []
    for _ in range(times - 1):
        heard.append(process.stderr.readline().rstrip("\n"))  # two signals that come together may arrive as one
        process.send_signal(signal.SIGINT)
    printed, told = process.communicate(timeout=60)
    return process.returncode, [*heard, *told.splitlines()], printed


def _has_calls_out(path: Path) -> bool:
    try:
        state = state_of(path)
    except HeadraceError:
        return False  # there is no file yet
    return state is not None and bool(state.progress.in_flight)


def test_a_program_says_at_once_that_it_stops_and_ends_with_one_line(tmp_path: Path):
    code, told, printed = interrupted(tmp_path, RUN)
    first, last = told
    assert re.fullmatch(r"stopping: \d+ in flight; again to stop now", first)
    assert re.match(r"Stopped after \d+ of 200 interviews; all of them are saved in /", last)
    assert (code, printed) == (130, "closed down\n")


def test_a_second_ctrl_c_is_heard_too(tmp_path: Path):
    code, told, _ = interrupted(tmp_path, RUN, times=2, latency_s=30)
    assert re.fullmatch(r"stopping: \d+ in flight; again to stop now", told[0])
    assert told[1] == "stopping now"
    assert told[2].startswith("Stopped after 0 of 200")
    assert (code, len(told)) == (130, 3)


ASYNC = """
import asyncio
async def main():
    BODY
asyncio.run(main())
"""


def test_a_blocking_run_under_asyncio_hears_the_first_ctrl_c_too(tmp_path: Path):
    code, told, _ = interrupted(tmp_path, ASYNC.replace("BODY", RUN))
    assert [line.split(" ", 1)[0] for line in told] == ["stopping:", "Stopped"]
    assert code == 130


def test_a_run_on_the_callers_loop_says_both_lines(tmp_path: Path):
    code, told, _ = interrupted(tmp_path, ASYNC.replace("BODY", "await job.run_async('a.run', concurrency=10)"))
    first, last = told
    assert re.fullmatch(r"stopping: \d+ in flight; again to stop now", first)
    assert re.match(r"Stopped after \d+ of 200 interviews; all of them are saved in /", last)
    assert code == 130


def test_a_run_on_the_callers_loop_hears_the_second_ctrl_c_too(tmp_path: Path):
    body = "async for result in job.astream('a.run', concurrency=10): pass"
    code, told, _ = interrupted(tmp_path, ASYNC.replace("BODY", body), times=2, latency_s=30)
    assert re.fullmatch(r"stopping: \d+ in flight; again to stop now", told[0])
    assert told[1] == "stopping now"
    assert told[2].startswith("Stopped after 0 of 200")
    assert (code, len(told)) == (130, 3)


def test_a_run_in_a_thread_of_asyncio_hears_ctrl_c(tmp_path: Path):
    body = "await asyncio.to_thread(job.run, 'a.run', concurrency=10)"
    code, told, _ = interrupted(tmp_path, ASYNC.replace("BODY", body))
    first, last = told
    assert re.fullmatch(r"stopping: \d+ in flight", first)
    assert re.match(r"Stopped after \d+ of 200 interviews", last)
    assert code == 130


def test_an_engine_says_what_it_waits_for_and_how_to_go_on(tmp_path: Path):
    body = """
    import headrace
    async with headrace.Engine('e.run', memory='+400MB', isolation='inline') as engine:
        await engine.run(job, 'a.run', concurrency=10)"""
    code, told, _ = interrupted(tmp_path, ASYNC.replace("BODY", body.strip()))
    first, last = told
    assert re.fullmatch(r"stopping: \d+ in flight", first)
    assert last == "Stopped. Everything journaled is saved; run the same program again to go on."
    assert code == 130


def test_a_task_that_the_program_cancels_itself_says_nothing(tmp_path: Path):
    body = """
    task = asyncio.create_task(job.run_async('a.run', concurrency=10))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    print('cancelled:', task.cancelled())"""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM.replace("LATENCY", "0.5") + ASYNC.replace("BODY", body.strip())],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert (ran.stderr, ran.stdout) == ("", "cancelled: True\nclosed down\n")


def test_ctrl_c_after_a_run_is_asyncios_own(tmp_path: Path):
    body = """
    await job.run_async('b.run', concurrency=10, limit=10)
    open('ended', 'w').close()
    await asyncio.sleep(30)"""
    has_ended = (tmp_path / "ended").exists
    _, told, _ = interrupted(tmp_path, ASYNC.replace("BODY", body.strip()), latency_s=0.01, once=has_ended)
    assert told[0].startswith("Traceback")
    assert told[-1] == "KeyboardInterrupt"


def test_between_two_results_of_a_stream_ctrl_c_is_asyncios_own(tmp_path: Path):
    body = """
    for result in job.stream('a.run', concurrency=10):
        try:
            open('first', 'w').close()
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            print('cancelled')
            raise"""
    has_first = (tmp_path / "first").exists
    _, _, printed = interrupted(tmp_path, ASYNC.replace("BODY", body.strip()), latency_s=0.01, once=has_first)
    assert "cancelled" in printed


def test_a_stream_ends_in_one_line_too(tmp_path: Path):
    code, told, _ = interrupted(tmp_path, "for result in job.stream('a.run', concurrency=10): pass")
    assert [line.split(" ", 1)[0] for line in told] == ["stopping:", "Stopped"]
    assert code == 130


def test_a_program_that_has_a_hook_of_its_own_keeps_it(tmp_path: Path):
    hook = "sys.excepthook = lambda kind, error, trace: print('mine:', kind.__name__)\n"
    code, told, printed = interrupted(tmp_path, hook + RUN)
    assert len(told) == 1
    assert "mine: Interrupted" in printed
    assert code == 1


def test_other_errors_have_their_traceback_as_ever(tmp_path: Path):
    after = f"try:\n    {RUN}\nexcept KeyboardInterrupt:\n    raise ValueError('mine') from None\n"
    code, told, _ = interrupted(tmp_path, after)
    assert told[1] == "Traceback (most recent call last):"
    assert told[-1] == "ValueError: mine"
    assert code == 1


IPYTHON = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell()
shell._showtraceback = lambda kind, error, lines: print("shown:", *lines)
shell.run_cell("from pathlib import Path; from headrace.errors import Interrupted")
shell.run_cell("raise Interrupted(Path('a.run'), done=1, total=2)")
"""


def test_ipython_and_notebooks_show_the_message_alone(tmp_path: Path):
    home = {**os.environ, "IPYTHONDIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", IPYTHON], env=home, capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.startswith("shown: Stopped after 1 of 2 interviews; all of them are saved in a.run.")
    assert "Traceback" not in ran.stdout


@pytest.mark.parametrize(
    "moment",
    [(delivery, "end_in_one_line"), (delivery, "say_stopping"), (StandaloneRun, "stop"), (StandaloneRun, "join")],
    ids=lambda moment: moment[1],
)
def test_a_second_ctrl_c_is_one_at_any_moment_of_the_stop(moment, tmp_path: Path, monkeypatch, capsys):
    """On a busy machine the first one may still be on its way when the second comes."""
    owner, name = moment
    real, presses = getattr(owner, name), []

    def pressed(*arguments, **options):
        if not presses:
            presses.append(name)
            signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, pressed)
    job = Survey([QuestionFreeText(question_name="q", question_text="Why?")]).by(Model("test", latency_s=0.05))
    with pytest.raises(Interrupted):
        job.run(tmp_path / "a.run", n=50, concurrency=5, on_result=lambda _: signal.raise_signal(signal.SIGINT))
    assert presses == [name]
    assert capsys.readouterr().err.splitlines()[-1].startswith("stopping")
    assert not (tmp_path / "a.run.lock").exists()
    with job.run(tmp_path / "a.run", n=50) as results:
        assert len(results) == 50


def test_ctrl_c_while_a_run_that_has_ended_is_closed_ends_the_program(tmp_path: Path, monkeypatch):
    real, presses = StandaloneRun.join, []

    def pressed(run):
        if not presses:
            presses.append(1)
            signal.raise_signal(signal.SIGINT)
        real(run)

    monkeypatch.setattr(StandaloneRun, "join", pressed)
    job = Survey([QuestionFreeText(question_name="q", question_text="Why?")]).by(Model("test"))
    with pytest.raises(KeyboardInterrupt) as stopped:
        job.run(tmp_path / "a.run", n=5)
    assert not isinstance(stopped.value, Interrupted)
    with Results.open(tmp_path / "a.run") as results:
        assert len(results) == 5


@pytest.mark.parametrize("on_result", [None, lambda _: None], ids=["run", "on_result"])
def test_a_ctrl_c_that_does_not_wake_the_thread_is_heard(on_result, tmp_path: Path):
    """As one that comes just before it goes to sleep. Here it comes in another thread, which wakes it as little."""
    is_asked = threading.Event()

    async def answer(_request: object) -> str:
        is_asked.set()
        await asyncio.sleep(1)
        return "x"

    def press() -> None:
        assert is_asked.wait(60)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    job = Survey([QuestionFreeText(question_name="q", question_text="Why?")]).by(Model.from_function(answer))
    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(Interrupted):
        job.run(tmp_path / "a.run", n=60, concurrency=1, on_result=on_result)
    presser.join()


async def test_a_stop_that_never_gets_its_turn_leaves_no_coroutine_behind():
    nothing: Any = SimpleNamespace(stop=lambda: None)
    before = asyncio.all_tasks()
    RunStop(nothing, nothing, nothing, asyncio.Event()).request()
    (stopping,) = asyncio.all_tasks() - before
    stopping.cancel()  # as the run's loop does when it ends
    await asyncio.sleep(0)
    assert stopping.cancelled()
    del stopping
    gc.collect()  # warns of coroutines that were never awaited, and warnings are errors


def test_ctrl_c_between_two_waits_of_a_blocking_run_under_asyncio_stops_it(tmp_path: Path, monkeypatch, capsys):
    """There it is asyncio's own, which cancels a task that does not go on before the run has ended."""
    real, presses = StandaloneRun.progress, []

    def pressed(run):
        if not presses:
            presses.append(1)
            signal.raise_signal(signal.SIGINT)
        return real(run)

    monkeypatch.setattr(StandaloneRun, "progress", pressed)
    job = Survey([QuestionFreeText(question_name="q", question_text="Why?")]).by(Model("test", latency_s=0.05))

    async def main() -> None:
        job.run(tmp_path / "a.run", n=50, concurrency=5)

    with pytest.raises(Interrupted):
        asyncio.run(main())
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("stopping")
    with job.run(tmp_path / "a.run", n=50) as results:
        assert (len(results), results.stats().reused < 50) == (50, True)


@pytest.mark.parametrize("moment", [(delivery, "say_stopping"), (StandaloneRun, "stop")], ids=lambda moment: moment[1])
def test_a_second_ctrl_c_under_asyncio_is_one_at_any_moment_of_the_stop(moment, tmp_path: Path, monkeypatch, capsys):
    """asyncio raises it wherever the program is."""
    owner, name = moment
    real, presses = getattr(owner, name), []

    def pressed(*arguments, **options):
        real(*arguments, **options)
        if not presses:
            presses.append(name)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(owner, name, pressed)
    long = LongJob()

    async def main() -> None:
        async for _ in long.job.astream(tmp_path / "a.run", n=50, concurrency=2):
            await long.until_it_is_out()
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert presses == [name]
    assert capsys.readouterr().err.splitlines()[-1] == "stopping now"
    assert not (tmp_path / "a.run.lock").exists()
    long.is_long = False
    with long.job.run(tmp_path / "a.run", n=50) as results:
        assert len(results) == 50


class PressedAtLine:
    """Presses Ctrl-C when this thread executes its nth line, of all code, since `count` was called; at the latest when
    its event loop looks for something to do."""

    def __init__(self, nth: int) -> None:
        self._left = nth
        self._counts = False

    def count(self) -> None:
        self._counts = True

    def __call__(self, frame: FrameType, event: str, _argument: object) -> Any:
        # A line of `_get_loop` is traced with asyncio's global lock held, which a press there would never give back.
        if self._counts and event == "line" and frame.f_code.co_name != "_get_loop":
            self._left -= 1
            if self._left == 0 or frame.f_code.co_name == "select":
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return self


@pytest.mark.parametrize("nth", [1, 4, 10, 11, 30, 40, 42, 44, 46, 58, 75, 97, 1000])
def test_a_second_ctrl_c_under_asyncio_is_heard_at_any_line_of_the_stop(nth: int, tmp_path: Path, monkeypatch, capsys):
    press, real = PressedAtLine(nth), delivery.say_stopping

    def said(*arguments, **options):
        real(*arguments, **options)
        press.count()

    loops: list[asyncio.AbstractEventLoop] = []

    async def asked(_request: object) -> str:
        loops[0].call_soon_threadsafe(signal.raise_signal, signal.SIGINT)
        await asyncio.sleep(30)
        return "x"

    monkeypatch.setattr(delivery, "say_stopping", said)
    job = Survey([QuestionFreeText(question_name="q", question_text="Why?")]).by(Model.from_function(asked))

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        async for _ in job.astream(tmp_path / "a.run", concurrency=1):
            pass

    tracing = sys.gettrace()
    sys.settrace(press)
    try:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(main())
    finally:
        sys.settrace(tracing)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "stopping: 1 in flight; again to stop now"
    assert second == "stopping now"
    assert not (tmp_path / "a.run.lock").exists()


def run(job: Job, path: Path, *, is_async: bool, **options: Any) -> None:
    if is_async:
        asyncio.run(job.run_async(path, **options))
    else:
        job.run(path, **options)


class LongJob:
    """A job whose first call ends at once and whose others end when they are given up."""

    def __init__(self) -> None:
        self._calls = itertools.count()
        self._is_out = threading.Event()
        self.is_long = True
        question = QuestionFreeText(question_name="q", question_text="Why?")
        self.job = Survey([question]).by(Model.from_function(self._answer))

    async def _answer(self, _request: object) -> str:
        if next(self._calls) and self.is_long:
            self._is_out.set()
            await asyncio.sleep(60)
        return "x"

    async def until_it_is_out(self) -> None:
        """Until one that does not end by itself is out."""
        assert await asyncio.to_thread(self._is_out.wait, 30)


def test_a_second_ctrl_c_while_the_callers_own_code_hears_the_first_stops_now(tmp_path: Path, capsys):
    long = LongJob()

    async def on_result(_result: object) -> None:
        await long.until_it_is_out()
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.sleep(30)
        finally:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(long.job.run_async(tmp_path / "a.run", n=5, concurrency=2, on_result=on_result))
    assert capsys.readouterr().err.splitlines()[-1] == "stopping now"
    assert not (tmp_path / "a.run.lock").exists()


def test_a_stream_is_closed_on_another_loop_than_it_was_begun_on(tmp_path: Path):
    job = Survey([QuestionFreeText(question_name="q", question_text="Why?")]).by(Model("test", latency_s=0.3))
    stream = job.astream(tmp_path / "a.run", n=20, concurrency=2)
    one, two = asyncio.new_event_loop(), asyncio.new_event_loop()
    one.run_until_complete(anext(stream))
    one.close()

    async def close() -> None:
        await stream.aclose()

    closing = two.create_task(close())
    two.run_until_complete(asyncio.wait([closing], timeout=20))
    closing.result()
    two.close()
    assert not (tmp_path / "a.run.lock").exists()


@pytest.mark.parametrize("leaves_by", [None, ValueError])
async def test_a_task_that_is_cancelled_while_its_stream_is_closed_is_cancelled(leaves_by, tmp_path: Path):
    long = LongJob()

    async def on_result(_result: object) -> None:
        await long.until_it_is_out()
        asyncio.get_running_loop().call_soon(task.cancel)
        raise ValueError

    async def first_one() -> None:
        if leaves_by is not None:
            with suppress(leaves_by):
                await long.job.run_async(tmp_path / "a.run", n=20, concurrency=2, on_result=on_result)
            return
        async with aclosing(long.job.astream(tmp_path / "a.run", n=20, concurrency=2)) as stream:
            await anext(stream)
            await long.until_it_is_out()
            asyncio.get_running_loop().call_soon(task.cancel)

    task = asyncio.create_task(first_one())
    await asyncio.wait([task])
    assert task.cancelled()
    assert not (tmp_path / "a.run.lock").exists()


def test_ctrl_c_while_a_stream_is_closed_ends_the_program(tmp_path: Path, monkeypatch):
    real, presses = StandaloneRun.join, []

    def pressed(run):
        if not presses:
            presses.append(1)
            signal.raise_signal(signal.SIGINT)
        real(run)

    monkeypatch.setattr(StandaloneRun, "join", pressed)
    job = Survey([QuestionFreeText(question_name="q", question_text="Why?")]).by(Model("test", latency_s=0.05))
    stream = job.stream(tmp_path / "a.run", n=20, concurrency=2)
    next(stream)
    with pytest.raises(KeyboardInterrupt):
        stream.close()
    assert not (tmp_path / "a.run.lock").exists()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_run_that_was_stopped_elsewhere_says_so_also_where_ctrl_c_comes_as_it_ends(
    is_async: bool, tmp_path: Path, monkeypatch
):
    """`Interrupted` is a KeyboardInterrupt that says what is saved and how to go on."""
    real, presses = StandaloneRun.join, []

    def pressed(run):
        if not presses:
            presses.append(1)
            raise KeyboardInterrupt
        real(run)

    async def answer(_request: object) -> str:
        await asyncio.to_thread(ask, tmp_path / "a.run", StopRequest())
        return "x"

    monkeypatch.setattr(StandaloneRun, "join", pressed)
    question = QuestionFreeText(question_name="q", question_text="Why?")
    job = Survey([question]).by(Model.from_function(answer))
    with pytest.raises(KeyboardInterrupt, match="Stopped after 1 of 5"):
        run(job, tmp_path / "a.run", is_async=is_async, n=5, concurrency=1)
    assert presses
    assert not (tmp_path / "a.run.lock").exists()


@pytest.mark.parametrize("comes_first", [KeyboardInterrupt, asyncio.CancelledError], ids=lambda kind: kind.__name__)
def test_a_ctrl_c_while_a_stream_is_closed_outlives_a_cancellation(comes_first, tmp_path: Path, monkeypatch):
    """A second Ctrl-C that is raised in a task of the program's own, which it cancels meanwhile."""
    real, presses = StandaloneRun.stop, []

    def pressed(run):
        presses.append(1)
        if len(presses) == 1:
            raise comes_first
        if len(presses) == 2:
            raise asyncio.CancelledError if comes_first is KeyboardInterrupt else KeyboardInterrupt
        real(run)

    monkeypatch.setattr(StandaloneRun, "stop", pressed)
    long = LongJob()

    async def main() -> None:
        async with aclosing(long.job.astream(tmp_path / "a.run", n=20, concurrency=2)) as stream:
            await anext(stream)
            await long.until_it_is_out()
            raise asyncio.CancelledError

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert not (tmp_path / "a.run.lock").exists()


def test_a_ctrl_c_just_before_a_run_has_its_thread_ends_the_program(tmp_path: Path, monkeypatch):
    class Pressed:
        def add(self, _thread: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop_thread, "_running", Pressed())
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        LongJob().job.run(tmp_path / "a.run")
    assert set(threading.enumerate()) <= before


def test_a_run_whose_thread_cannot_be_started_says_so(tmp_path: Path, monkeypatch):
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        LongJob().job.run(tmp_path / "a.run")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_second_ctrl_c_right_behind_the_first_stop_is_told_though_the_run_ends_by_it(
    is_async: bool, tmp_path: Path, monkeypatch, capsys
):
    """The run has ended before this thread gets its next turn."""
    real, presses = StandaloneRun.stop, []

    def pressed(run):
        real(run)
        presses.append(1)
        if len(presses) == 1:
            raise KeyboardInterrupt
        while run.is_running:
            time.sleep(0.01)

    monkeypatch.setattr(StandaloneRun, "stop", pressed)
    long = LongJob()

    async def press_and_wait(_result: object) -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(30)

    def press(_result: object) -> None:
        signal.raise_signal(signal.SIGINT)

    on_result = press_and_wait if is_async else press
    with pytest.raises(KeyboardInterrupt):
        run(long.job, tmp_path / "a.run", is_async=is_async, n=5, concurrency=2, on_result=on_result)
    assert capsys.readouterr().err.splitlines()[-1] == "stopping now"


def test_a_second_ctrl_c_right_behind_the_first_line_does_not_have_it_said_again(tmp_path: Path, monkeypatch, capsys):
    real = delivery.say_stopping

    def pressed(*arguments, **options):
        real(*arguments, **options)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(delivery, "say_stopping", pressed)
    job = Survey([QuestionFreeText(question_name="q", question_text="Why?")]).by(Model("test", latency_s=0.05))
    with pytest.raises(Interrupted):
        job.run(tmp_path / "a.run", n=50, concurrency=5, on_result=lambda _: signal.raise_signal(signal.SIGINT))
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("stopping")
    assert second == "stopping now"
