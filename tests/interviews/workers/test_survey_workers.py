"""Surveys in worker processes: the same results as inline, whatever becomes of a worker."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from headrace import (
    Agent,
    AgentList,
    Engine,
    Job,
    Model,
    ModelList,
    QuestionFreeText,
    QuestionMultipleChoice,
    QuestionYesNo,
    Results,
    ScenarioList,
    Survey,
)
from headrace.errors import (
    BudgetSpent,
    BudgetTooSmall,
    HeadraceError,
    InterviewFailed,
    InvalidInput,
    ModelUnusable,
    OptionError,
)
from headrace.executor import Batch
from headrace.exit_causes import ExitCause
from headrace.interviews.contract import Chunk, Lease, Rows
from headrace.interviews.workers import survey_workers
from headrace.interviews.workers.survey_workers import worker_limit_bytes
from headrace.store.run_file.rows import Row, Status, row_batch
from headrace.survey.record import Cause, Usage
from headrace.workers.hosting.executor_wire import EventsSent
from headrace.workers.lender import LEAST_WORKER_BYTES
from headrace.workers.wire import FunctionReference
from tests.interviews.contract_driver import Controller, chunk, spec_for
from tests.interviews.executors import IsolatedWithPool
from tests.interviews.workers import survey_answers
from tests.interviews.workers.survey_jobs import children_of, job_of, wardens_of, why_failed, workers_of
from tests.models.server import HostileServer, Storm
from tests.trouble.children import Child, until
from tests.trouble.programs.letters import letters_job, right_letters
from tests.workers.trees import MB, gone_within, is_alive, memory_of, soon

ROOT = Path(__file__).parents[3]

PARTS = (
    "ordinal",
    "status",
    "answer",
    "agent",
    "scenario",
    "prompts",
    "raw_responses",
    "failures",
    "skipped",
    "tokens",
)
PRICE = {"input": 1000.0, "output": 2000.0}


def everything(results: Results) -> list[dict[str, Any]]:
    return [{part: result[part] for part in (*PARTS, "iteration", "system_prompt")} for result in results]


def survey_with_rules() -> Survey:
    return Survey(
        [
            QuestionMultipleChoice(
                question_name="mood", question_text="How is {{ scenario.city }}?", question_options=["Good", "Bad"]
            ),
            QuestionYesNo(question_name="commutes", question_text="Do you commute?"),
            QuestionFreeText(question_name="why", question_text="You said {{ mood.answer }}. Why?"),
            QuestionFreeText(question_name="way", question_text="Which way?"),
        ]
    ).add_skip_rule("way", "{{ commutes.answer }} == 'No'")


def test_workers_give_the_same_results_as_inline(tmp_path: Path):
    models = ModelList(
        [
            Model("test", canned_response={"mood": "Good", "commutes": "No", "why": "rain"}),
            Model("test", canned_response={"mood": "Awful", "commutes": "Yes", "way": "by tram"}, seed=1),
            Model("test", canned_response={"mood": "Bad", "commutes": "Yes", "way": "w", "why": "y"}, latency_s=0.001),
        ]
    )
    agents = AgentList(Agent(name=f"p{n}", traits={"age": n}) for n in range(40))
    job = survey_with_rules().by(agents, ScenarioList.from_list("city", ["Oslo", "Lima"]), models)
    inline = everything(job.run(tmp_path / "inline.run", n=2))
    isolated = job.run(tmp_path / "isolated.run", n=2, workers=2)
    assert everything(isolated) == inline
    assert len(inline) == 480
    ours, theirs = isolated.stats(), Results.open(tmp_path / "inline.run").stats()
    assert (ours.failed, ours.calls, ours.input_tokens) == (theirs.failed, theirs.calls, theirs.input_tokens)
    assert ours.failed > 0


def test_interviews_are_conducted_by_as_many_processes_as_asked_for(tmp_path: Path):
    (met := tmp_path / "met").mkdir()
    job = job_of(dict.fromkeys(range(300), str(met)), 300, Model.from_function(survey_answers.pid_once_there_are_three))
    others = children_of(os.getpid())
    with job.run(tmp_path / "a.run", workers=3, concurrency=300) as results:
        pids = {int(result.answer["q"]) for result in results}
    assert len(pids) == 3
    assert os.getpid() not in pids
    assert not any(is_alive(pid) for pid in pids)
    assert children_of(os.getpid()) == others


def test_a_model_of_ones_own_is_found_by_its_name(tmp_path: Path):
    results = job_of({}, 30, Model.from_function(survey_answers.reply)).run(tmp_path / "a.run", workers=2)
    assert [result.answer["q"] for result in results] == [f"Who is {n}: {n}" for n in range(30)]


def test_a_killed_worker_costs_no_interview(tmp_path: Path):
    job = job_of({}, 600, Model("test", canned_response="x", latency_s=0.01))
    killed: list[int] = []

    def kill_one(result: Any) -> None:
        if result.ordinal in {100, 200, 300} and (living := workers_of(os.getpid())):
            killed.append(living[0])
            os.kill(living[0], signal.SIGKILL)

    results = job.run(tmp_path / "a.run", workers=2, concurrency=40, on_result=kill_one)
    stats = results.stats()
    assert len(killed) == 3
    assert (stats.interviews, stats.failed) == (600, 0), why_failed(tmp_path / "a.run")
    assert [result.ordinal for result in results] == list(range(600))


def test_a_killed_warden_costs_no_interview(tmp_path: Path):
    job = job_of({}, 400, Model("test", canned_response="x", latency_s=0.01))
    wardens = set[int]()

    def kill_the_warden(result: Any) -> None:
        if not wardens and (living := wardens_of(os.getpid())):
            wardens.add(living[0])
            os.kill(living[0], signal.SIGKILL)

    stats = job.run(tmp_path / "a.run", workers=2, concurrency=40, on_result=kill_the_warden).stats()
    assert (len(wardens), stats.interviews, stats.failed) == (1, 400, 0), why_failed(tmp_path / "a.run")


def test_a_killed_controller_leaves_nobody_behind(tmp_path: Path):
    path = tmp_path / "town.run"
    with Child("run_town", path, 60, 0.05, 16, WORKERS="2") as child:
        until(lambda: len(workers_of(child.pid)) == 2, "two workers")
        family = [*children_of(child.pid), *wardens_of(child.pid), *workers_of(child.pid)]
        assert len(family) == 4
        child.kill()
    assert gone_within(family, 5.0) == []
    for left in tmp_path.iterdir():
        if left.is_socket():
            left.unlink()  # the killed controller's own: its next run would take it over


POISONS = {
    "eat:400000000": (Cause.OUT_OF_MEMORY, "memory limit"),
    "children:400000000": (Cause.OUT_OF_MEMORY, "with a limit of"),
    "segfault": (Cause.CRASHED, "SIGSEGV"),
    "exit:3": (Cause.CRASHED, "code 3"),
}


@pytest.mark.parametrize("model", ["instant", "slow"])
def test_poisoned_interviews_fail_with_their_true_cause_and_the_rest_goes_on(model: str, tmp_path: Path):
    acts = dict(zip((7, 30, 31, 90), POISONS, strict=True))
    slow = Model.from_function(survey_answers.act_slowly)
    job = job_of(acts, 120, slow if model == "slow" else Model("test", canned_response=survey_answers.act))
    results = job.run(tmp_path / "a.run", workers=2, memory="+200MB")
    failed = {result.ordinal: result.failures[0] for result in results if result.status == "failed"}
    assert failed.keys() == acts.keys(), failed
    for ordinal, act in acts.items():
        cause, told = POISONS[act]
        assert failed[ordinal].cause == cause.value
        assert told in failed[ordinal].message
    assert sum(result.status == "done" for result in results) == 116


def test_an_interview_too_large_for_a_message_fails_and_holds_nobody_up(tmp_path: Path):
    sizes = {3: "write:80000000", 5: "write:20000000", 6: "write:20000000"}
    results = job_of(sizes, 12).run(tmp_path / "a.run", workers=1, memory="+3GB", concurrency=2)
    failed = {result.ordinal: result.failures[0].message for result in results if result.status == "failed"}
    assert failed.keys() == {3}
    assert "more than a worker can send" in failed[3]
    assert len(results[6].answer["q"]) == 20_000_000


async def test_a_late_event_of_a_part_that_was_given_out_again_is_refused():
    """On one host a worker's events come before its death; from another host they may come after it."""
    model = Model("test", canned_response="in time", latency_s=0.3)
    executor = IsolatedWithPool([model.functions], workers=1)
    await executor.open(spec_for(model))
    try:
        executor.lease(Lease(interviews=4, buffer_bytes=1_000_000))
        await executor.start(chunk(1, 0, 4))
        (slot,) = executor._slots
        os.kill(slot.host.worker.pid, signal.SIGKILL)
        assert await soon(lambda: [part.epoch for part in slot.parts.values()] == [2])
        (part,) = slot.parts.values()
        row = Row(0, 0, 0, 0, 0, Status.DONE, ["late", "late"], None, b"", [], Usage(1, 1, 1))
        late = Rows(id=part.id, epoch=1, seq=1, rows=row_batch([row]))
        executor._take_message(slot, EventsSent(Batch(1, [late])), 100)
        controller = Controller(executor)
        await controller.read_until(lambda: 1 in controller.ended)
    finally:
        await executor.close()
    assert sorted(row.ordinal for row in controller.rows) == [0, 1, 2, 3]
    assert {answer for row in controller.rows for answer in row.answers} == {"in time"}


