"""Many model servers whose addresses are in a file: who is asked, while addresses join, leave, die and come back."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from headrace import AgentList, Engine, Job, Model, QuestionFreeText, Results, ScenarioList, Survey
from headrace.errors import ListError
from headrace.limits import EndpointLimits
from headrace.models import address_list, shared_limiters
from tests.interviews.workers.survey_jobs import workers_of
from tests.models.server import HostileServer

PATIENCE_S = 60.0
LATENCY_S = 0.1  # with few interviews: a run lasts long enough to change things, and costs little
WORKERS = pytest.mark.parametrize("workers", [0, 2])


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_list, "_LOOK_EVERY_S", 0.1)
    monkeypatch.setattr(
        shared_limiters,
        "endpoint_limits",
        lambda _: EndpointLimits(first_concurrency=24, first_away_s=0.05, longest_away_s=30.0),
    )


@pytest.fixture
def servers() -> Iterator[list[HostileServer]]:
    with ExitStack() as stack:
        started = [stack.enter_context(HostileServer()) for _ in range(3)]
        for server in started:
            server.behave("ok", latency=lambda _: LATENCY_S)
        yield started


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "endpoints.txt"


def write(file: Path, *servers: HostileServer) -> None:
    """As a careful program writes it: a whole new file in place of the old one."""
    other = file.with_suffix(".new")
    other.write_text("".join(f"{server.url}\n" for server in servers))
    other.replace(file)


def a_job(file: Path | str, interviews: int, **parameters: Any) -> Job:
    survey = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ scenario.n }}?")])
    model = Model("m", base_url=f"@{file}", **parameters)
    return survey.by(ScenarioList.from_list("n", range(interviews)), model)


class Running:
    """A job that runs in a thread; a test changes things meanwhile, and `end` has its results."""

    def __init__(self, job: Job, path: Path, **options: Any) -> None:
        self._made: list[Results | BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(job, path, options))
        self._thread.start()

    def _run(self, job: Job, path: Path, options: dict[str, Any]) -> None:
        try:
            self._made.append(job.run(path, progress_bar=False, **options))
        except BaseException as error:  # noqa: BLE001 - raised by `end`
            self._made.append(error)

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert self._thread.is_alive(), self._made
            assert time.monotonic() < until_s
            time.sleep(0.01)

    def end(self) -> Results:
        self._thread.join(PATIENCE_S)
        (made,) = self._made
        if isinstance(made, BaseException):
            raise made
        return made


def assert_each_once(results: Results, servers: list[HostileServer], interviews: int) -> None:
    """Every interview was asked once, by one of the servers, and the run file says so."""
    asked = sum((server.script.prompts for server in servers), Counter[str]())
    assert (len(results), results.stats().failed, results.stats().calls) == (interviews, 0, interviews)
    assert (asked.total(), len(asked)) == (interviews, interviews)


@WORKERS
def test_an_address_that_joins_gets_calls_and_one_that_leaves_gets_no_more(tmp_path, servers, file, workers, caplog):
    caplog.set_level(logging.INFO, logger="headrace")
    first, second, third = servers
    write(file, first, second)
    running = Running(a_job(file, 600), tmp_path / "a.run", concurrency=12, workers=workers)
    running.wait_until(lambda: first.calls > 25 and second.calls > 25)
    assert third.calls == 0
    write(file, second, third)
    told = lambda: [record.getMessage() for record in caplog.records if record.name == "headrace"]  # noqa: E731
    running.wait_until(lambda: bool(told()))
    at_first = first.calls
    running.wait_until(lambda: third.calls > 100)
    results = running.end()
    assert first.calls <= at_first + 12  # of calls that were on their way when the file changed
    assert_each_once(results, servers, 600)
    assert told() == [f"m: {file} has 2 addresses now: {third.url} has joined; {first.url} has left."]


@WORKERS
def test_a_file_that_cannot_be_used_for_a_while_changes_nothing_and_is_told_once(
    tmp_path, servers, file, workers, caplog
):
    caplog.set_level(logging.INFO, logger="headrace")
    first, second, third = servers
    write(file, first)
    running = Running(a_job(file, 500), tmp_path / "a.run", concurrency=12, workers=workers)
    running.wait_until(lambda: first.calls > 10)
    told = lambda: [record.getMessage() for record in caplog.records if record.name == "headrace"]  # noqa: E731
    # These are written as an editor does: the same file with other contents.
    for number, spoil in enumerate([file.unlink, lambda: file.write_text("# none\n"), lambda: file.write_text("\nx")]):
        spoil()
        running.wait_until(lambda number=number: len(told()) > number)
        at_first = first.calls
        running.wait_until(lambda at=at_first: first.calls > at + 25)
    write(file, first, second, third)
    running.wait_until(lambda: second.calls > 10 and third.calls > 10)
    assert_each_once(running.end(), servers, 500)
    problems = ["cannot be read: No such file or directory.", "has no address.", "has no address in line 2."]
    stays = "The 1 address known before stays in use until the file can be used again."
    assert told()[:3] == [f"Model 'm': its address file {file} {problem} {stays}" for problem in problems]
    assert told()[3:] == [f"m: {file} has 3 addresses now: {second.url}, {third.url} have joined."]


@WORKERS
def test_a_server_that_is_killed_and_comes_back_is_used_again(tmp_path, servers, file, workers):
    first, second, _ = servers
    killed = HostileServer().__enter__()
    for server in (first, second, killed):
        server.behave("ok", latency=lambda _: 0.2)  # an address that failed is left alone for 5 s
    write(file, first, second, killed)
    running = Running(a_job(file, 600), tmp_path / "a.run", concurrency=12, workers=workers)
    running.wait_until(lambda: killed.calls > 25)
    killed.__exit__()
    at_second = second.calls
    running.wait_until(lambda: second.calls > at_second + 50)
    with HostileServer(killed.port) as back:
        back.behave("ok", latency=lambda _: 0.2)
        running.wait_until(lambda: back.calls > 25)
        results = running.end()
        assert (len(results), results.stats().failed) == (600, 0)
        asked = sum((each.script.prompts for each in [*servers, killed, back]), Counter[str]())
    assert len(asked) == 600
    assert asked.total() <= 600 + 12  # what was in flight at its death was asked again


def test_a_worker_that_replaces_a_killed_one_knows_the_addresses_of_now(tmp_path, servers, file):
    first, second, _ = servers
    write(file, first)
    running = Running(a_job(file, 500), tmp_path / "a.run", concurrency=12, workers=2)
    running.wait_until(lambda: first.calls > 10)
    write(file, second)
    running.wait_until(lambda: second.calls > 10)
    for pid in workers_of(os.getpid()):
        os.kill(pid, signal.SIGKILL)
    at_first, at_second = first.calls, second.calls
    running.wait_until(lambda: second.calls > at_second + 25)
    results = running.end()
    assert (len(results), results.stats().failed) == (500, 0)
    assert first.calls <= at_first + 12  # of calls that were on their way when the file changed


@WORKERS
def test_where_no_address_can_be_reached_one_that_joins_is_asked_at_once(tmp_path, servers, file, workers):
    dead = HostileServer().__enter__()
    dead.__exit__()
    write(file, dead)
    running = Running(a_job(file, 50), tmp_path / "a.run", concurrency=12, workers=workers)
    time.sleep(2)  # by now it is tried every few seconds, and soon every 30
    began_s = time.monotonic()
    write(file, dead, servers[0])
    results = running.end()
    assert_each_once(results, servers, 50)
    assert time.monotonic() - began_s < 15


def test_a_run_needs_a_file_with_addresses_before_anything_starts(tmp_path, file):
    def said(text: str | None) -> str:
        if text is not None:
            file.write_text(text)
        with pytest.raises(ListError) as raised:
            a_job(file, 3).run(tmp_path / "a.run")
        return raised.value.message

    assert said(None) == f"Model 'm': its address file {file} cannot be read: No such file or directory."
    assert said("\n  # http://a\n") == f"Model 'm': its address file {file} has no address."
    assert said("http://a:1/v1\n\nlocalhost:8000\n") == f"Model 'm': its address file {file} has no address in line 3."
    assert not (tmp_path / "a.run").exists()


def test_a_plan_stays_the_same_whatever_the_addresses_and_the_folder(tmp_path, servers, file, monkeypatch):
    write(file, servers[0])
    job = a_job(file, 5)
    job.run(tmp_path / "a.run", limit=2)
    folder = tmp_path / "moved"
    folder.mkdir()
    write(folder / file.name, servers[1], servers[2])
    monkeypatch.chdir(folder)
    moved = a_job(file.name, 5, affinity="prefix")
    assert moved.identity() == job.identity()
    assert str(tmp_path).encode() not in job.models[0].identity_row()
    assert_each_once(moved.run(tmp_path / "a.run"), servers, 5)
    assert servers[0].calls == 2
    assert a_job("others.txt", 5).identity() != job.identity()


def test_an_engines_agents_are_asked_at_the_addresses_of_the_file_too(tmp_path, servers, file):
    write(file, servers[0])
    model = Model("m", base_url=f"@{file}")

    async def agent(ctx, n):
        return await ctx.ask(model, f"Who is {n}?")

    async def main() -> list[str]:
        async with Engine(tmp_path / "e.run", isolation="inline") as engine:
            assert await (await engine.submit(agent, 0)).result() == "Good"
            write(file, servers[1])
            asked = 0
            while not servers[1].calls:
                assert await (await engine.submit(agent, asked := asked + 1)).result() == "Good"
                await asyncio.sleep(0.05)
            return [event.reason for event in await engine.events() if event.what == "addresses changed"]

    assert asyncio.run(asyncio.wait_for(main(), PATIENCE_S)) == [
        f"m: {file} has 1 address now: {servers[1].url} has joined; {servers[0].url} has left."
    ]


def systems_by_server(servers: list[HostileServer]) -> set[tuple[str, int]]:
    return {(call.body["messages"][0]["content"], server.port) for server in servers for call in server.script.kept}


@WORKERS
def test_prompts_that_begin_alike_go_to_the_same_address(tmp_path, servers, file, workers):
    """The calls of one agent share its persona; without affinity they go everywhere."""
    write(file, *servers)
    survey = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ scenario.n }}?")])
    asked = survey.by(AgentList.from_list("age", range(15)), ScenarioList.from_list("n", range(20)))
    pairs = {}
    for affinity in (None, "prefix"):
        given = {} if affinity is None else {"affinity": affinity}
        job = asked.by(Model("m", base_url=f"@{file}", **given))
        results = job.run(tmp_path / f"{affinity}.run", concurrency=12, workers=workers, cache=False)
        assert_each_once_of(results, servers, 300)
        pairs[affinity] = len(systems_by_server(servers))
        for server in servers:
            server.behave("ok", latency=lambda _: LATENCY_S)
    assert pairs[None] > 38  # of 45: on a busy machine one address or another gets none of an agent's calls
    assert 15 <= pairs["prefix"] <= 30


def assert_each_once_of(results: Results, servers: list[HostileServer], interviews: int) -> None:
    asked = sum(server.calls for server in servers)
    assert (len(results), results.stats().failed, results.stats().calls, asked) == (interviews, 0, *[interviews] * 2)


@WORKERS
def test_an_address_gets_little_more_than_its_share_however_many_prompts_begin_alike(tmp_path, servers, file, workers):
    write(file, *servers)
    at_once: dict[int, int] = {}
    for server in servers:
        server.behave(most_at_once(at_once, server.port), latency=lambda _: LATENCY_S)
    survey = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ scenario.n }}?")])
    people = AgentList.from_list("age", [30])
    model = Model("m", base_url=f"@{file}", affinity="prefix")
    job = survey.by(people, ScenarioList.from_list("n", range(400)), model)
    results = job.run(tmp_path / "a.run", concurrency=24, workers=workers)
    assert_each_once_of(results, servers, 400)
    # In one process: a quarter more than 24 / 3, and the one that is added. Each of two sees its own calls only: one
    # may have all 24 in flight, 10 of them here, and while those last, the other has the 14 that the rest left, 7 of
    # them here. That is as far as it goes: the first adds none here while it has 10.
    assert max(at_once.values()) <= (11 if workers == 0 else 10 + 7)
    assert max(server.calls for server in servers) < 0.7 * 400


def most_at_once(at_once: dict[int, int], port: int) -> Callable[[Any], str]:
    """Counts the calls in flight at a server whose calls all take the same time."""
    came: list[float] = []

    def choose(_: Any) -> str:
        now_s = time.monotonic()
        came[:] = [came_s for came_s in came if came_s > now_s - LATENCY_S] + [now_s]
        at_once[port] = max(at_once.get(port, 0), len(came))
        return "ok"

    return choose
