"""Surveys in workers with a real service: one request a question, and what a dead worker had paid for is counted."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from headrace import AgentList, Job, Model, QuestionFreeText, Results, Survey
from headrace.errors import BudgetSpent, HeadraceError
from headrace.interviews.workers import interview_executor as isolated_surveys
from headrace.results.result import Result
from tests.interviews.workers import survey_answers
from tests.interviews.workers.survey_jobs import job_of, why_failed, workers_of
from tests.models.server import HostileServer

TOKENS = 14  # of each reply
PRICE = {"input": 1000.0, "output": 2000.0}


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as one:
        yield one


def job_at(server: HostileServer, people: int, questions: int = 1) -> Job:
    model = Model("m", base_url=server.url, service_name="openai_compatible", price=PRICE)
    asked = [QuestionFreeText(question_name=f"q{n}", question_text="Who is {{ agent.n }}?") for n in range(questions)]
    return Survey(asked).by(AgentList.from_list("n", range(people)), model)


class Killer:
    """An `on_result` that sends SIGKILL to workers, each time that so many interviews have ended: a slow machine sees
    as many kills as a fast one.
    """

    def __init__(self, every: int, most: int = 1) -> None:
        self._every = every
        self._most = most
        self._ended = 0
        self.killed: list[int] = []

    def __call__(self, _: Result) -> None:
        self._ended += 1
        if self._ended % self._every == 0:
            for pid in workers_of(os.getpid())[: self._most]:
                os.kill(pid, signal.SIGKILL)
                self.killed.append(pid)


@contextmanager
def killing_all() -> Iterator[None]:
    """SIGKILL to each worker as soon as it is there."""
    is_over = threading.Event()

    def kill_on() -> None:
        while not is_over.wait(0.02):
            for pid in workers_of(os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_on)
    killer.start()
    try:
        yield
    finally:
        is_over.set()
        killer.join()


@pytest.mark.parametrize("answer", ["y" * 4_000, "y" * 400_000], ids=["4 KB", "400 KB"])
def test_workers_make_one_request_for_each_question(server: HostileServer, tmp_path: Path, answer: str):
    people = 400 if len(answer) < 100_000 else 60
    server.behave("ok", answer=answer, latency=lambda _: 0.02)
    stats = job_at(server, people).run(tmp_path / "a.run", workers=2, concurrency=200).stats()
    assert (stats.interviews, stats.failed, stats.calls) == (people, 0, people), why_failed(tmp_path / "a.run")
    assert server.calls == people


def test_large_replies_that_come_together_are_taken_as_memory_allows(server: HostileServer, tmp_path: Path):
    """Twelve of 4 MB in each worker: all at once they would take more than it may, and be paid again."""
    server.behave("ok", answer="y" * 4_000_000, latency=lambda _: 1.5)  # when they come, all have been asked for
    stats = job_at(server, 24).run(tmp_path / "a.run", workers=2, memory="+400MB").stats()
    assert (stats.interviews, stats.failed) == (24, 0), why_failed(tmp_path / "a.run")
    assert stats.calls == pytest.approx(server.calls, abs=2)
    # 24, unless this machine is so busy that a worker is late to see what it holds. Replies that do not
    # wait for room are paid for three times and more.
    assert server.calls <= 40


def test_what_killed_workers_had_paid_for_is_counted(server: HostileServer, tmp_path: Path):
    server.behave("ok", latency=lambda _: 0.1)
    window, kill = 20, Killer(every=60, most=2)
    job = job_at(server, 300, questions=2)
    stats = job.run(tmp_path / "a.run", workers=2, concurrency=window, on_result=kill).stats()
    assert len(kill.killed) >= 4
    assert (stats.interviews, stats.failed) == (300, 0), why_failed(tmp_path / "a.run")
    assert server.calls >= 600  # more, unless this machine is so busy that no call was in flight at a kill
    # A worker says that a call begins before it sends the request: what was paid for is never missing. A kill between
    # the two makes the count too high, by the calls that the worker had in flight at most.
    assert server.calls <= stats.calls <= server.calls + len(kill.killed) * window // 2
    assert 600 * TOKENS <= stats.tokens <= server.calls * TOKENS
    assert stats.cost == pytest.approx((stats.input_tokens * 1000 + stats.output_tokens * 2000) / 1e6)


def test_a_budget_holds_while_workers_are_killed(server: HostileServer, tmp_path: Path):
    budget, window = 3_500, 10
    server.behave("ok", latency=lambda _: 0.02)
    job, kill = job_at(server, 1_000), Killer(every=25)
    with pytest.raises(BudgetSpent, match="max_tokens_total=3500"):
        job.run(tmp_path / "a.run", workers=2, concurrency=window, max_tokens_total=budget, on_result=kill)
    assert len(kill.killed) >= 4
    with Results.open(tmp_path / "a.run") as results:
        assert results.stats().tokens <= budget
        assert results.stats().failed == 0
    # Whatever was in flight at a kill has no reply: the budget takes each for an average call.
    assert server.calls * TOKENS <= budget + window * TOKENS


def test_workers_killed_again_and_again_cost_no_interview(tmp_path: Path):
    job = job_of({}, 400, Model("test", canned_response="x", latency_s=0.05))
    kill = Killer(every=25, most=2)
    stats = job.run(tmp_path / "a.run", workers=2, concurrency=20, on_result=kill).stats()
    assert len(kill.killed) >= 15
    assert (stats.interviews, stats.failed) == (400, 0), why_failed(tmp_path / "a.run")


def test_workers_that_cannot_live_end_the_run_and_no_interview(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(isolated_surveys, "_LONGEST_REST_S", 0.05)
    job = job_of({}, 50, Model("test", canned_response="x", latency_s=30))
    told = "do not live long enough.*SIGKILL.*run again"
    with killing_all(), pytest.raises(HeadraceError, match=told):
        job.run(tmp_path / "a.run", workers=2, concurrency=20)
    with Results.open(tmp_path / "a.run") as results:
        assert (len(results), results.stats().failed) == (0, 0)


def test_an_interview_whose_worker_is_always_killed_is_left_for_a_later_run(tmp_path: Path):
    """Nothing tells a kill by its own hand from any other: it stays undone, and does not cost the others for ever."""
    job = job_of({17: "kill"}, 60, Model.from_function(survey_answers.act_slowly))
    with pytest.raises(HeadraceError, match=r"1 of 60 interviews are left: its worker was killed by SIGKILL"):
        job.run(tmp_path / "a.run", workers=2, concurrency=20)
    with Results.open(tmp_path / "a.run") as results:
        assert {result.ordinal for result in results} == set(range(60)) - {17}
        assert results.stats().failed == 0
        assert results.stats().calls < 59 * 3