async def test_an_agent_too_large_for_a_message_fails_its_interview_only():
    work = chunk(1, 0, 5)
    work.agents[2] = b'{"n": 2, "text": "%s"}' % (b"x" * 51_000_000)
    controller = await conducted(work, Model("test", canned_response="x"))
    ((ordinal, _, cause, message), _) = controller.failures  # one for each question
    assert (ordinal, cause) == (2, Cause.DATA.value)
    assert "more than a worker can be sent" in message
    assert sorted(row.ordinal for row in controller.rows) == list(range(5))


def test_an_interview_whose_worker_died_once_is_answered_the_second_time(tmp_path: Path):
    job = job_of({20: f"once:{tmp_path / 'mark'}"}, 100)
    results = job.run(tmp_path / "a.run", workers=2)
    assert results.stats().failed == 0
    assert results[20].answer["q"] == "q of 20 by once"


def test_a_run_of_nothing_but_poison_ends(tmp_path: Path):
    job = job_of(dict.fromkeys(range(12), "exit:1"), 12)
    stats = job.run(tmp_path / "a.run", workers=2).stats()
    assert (stats.interviews, stats.failed) == (12, 12)


def test_what_died_of_its_worker_is_tried_again_by_the_next_run(tmp_path: Path):
    mark = tmp_path / "mark"
    job = job_of({3: "exit:1", 5: f"once:{mark}"}, 10)
    assert job.run(tmp_path / "a.run", workers=1).stats().failed == 1
    with Results.open(tmp_path / "a.run") as results:
        assert results[3].failures[0].cause == Cause.CRASHED.value
    assert job.run(tmp_path / "a.run", workers=1).stats().reused == 9


