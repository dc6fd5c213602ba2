"""Runs that met something out of the ordinary, each with what once went wrong."""

import asyncio
import os
import pty
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from headrace import (
    Agent,
    AgentList,
    Job,
    Model,
    QuestionFreeText,
    QuestionMultipleChoice,
    Results,
    ScenarioList,
    Survey,
)
from headrace.errors import HeadraceError, Interrupted, ListError, RunFileBusy, RunFileError, SurveyError
from headrace.executor import Batch
from headrace.exit_causes import ExitCause
from headrace.interviews import standalone
from headrace.interviews.contract import Chunk, ChunkEnded, Observed, Rows
from headrace.interviews.inline import InlineExecutor
from headrace.interviews.interview_outbox import InterviewOutbox
from headrace.models.limiter import EndpointState
from headrace.models.provider import Request
from headrace.store.run_file.rows import Row, Status
from headrace.survey.record import AnswerRecord, AnswerState, Usage, encode_record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.run"


def asked(*names: str) -> Survey:
    return Survey([QuestionFreeText(question_name=name, question_text="Well?") for name in names])


def job_of(count: int, *names: str, **parameters: Any) -> Job:
    agents = AgentList(Agent({"n": number}) for number in range(count))
    return asked(*(names or ("q",))).by(agents, Model("test", **({"canned_response": "x"} | parameters)))


def test_an_answer_in_flight_stands_before_the_failure_it_replaces(path: Path):
    answers: dict[str, Any] = {"one": None, "two": lambda: 1 / 0}

    def answer(request: Request) -> Any:
        given = answers[request.question_name]
        return given() if callable(given) else given

    job = asked("one", "two").by(Model("test", canned_response=answer))
    assert {failed.cause for failed in job.run(path).failed()} == {"no answer", "model refused the call"}
    record = encode_record(AnswerRecord(0, AnswerState.ANSWERED, value="kept", attempts=1))
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO pending(ordinal, question, record) VALUES(0, 0, ?)", (record,))
    connection.close()
    answers["two"] = "new"
    results = job.run(path)
    assert results[0].answer == {"one": "kept", "two": "new"}
    assert results.stats().failed == 0


def test_starting_over_while_a_reader_is_there_loses_nothing(path: Path):
    job = job_of(50)
    job.run(path, limit=20)
    with Results.open(path) as results:
        next(iter(results))
        job.run(path)  # the reader keeps it from leaving WAL mode
        job.run(path, fresh=True, limit=1)
    (kept,) = path.parent.glob("a.2*.run")
    assert len(Results.open(kept)) == 50
    assert len(Results.open(path)) == 1


def test_results_of_a_file_that_was_replaced_say_so(path: Path):
    results = job_of(3, "one", "two").run(path)
    assert results[0].answer == {"one": "x", "two": "x"}
    results.close()
    path.unlink()
    job_of(3, "two", "one").run(path)
    with pytest.raises(RunFileError, match="was replaced by another run file"):
        len(results)


def test_a_symlink_is_the_same_file(path: Path):
    job = job_of(100, latency_s=0.05)
    job.run(path, limit=1)
    link = path.with_name("link.run")
    link.symlink_to(path)
    stream = job.stream(path, concurrency=5)
    next(stream)
    with pytest.raises(RunFileBusy):
        job.run(link)
    stream.close()


def test_a_path_that_is_no_regular_file_is_refused(path: Path):
    os.mkfifo(path)
    with pytest.raises(RunFileError, match="not a regular file"):
        job_of(1).run(path)
    assert path.is_fifo()


def test_changing_the_directory_during_a_run_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    results = job_of(5).run("a.run", on_result=lambda _: os.chdir(elsewhere))
    assert len(results) == 5
    assert sorted(name.name for name in tmp_path.iterdir()) == ["a.run", "elsewhere"]