async def conducted(work: Chunk, model: Model, **options: Any) -> Controller:
    """What came of one chunk."""
    executor = IsolatedWithPool([model.functions], **options)
    await executor.open(spec_for(model))
    executor.lease(Lease(interviews=10, buffer_bytes=1_000_000))
    controller = Controller(executor)
    try:
        await executor.start(work)
        await controller.read_until(lambda: work.id in controller.ended)
    finally:
        await executor.close()
    return controller


async def test_a_worker_that_hangs_is_ended_and_its_interview_fails():
    work = chunk(1, 0, 8)
    work.agents[5] = b'{"n": 5, "act": "hang"}'
    controller = await conducted(work, Model("test", canned_response=survey_answers.act), hang_s=0.6)
    assert controller.ended[1] is ExitCause.DONE
    for ordinal, _, cause, message in controller.failures:
        assert (ordinal, cause) == (5, Cause.CRASHED.value)
        assert "0.6 s" in message
    assert [row.ordinal for row in controller.rows if row.status] == [5]
    assert sorted(row.ordinal for row in controller.rows) == list(range(8))


def acting(acts: dict[int, str], count: int) -> Chunk:
    work = chunk(1, 0, count)
    for number, act in acts.items():
        work.agents[number] = b'{"n": %d, "act": "%s"}' % (number, act.encode())
    return work


async def test_interviews_that_need_more_than_a_workers_part_get_all_there_is():
    """Each needs 55 MB at some moment; four workers may use 40 MB each."""
    work = acting(dict.fromkeys(range(0, 12, 3), "borrow:55000000"), 12)
    model = Model("test", canned_response=survey_answers.act)
    controller = await conducted(work, model, workers=4, limit_bytes=40_000_000)
    assert controller.failures == []
    assert sorted(row.ordinal for row in controller.rows) == list(range(12))


async def test_an_interview_that_needs_more_than_there_is_fails_and_the_others_go_on():
    work = acting({5: "borrow:300000000"}, 12)
    controller = await conducted(work, Model("test", canned_response=survey_answers.act))
    assert {(ordinal, cause) for ordinal, _, cause, _ in controller.failures} == {(5, Cause.OUT_OF_MEMORY.value)}
    assert sorted(row.ordinal for row in controller.rows) == list(range(12))


async def test_a_budget_in_which_no_interview_fits_is_an_error_and_fails_none():
    work = acting(dict.fromkeys(range(12), "borrow:300000000"), 12)
    with pytest.raises(BudgetTooSmall, match=r"with all the 134 MB that workers may use.*without workers="):
        await conducted(work, Model("test", canned_response=survey_answers.act))


async def test_workers_that_crash_one_after_the_other_fail_no_further_interview():
    """A library that crashes where memory ends leaves no reading of it."""
    work = acting(dict.fromkeys(range(12), "segfault"), 12)
    with pytest.raises(BudgetTooSmall, match=r"SIGSEGV"):
        await conducted(work, Model("test", canned_response=survey_answers.act))


async def test_at_most_ten_chunks_wait_for_a_worker_to_take_them():
    model = Model("test", canned_response=survey_answers.act)
    executor = IsolatedWithPool([model.functions], workers=1)
    await executor.open(spec_for(model))
    executor.lease(Lease(interviews=10, buffer_bytes=1_000_000))
    try:
        busy = chunk(1, 0, 1)
        busy.agents[0] = b'{"n": 0, "act": "hang"}'
        await executor.start(busy)
        assert await soon(lambda: [part.is_taken for part in executor._slots[0].parts.values()] == [True])
        for number in range(2, 12):
            await executor.start(chunk(number, number, 1))
        eleventh = asyncio.create_task(executor.start(chunk(12, 12, 1)))
        await asyncio.sleep(0.3)
        assert not eleventh.done()
        eleventh.cancel()
    finally:
        await executor.close()


@contextmanager
def growth() -> Iterator[list[int]]:
    """The most that this process and its descendants use above what they did before, once it is over."""
    before, highest, is_over = memory_of(os.getpid()), [0], threading.Event()

    def look() -> None:
        while not is_over.wait(0.03):  # a look takes 5 ms of CPU time
            highest[0] = max(highest[0], memory_of(os.getpid()) - before)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield highest
    finally:
        is_over.set()
        watcher.join()


def test_the_whole_tree_stays_within_its_budget(tmp_path: Path):
    """Each interview takes 30 MB and keeps it: workers meet their limits again and again."""
    job = job_of(dict.fromkeys(range(0, 60, 2), "eat:30000000"), 60)
    with growth() as highest:
        stats = job.run(tmp_path / "a.run", workers=2, memory="+256MB").stats()
    assert (stats.interviews, stats.failed) == (60, 0), why_failed(tmp_path / "a.run")
    assert 60_000_000 < highest[0] < 256_000_000 + 32 * MB  # it did look


def letters(path: str, count: int, chars: int, latency_s: float, **options: Any) -> list[int]:
    """How many failed, how many are right, and by how much memory grew."""
    with growth() as highest:
        stats = letters_job(count, chars=chars, latency_s=latency_s).run(path, **options).stats()
    return [stats.failed, right_letters(Path(path), chars), highest[0]]