def test_endings_do_not_wait_for_other_chunks():
    outbox = InterviewOutbox()
    chunks = [Chunk(number, 1, [], {}, {}) for number in range(3)]
    for chunk in chunks:
        for number in range(600):
            outbox.add_row(chunk, Row(number, 0, 0, 0, 0, Status.DONE, ["x"], None, b"", [], Usage(1, 1, 1)))
        outbox.end_chunk(chunk, ExitCause.DONE)

    async def first_batch() -> Batch:
        return await anext(outbox.batches())

    events = asyncio.run(first_batch()).events
    assert [event.id for event in events if isinstance(event, Rows)] == [0, 1]
    assert [event.id for event in events if isinstance(event, ChunkEnded)] == [0, 1]


def test_answers_are_journaled_when_the_last_event_with_some_is_acknowledged():
    outbox, chunk = InterviewOutbox(), Chunk(1, 1, [], {}, {})
    for ordinal in (7, 8):
        outbox.add_answer(chunk, ordinal, AnswerRecord(0, AnswerState.ANSWERED, "x"))
    first = outbox.take_waiting()[-1].seq
    outbox.add_answer(chunk, 7, AnswerRecord(1, AnswerState.ANSWERED, "y"))
    assert [outbox.is_journaled(ordinal) for ordinal in (7, 8, 9)] == [False, False, True]
    second = outbox.take_waiting()[-1].seq
    outbox.ack(first)
    assert [outbox.is_journaled(ordinal) for ordinal in (7, 8)] == [False, True]
    outbox.ack(second)
    assert outbox.is_journaled(7)


def test_a_model_that_was_closed_for_a_moment_is_told_to_have_been() -> None:
    """Or a run that left interviews for it ends incomplete, and nothing says why."""
    outbox = InterviewOutbox()
    for state in (EndpointState.HELD, EndpointState.CLOSED, EndpointState.OPEN, EndpointState.HELD, EndpointState.OPEN):
        outbox.observe(0, state, state.name)
    outbox.observe(1, EndpointState.HELD, "")
    outbox.observe(1, EndpointState.OPEN, "")

    async def first_batch() -> Batch:
        return await anext(outbox.batches())

    told = [(event.model, event.state) for event in asyncio.run(first_batch()).events if isinstance(event, Observed)]
    assert told == [(0, EndpointState.CLOSED), (0, EndpointState.OPEN), (1, EndpointState.OPEN)]


class Stammering(InlineExecutor):
    """Delivers everything twice, as at-least-once allows."""

    async def events(self) -> AsyncIterator[Batch]:
        async for batch in super().events():
            yield batch
            yield batch