def letters_in_a_process_of_their_own(*arguments: object, **options: object) -> list[int]:
    """What other tests have left in this one would be given back meanwhile, or counted."""
    call = f"letters(*{arguments!r}, **{options!r})"
    program = (
        f"import json; from tests.interviews.workers.test_survey_workers import letters; print(json.dumps({call}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=90
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_large_answers_wait_in_workers_until_there_is_room_for_them_here(tmp_path: Path):
    """All arrive at once, and the controller reads them as it can write them."""
    told = letters_in_a_process_of_their_own(str(tmp_path / "a.run"), 60, 500_000, 0.02, workers=2, memory="+150MB")
    assert told[:2] == [0, 60]
    assert told[2] < 150_000_000 + 32 * MB


@pytest.mark.parametrize(("workers", "budget_mb"), [(0, 80), (2, 160)])
def test_a_slow_models_first_answers_may_be_large(workers: int, budget_mb: int, tmp_path: Path):
    """Nobody has seen one when the window opens: 60 of them, all under way at once, would take more than there is."""
    options: dict[str, Any] = {"workers": workers, "memory": f"+{budget_mb}MB", "concurrency": 200}
    told = letters_in_a_process_of_their_own(str(tmp_path / "a.run"), 60, 1_000_000, 0.3, **options)
    assert told[:2] == [0, 60]
    assert told[2] < (budget_mb + 32) * MB


def test_results_are_delivered_as_they_come(tmp_path: Path):
    job, seen = job_of({}, 200), list[int]()
    job.run(tmp_path / "a.run", workers=2, limit=100, on_result=lambda result: seen.append(result.ordinal))
    assert sorted(seen) == list(range(100))
    streamed = [result.answer["q"] for result in job.stream(tmp_path / "a.run", workers=2)]
    assert sorted(streamed) == sorted(f"q of {n} by nobody" for n in range(200))


async def test_results_are_delivered_on_the_callers_loop(tmp_path: Path):
    job = job_of({}, 50)
    assert len([result async for result in job.astream(tmp_path / "a.run", workers=2)]) == 50


def test_the_first_failure_stops_a_run_that_was_asked_to(tmp_path: Path):
    job = job_of({30: "exit:4"}, 20_000)
    with pytest.raises(InterviewFailed, match="its process ended: its worker exited with code 4"):
        job.run(tmp_path / "a.run", workers=2, stop_on_exception=True)
    assert len(Results.open(tmp_path / "a.run")) < 20_000


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


def service(server: HostileServer, name: str = "m", **parameters: Any) -> Model:
    return Model(name, base_url=server.url, service_name="openai_compatible", **parameters)


def test_two_workers_keep_to_the_rate_of_one_process(server: HostileServer, tmp_path: Path):
    """A burst of two seconds' worth, then an even rate: two workers with a limit each would send all in one burst."""
    burst, per_s, times = 20, 10.0, list[float]()
    server.behave(lambda _: times.append(time.monotonic()) or "ok")
    job = job_of({}, 40, service(server, requests_per_minute=60 * per_s))
    began_s = time.monotonic()
    stats = job.run(tmp_path / "a.run", workers=2, cache=False).stats()
    assert (stats.interviews, stats.failed, stats.calls, len(times)) == (40, 0, 40, 40), why_failed(tmp_path / "a.run")
    # Counted from before the first, by when each arrived: on a slow machine there are only fewer.
    ahead = [number for number, at_s in enumerate(times, 1) if number > burst + per_s * (at_s - began_s)]
    assert ahead == []


def test_two_workers_have_no_more_calls_under_way_than_one_process(server: HostileServer, tmp_path: Path):
    under_way, highest = [0], [0]

    def note(_: Any) -> str:
        under_way[0] += 1
        highest[0] = max(highest[0], under_way[0])
        return "ok"

    def done(_: Any) -> float:
        asyncio.get_running_loop().call_later(0.05, lambda: under_way.__setitem__(0, under_way[0] - 1))
        return 0.05

    server.behave(note, latency=done)
    stats = job_of({}, 200, service(server)).run(tmp_path / "a.run", workers=2, concurrency=7, cache=False).stats()
    assert (stats.failed, stats.endpoints[0].calls) == (0, 200), why_failed(tmp_path / "a.run")
    assert 2 <= highest[0] <= 7


def test_a_storm_of_429_is_one_incident_for_all_workers(server: HostileServer, tmp_path: Path):
    server.behave(Storm("429-seconds", 1.5, after_calls=100), latency=lambda _: 0.01)
    stats = job_of({}, 400, service(server)).run(tmp_path / "a.run", workers=2, concurrency=50, cache=False).stats()
    assert (stats.interviews, stats.failed) == (400, 0), why_failed(tmp_path / "a.run")
    assert 400 < server.calls <= 400 + 60
    assert stats.endpoints[0].busy == server.calls - 400


def test_a_wrong_key_stops_its_own_model_in_all_workers(server: HostileServer, tmp_path: Path):
    asked: list[str] = []

    def one_key_is_wrong(call: Any) -> str:
        asked.append(call.body["model"])
        return "401" if asked[-1] == "bad" else "ok"

    server.behave(one_key_is_wrong)
    job = job_of({}, 100, service(server, "bad"), service(server, "good"))
    with pytest.raises(ModelUnusable, match=r"bad at .* answered 401.*100 of 200 interviews are done"):
        job.run(tmp_path / "a.run", workers=2, concurrency=20)
    assert 1 <= asked.count("bad") <= 20
    assert asked.count("good") == 100


def test_turns_of_a_dead_worker_are_given_back(server: HostileServer, tmp_path: Path):
    """With four calls at once, four turns that were lost would stop the run for good."""
    killed: list[int] = []

    def kill_while_asked(call: Any) -> str:
        if call.number in {8, 30}:
            for pid in (living := workers_of(os.getpid())):
                os.kill(pid, signal.SIGKILL)
            killed.append(len(living))
        return "ok"

    server.behave(kill_while_asked, latency=lambda _: 0.02)
    stats = job_of({}, 60, service(server)).run(tmp_path / "a.run", workers=2, concurrency=4, cache=False).stats()
    assert (stats.interviews, stats.failed) == (60, 0), why_failed(tmp_path / "a.run")
    assert len(killed) == 2


def test_the_response_cache_serves_all_workers(server: HostileServer, tmp_path: Path):
    job = job_of({}, 40, service(server, price=PRICE))
    assert job.run(tmp_path / "a.run", workers=2).stats().cost > 0
    again = job_of({}, 60, service(server, price=PRICE)).run(tmp_path / "b.run", workers=2).stats()
    assert (again.interviews, again.cache_hits, again.calls) == (60, 40, 20)
    assert server.calls == 60
    inline = job_of({}, 60, service(server, price=PRICE)).run(tmp_path / "c.run").stats()
    assert (inline.cache_hits, server.calls) == (60, 60)


def test_money_is_spent_as_by_one_process(server: HostileServer, tmp_path: Path):
    def job() -> Job:
        return job_of({}, 200, service(server, price=PRICE))

    each = job().run(tmp_path / "one.run", limit=1, cache=False).stats().cost
    with pytest.raises(BudgetSpent):
        job().run(tmp_path / "a.run", workers=2, max_cost=each * 20.5, cache=False, concurrency=8)
    spent = Results.open(tmp_path / "a.run").stats().cost
    assert each * 10 < spent <= each * 20.5


def has_pending_answers(path: Path) -> bool:
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        connection.set_busy_timeout(10_000)
        return connection.execute("SELECT count(*) FROM pending").get > 0


def test_answers_of_a_dead_worker_that_are_journaled_are_not_asked_for_again(server: HostileServer, tmp_path: Path):
    asked = Survey(
        [
            QuestionFreeText(question_name="one", question_text="First of {{ agent.n }}?"),
            QuestionFreeText(question_name="two", question_text="You said {{ one.answer }}. Second of {{ agent.n }}?"),
        ]
    )
    killing: list[threading.Thread] = []

    def kill_once_the_first_is_journaled() -> None:
        until(lambda: has_pending_answers(tmp_path / "a.run"), "the first answer in the file")
        for pid in workers_of(os.getpid()):
            os.kill(pid, signal.SIGKILL)

    def kill_at_the_second(call: Any) -> str:
        if "Second" in call.prompt and not killing:
            killing.append(threading.Thread(target=kill_once_the_first_is_journaled))
            killing[0].start()
            return "hang"
        return "ok"

    server.behave(kill_at_the_second)
    job = asked.by(AgentList.from_list("n", range(1)), service(server))
    stats = job.run(tmp_path / "a.run", workers=1, cache=False).stats()
    assert (stats.interviews, stats.failed, stats.calls) == (1, 0, 3), why_failed(tmp_path / "a.run")
    assert [("Second" in call.prompt) for call in server.script.kept] == [False, True, True]
    killing[0].join()


@pytest.mark.parametrize("workers", [-1, 1.5, "2", True, 10**6])
def test_a_number_of_workers_that_is_none_is_refused(workers: Any, tmp_path: Path):
    with pytest.raises(OptionError, match="workers="):
        job_of({}, 3).run(tmp_path / "a.run", workers=workers)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", [0, None])
def test_no_workers_means_inline(workers: int | None, tmp_path: Path):
    results = job_of({}, 3, Model("test", canned_response=survey_answers.pid)).run(tmp_path / "a.run", workers=workers)
    assert {result.answer["q"] for result in results} == {str(os.getpid())}


def test_a_function_that_no_worker_could_find_is_refused_with_the_way_out(tmp_path: Path):
    job = job_of({}, 3, Model("test", canned_response=lambda request: "x"))
    with pytest.raises(InvalidInput, match=r"cannot be run in a process of its own.*without workers="):
        job.run(tmp_path / "a.run", workers=2)
    assert list(tmp_path.iterdir()) == []


def test_a_local_model_is_refused_because_it_has_a_process_already(tmp_path: Path):
    with pytest.raises(OptionError, match="process of its own already"):
        job_of({}, 3, Model("local", path=str(tmp_path / "m.gguf"))).run(tmp_path / "a.run", workers=2)


def test_a_system_without_processes_of_this_kind_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(survey_workers, "can_isolate", lambda: False)
    with pytest.raises(OptionError, match="Run without workers="):
        job_of({}, 3).run(tmp_path / "a.run", workers=2)


async def test_an_engine_refuses_workers_for_its_surveys(tmp_path: Path):
    async with Engine(tmp_path / "e.run") as engine:
        with pytest.raises(OptionError, match="Leave workers= out"):
            await engine.run(job_of({}, 3), tmp_path / "a.run", workers=2)


def test_a_budget_without_room_for_workers_is_refused_with_the_figure(tmp_path: Path):
    with pytest.raises(BudgetTooSmall, match=r"no room for 64 workers.*memory="):
        job_of({}, 3).run(tmp_path / "a.run", workers=64, memory="+200MB")
    assert list(tmp_path.iterdir()) == []


def test_limits_of_all_workers_fit_into_the_budget():
    for workers in (1, 2, 7):
        limit = worker_limit_bytes(512_000_000, 80_000_000, workers)
        assert workers * limit + 80_000_000 < 512_000_000


def test_a_worker_that_cannot_start_ends_the_run_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    missing = FunctionReference("no.such.module", "act", "/nowhere.py")
    monkeypatch.setattr(survey_workers, "refer_to", lambda _: missing)
    others = children_of(os.getpid())
    with pytest.raises(HeadraceError, match=r"No worker can be had .*nowhere\.py"):
        job_of({}, 3).run(tmp_path / "a.run", workers=2)
    assert children_of(os.getpid()) == others


async def test_the_least_that_a_worker_may_have_is_enough_for_a_service(server: HostileServer):
    """Threads that a library starts reserve their stacks, which count: 32 MB before the first call."""
    server.behave("ok", answer="y" * 2_000)
    model = Model("m", base_url=server.url, service_name="openai_compatible")
    executor_options = {"workers": 1, "limit_bytes": LEAST_WORKER_BYTES, "has_network": True}
    controller = await conducted(chunk(1, 0, 40), model, **executor_options)
    assert (len(controller.rows), controller.failures, server.calls) == (40, [], 80)