def test_what_is_delivered_twice_counts_once(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(standalone, "InlineExecutor", Stammering)
    job = job_of(300, fail_rate=0.5, seed=1)
    seen: list[int] = []
    results = job.run(path, on_result=lambda result: seen.append(result.ordinal))
    assert sorted(seen) == list(range(300))
    assert len(results) == len(list(results)) == 300
    assert results.stats().failed == len({failed.ordinal for failed in results.failed()})


def test_calls_that_failed_were_made_and_count(path: Path):
    results = job_of(3, fail_rate=1.0).run(path)
    assert results.stats().calls == 15


def test_an_error_text_that_no_file_can_hold_harms_nobody(path: Path):
    def answer(request: Request) -> str:
        if request.agent["n"] == 1:
            raise ValueError("\udcff")
        return "x"

    results = job_of(3, canned_response=answer).run(path)
    assert [result.status for result in results] == ["done", "failed", "done"]


def test_a_loop_that_cannot_be_made_is_an_error_and_not_a_hang(path: Path, monkeypatch: pytest.MonkeyPatch):
    class RefusedRunner(asyncio.Runner):
        def __init__(self, **_: Any) -> None:
            raise OSError("too many open files")

    monkeypatch.setattr(asyncio, "Runner", RefusedRunner)
    with pytest.raises(OSError, match="too many"):
        job_of(1).run(path)
    with pytest.raises(OSError, match="too many"):
        list(job_of(1).stream(path))


async def test_cancelling_twice_stops_at_once_and_lets_the_file_go(path: Path):
    job = job_of(20, latency_s=120.0)
    running = asyncio.ensure_future(job.run_async(path))
    await asyncio.sleep(0.3)
    running.cancel()
    await asyncio.sleep(0.2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(running), 60)
    assert len(await job_of(20, latency_s=0.0).run_async(path, limit=1, fresh=True)) == 1


def test_a_caller_s_loop_that_ends_early_lets_the_run_end(path: Path):
    job = job_of(2000)

    async def leave_early() -> None:
        left = asyncio.ensure_future(job.run_async(path, on_result=lambda _: None, concurrency=10))
        await asyncio.sleep(0.05)
        assert not left.done()

    asyncio.run(leave_early())
    assert len(job.run(path)) == 2000


def test_ctrl_c_is_not_swallowed_by_those_who_catch_errors():
    assert issubclass(Interrupted, KeyboardInterrupt)
    assert not issubclass(Interrupted, Exception)


def test_an_error_of_the_user_s_own_generator_stays_what_it_is():
    def people() -> Any:
        yield Agent()
        Path("/nonexistent/people.txt").read_text()

    with pytest.raises(FileNotFoundError):
        AgentList(people())


def test_the_same_file_with_other_names_is_another_list(tmp_path: Path):
    people = tmp_path / "people.csv"
    people.write_text("who,age\nada,36\n")
    plain, named = AgentList.from_csv(people), AgentList.from_csv(people, name_field="who")
    assert plain.source.digest != named.source.digest
    with pytest.raises(ListError, match=r"no column 'whom'\. Did you mean 'who'"):
        AgentList.from_csv(people, name_field="whom")


def test_the_order_of_parameters_and_rules_means_nothing():
    left, right = Model("test", seed=1, canned_response="x"), Model("test", canned_response="x", seed=1)
    assert left == right
    rules = [("b", "a.answer == 1"), ("c", "a.answer == 2")]
    first, second = asked("a", "b", "c"), asked("a", "b", "c")
    for name, rule in rules:
        first.add_skip_rule(name, rule)
    for name, rule in reversed(rules):
        second.add_skip_rule(name, rule)
    assert first.to_row() == second.to_row()


def test_a_cell_may_hold_a_document(tmp_path: Path):
    (tmp_path / "a.csv").write_text(f'text\n"{"word " * 100_000}"\n')
    assert len(next(iter(ScenarioList.from_csv(tmp_path / "a.csv")))["text"]) == 500_000


def test_odd_names_and_texts_are_repaired_or_taken_as_they_are():
    class Text(str):
        __slots__ = ()

    agents = AgentList([Agent({"bad\ud800": Text("x")})])
    assert next(iter(agents)).traits == {"bad\ufffd": "x"}
    assert set(agents.source.census.kinds) == {"bad\ufffd"}


@pytest.mark.parametrize("name", ["true", "None", "NULL", "loop", "__class__"])
def test_names_that_mean_something_else_are_no_question_s(name: str):
    with pytest.raises(SurveyError, match=r"cannot be called|not an identifier"):
        asked(name)


@pytest.mark.parametrize("options", [["a", None], {"a", "b"}])
def test_options_that_could_not_be_told_apart_later_are_refused(options: Any):
    with pytest.raises(SurveyError, match=r"None for an option|not a list"):
        QuestionMultipleChoice(question_name="q", question_text="Which?", question_options=options)


def test_a_filter_that_does_not_exist_is_found_before_anything_runs(path: Path):
    shouting = Survey([QuestionFreeText(question_name="q", question_text="{{ agent.n | shout }}")])
    with pytest.raises(SurveyError, match="filter shout is unknown"):
        shouting.by(Agent({"n": 1}), Model("test")).run(path)
    assert not path.exists()


def test_a_missing_trait_is_named(path: Path):
    about = Survey([QuestionFreeText(question_name="q", question_text="{{ agent.a }} {{ agent.b }}?")])
    results = about.by([Agent({"a": 1, "b": 2}), Agent({"a": 1})], Model("test", canned_response="x")).run(path)
    (failed,) = results.failed()
    assert "agent.b" in failed.message


def test_an_async_answer_and_a_text_for_a_list_are_refused(path: Path):
    async def answer(request: Request) -> str:
        return "x"

    with pytest.raises(ListError, match="is async"):
        job_of(1, canned_response=answer).run(path)
    with pytest.raises(ListError, match="one text"):
        ScenarioList.from_list("city", "Oslo")


def test_numpy_numbers_index_results(path: Path):
    numpy = pytest.importorskip("numpy")
    results = job_of(10).run(path)
    assert results[numpy.int64(1)].ordinal == 1
    assert [result.ordinal for result in results[numpy.int64(1) : numpy.int64(3)]] == [1, 2]
    with pytest.raises(TypeError):
        results[1.5]  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_a_result_is_a_mapping_of_its_parts(path: Path):
    result = job_of(1).run(path)[0]
    assert "answer" in result
    assert dict(result)["answer"] == {"q": "x"}


def test_huge_numbers_reach_a_data_frame(path: Path):
    results = (
        asked("q").by(AgentList([Agent({"n": 2**63}), Agent({"n": 1})]), Model("test", canned_response="x")).run(path)
    )
    assert list(results.to_pandas()["agent.n"]) == [2**63, 1]


def test_two_jobs_run_side_by_side_in_two_threads(tmp_path: Path):
    counts: dict[str, int] = {}

    def run(name: str) -> None:
        counts[name] = len(job_of(300, latency_s=0.001).run(tmp_path / name))

    threads = [threading.Thread(target=run, args=(name,)) for name in ("a.run", "b.run")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {"a.run": 300, "b.run": 300}


def test_a_run_that_reuses_failed_interviews_says_so_and_how_to_ask_again(tmp_path: Path):
    shown = _shown_on_a_terminal(
        tmp_path,
        "from headrace import Agent, AgentList, Model, QuestionMultipleChoice\n"
        "asked = QuestionMultipleChoice(question_name='q', question_text='Well?', question_options=['a', 'b'])\n"
        "async def reply(request): return 'a' if request.agent['n'] == 1 else 'no'\n"
        "job = asked.by([Agent({'n': n}) for n in range(3)]).by(Model.from_function(reply))\n"
        "for again in (False, False, True):\n"
        "    job.run('a.run', progress_bar=False, retry_failed=again)\n"
        "job.run('a.run', progress_bar=False, limit=1)\n",
    )
    lines = shown.splitlines()
    assert ", 2 of them failed (retry_failed=True or --retry-failed asks again), running 0" in lines[0]
    assert lines[1].startswith("reused 1 of 3")
    assert lines[1].endswith(", running 2")
    assert "failed" not in lines[1]
    assert ", 1 of them failed" in lines[2]


def test_progress_is_shown_on_a_terminal(tmp_path: Path):
    shown = _shown_on_a_terminal(
        tmp_path,
        "from headrace import Agent, AgentList, Model, QuestionFreeText, Survey\n"
        "asked = Survey([QuestionFreeText(question_name='q', question_text='Well?')])\n"
        "agents = AgentList(Agent({'n': n}) for n in range(40))\n"
        "job = asked.by(agents, Model('test', canned_response='x', latency_s=0.2))\n"
        "job.run('a.run', limit=10, concurrency=10)\n"
        "job.run('a.run', progress_bar=True, concurrency=10)\n",
    )
    assert "reused 10 of 40" in shown
    assert "40/40" in shown


def _shown_on_a_terminal(tmp_path: Path, text: str) -> str:
    """What a program writes on standard error, which is a terminal."""
    program = tmp_path / "program.py"
    program.write_text(text)
    screen, terminal = pty.openpty()
    try:
        command = [sys.executable, "-W", "error", str(program)]
        ran = subprocess.run(command, cwd=tmp_path, stderr=terminal, stdout=subprocess.PIPE, check=False, timeout=60)
        os.close(terminal)
        shown = os.read(screen, 1_000_000).decode()
    finally:
        os.close(screen)
    assert ran.returncode == 0, shown
    assert ran.stdout == b""
    assert "Traceback" not in shown
    return shown


def test_an_error_of_ours_can_be_caught_by_its_root(path: Path):
    path.write_text("something else")
    with pytest.raises(HeadraceError):
        Results.open(path)
