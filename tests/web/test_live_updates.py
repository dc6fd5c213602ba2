"""Live updates of a run that goes on in another process, and what many, slow and late clients cost."""

import asyncio
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace import Model, QuestionFreeText, ScenarioList, Survey
from headrace.cluster.node_states import NodeState
from headrace.errors import Interrupted
from headrace.interviews.steering.client import ask
from headrace.interviews.steering.messages import MOST_REPLY_BYTES, StopRequest, TuneRequest
from headrace.interviews.steering.server import state_reply
from headrace.models.model_endpoints import ModelEndpoint
from headrace.progress.pace import Progress
from headrace.store.holder_socket.socket_address import encoded
from headrace.web.live import watches as watches_module
from headrace.web.live.watches import Watches
from headrace.web.reads import Reads
from tests.cli.live import SURVEY, endless, live
from tests.models.server import HostileServer
from tests.trouble.children import until
from tests.web.event_client import EventClient, ServerSent, followed
from tests.web.running_page import RunningPage
from tests.web.viewing import viewing

pytestmark = pytest.mark.usefixtures("forks")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "s.yaml").write_text(SURVEY)
    return place


@pytest.fixture
def page(place: Path) -> Iterator[RunningPage]:
    with RunningPage(place) as page:
        yield page


def small_run(path: Path) -> None:
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    survey.by(Model("test", canned_response="the answer to all")).run(path, cache=False)


def only_id(page: RunningPage) -> str:
    (file,) = page.api("/runs")["files"]
    return file["id"]


def next_of(client: EventClient) -> ServerSent:
    event = client.next()
    assert event is not None
    return event


def until_event(client: EventClient, is_met: Any) -> ServerSent:
    return until(lambda: event if is_met(event := next_of(client)) else None, "an event", within_s=60)


def test_a_run_that_goes_on_is_followed_with_its_pace_and_its_end_is_told(page: RunningPage, place: Path):
    words = endless("place/a.run", interviews=1_000, latency_s=0.05, concurrency=4)
    with live(place.parent, *words) as run:
        run.state_once(place / "a.run")
        with followed(page.port, f"/runs/{only_id(page)}/events") as client:
            assert client.headers["content-type"] == "text/event-stream"
            assert client.headers["cache-control"] == "no-store"
            first = next_of(client)
            assert first.name == "run"
            assert first.data["cursor"] == first.id
            paced = until_event(client, lambda event: event.data["run"]["per_s"])
            now = paced.data["run"]
            texts = {figure["name"]: figure["text"] for figure in now["figures"]}
            assert now["state"] == "running"
            assert now["left_s"] > 0
            assert "a second" in texts["rate"]
            assert texts["interviews"] == f"{now['done']:,} of 1,000"
            assert now["live"]["pid"] == run.pid
            ask(place / "a.run", TuneRequest(200))
            ended = until_event(client, lambda event: event.data["run"]["state"] == "complete")
            assert ended.data["run"]["percent"] == 100
            assert "the answer" not in str(ended.data)


def test_a_client_that_comes_again_hears_only_of_what_has_changed(page: RunningPage, place: Path):
    small_run(place / "a.run")
    path = f"/runs/{only_id(page)}/events"
    with followed(page.port, path) as first:
        seen = next_of(first)
        with followed(page.port, path, last_id=seen.id) as again:
            assert again.is_silent(2.5)
        with followed(page.port, path, last_id="ffffffff-7") as stranger:
            assert next_of(stranger).data == seen.data
        with followed(page.port, path, last_id="no number at all") as stranger:
            assert next_of(stranger).data == seen.data


def test_the_list_tells_the_files_that_have_changed(page: RunningPage, place: Path):
    small_run(place / "a.run")
    with followed(page.port, "/events") as client:
        first = next_of(client)
        assert [file["name"] for file in first.data["files"]] == ["a.run"]
        assert first.data["files"][0]["texts"]["progress"] == "1 of 1"
        small_run(place / "b.run")
        second = until_event(client, lambda event: event.data["total"] == 2)
        assert "b.run" in {file["name"] for file in second.data["files"]}
        (place / "a.run").unlink()
        assert until_event(client, lambda event: event.data["total"] == 1).name == "files"


def test_what_cannot_be_followed_is_said_in_words(page: RunningPage, place: Path):
    with followed(page.port, "/runs/0011223344556677/events") as client:
        assert client.status == 404
        assert "no file" in client.body()
    small_run(place / "a.run")
    with followed(page.port, f"/runs/{only_id(page)}/events") as client:
        assert next_of(client).name == "run"
        (place / "a.run").unlink()
        trouble = next_of(client)
        assert trouble.name == "trouble"
        assert "no file" in trouble.data["error"]["message"]
        small_run(place / "a.run")
        assert until_event(client, lambda event: event.name == "run")


def test_so_many_may_follow_and_no_more(page: RunningPage, place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watches_module, "MOST_WATCHERS", 10)
    small_run(place / "a.run")
    with ExitStack() as open_pages:
        clients = [open_pages.enter_context(followed(page.port, "/events")) for _ in range(10)]
        assert all(client.next() for client in clients)
        with followed(page.port, "/events") as eleventh:
            assert eleventh.status == 503
            assert "followed live already" in eleventh.body()
    until(lambda: page.get("/api/v1/runs").status == 200, "the page")


class Figure(msgspec.Struct):
    number: int


class Source:
    """Counts how often it is read; each reading is another."""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self) -> dict[str, msgspec.Struct]:
        self.reads += 1
        return {"figure": Figure(self.reads), "same": Figure(0)}


async def test_a_hundred_clients_cost_one_reading_a_second_and_share_its_bytes():
    reads, source = Reads(), Source()
    watches = Watches(reads, every_s=0.05)
    async with asyncio.timeout(60):
        async with watches.watching("a", source) as watch:
            await watch.ready()
            told = {id(watch.since("").parts) for _ in range(100)}
            assert len(told) == 1
            # A slow client gets the latest reading, not those between.
            first = watch.since("")
            while source.reads < 6:
                await watch.changed()
            late = watch.since(first.cursor)
            assert [msgspec.json.decode(part) for part in late.parts] == [{"number": source.reads}]
            async with watches.watching("a", Source()) as same:
                assert same is watch
        read = source.reads
        await asyncio.sleep(0.3)
    assert source.reads == read  # nobody watches
    reads.close()


def test_ctrl_c_ends_the_page_also_while_it_is_followed(place: Path):
    small_run(place / "a.run")
    with viewing(place) as view:
        with followed(view.port, "/events", token=view.token) as client:
            next_of(client)
            began_s = time.monotonic()
            view.process.send_signal(signal.SIGINT)
            assert client.next() is None
        assert view.process.wait(30) == 0
        assert time.monotonic() - began_s < 20
        assert view.process.communicate()[1] == ""


def test_a_service_that_asks_for_a_pause_is_shown_in_words(page: RunningPage, place: Path):
    survey = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ scenario.n }}?")])
    with HostileServer() as server:
        server.behave(["ok", "ok", "429-date"])
        model = Model("gpt-x", service_name="openai_compatible", base_url=server.url)
        job = survey.by(ScenarioList.from_list("n", range(50)), model)
        path = place / "a.run"
        with ThreadPoolExecutor(1) as thread:
            running = thread.submit(job.run, path, concurrency=1, cache=False)
            try:
                until(lambda: endpoint_state(page) == "busy", "the pause", every_s=0.05)
                (endpoint,) = page.api(f"/runs/{only_id(page)}")["endpoints"]
                shown = page.get(f"/runs/{only_id(page)}").body
                measured = page.get("/metrics").body
            finally:
                ask(path, StopRequest())
            assert isinstance(running.exception(60), Interrupted)
    assert (endpoint["model"], endpoint["calls"], endpoint["busy"]) == ("gpt-x", 3, 1)
    assert endpoint["retry_in_s"] <= 20
    assert re.fullmatch(r"paused for \d+ s: the service asked for it", endpoint["now"])
    assert re.search(r"paused for \d+ s: the service asked for it", shown)
    assert re.search(r'headrace_endpoint_state{.*model="gpt-x",state="busy"} 1\n', measured)
    assert re.search(r'headrace_endpoint_state{.*model="gpt-x",state="open"} 0\n', measured)


def endpoint_state(page: RunningPage) -> str:
    files = page.api("/runs")["files"]
    endpoints = page.api(f"/runs/{files[0]['id']}")["endpoints"] if files and files[0]["total"] else []
    return endpoints[0]["state"] if endpoints else ""


@pytest.mark.parametrize(
    ("state", "retry_in_s", "words"),
    [
        ("open", None, "open"),
        ("open", 2.2, "waits 3 s for its rate limit"),
        ("busy", 90, "paused for 1 min 30 s: the service asked for it"),
        ("failing", 5, "paused for 5 s after failures: {500} said no"),
        ("away", None, "cannot be reached, one call is tried: {500} said no"),
        ("closed", None, "refuses: {500} said no"),
        ("a state of a later version", None, "a state of a later version"),
    ],
)
def test_each_state_of_an_endpoint_has_its_words(state: str, retry_in_s: float | None, words: str):
    endpoint = ModelEndpoint(
        model="m", service="s", state=state, since=None, reason="{500} said no.", waiting=0, in_flight=0,
        retry_in_s=retry_in_s,
    )  # fmt: skip
    assert endpoint.in_words() == words


def test_a_reply_about_a_thousand_endpoints_stays_small():
    class Run:
        concurrency, was_stopped, to_ask_again = 4, False, 2**40

        def progress(self) -> Progress:
            return Progress(done=0, total=1, notice="\N{BALLOON}" * 100_000)

    long = "\N{BALLOON}" * 10_000
    endpoints = [
        ModelEndpoint(
            model=long, service=long, state="closed" if number == 900 else "open", since=1.5, reason=long,
            waiting=2**40, in_flight=2**40, retry_in_s=0.1, calls=2**40, tokens=2**40, busy=2**40, failures=2**40,
            key_advice=long,
        )
        for number in range(1_000)
    ]  # fmt: skip
    nodes = [
        NodeState(name=long, slots=2**40, in_flight=2**40, used_bytes=2**40, budget_bytes=2**40, silent_s=0.1)
        for _ in range(1_000)
    ]
    reply = state_reply(Run(), endpoints, nodes)
    assert len(encoded(reply)) < MOST_REPLY_BYTES
    assert len(reply.nodes) + reply.nodes_left_out == 1_000
    assert reply.endpoints[0].state == "closed"
    assert len(reply.endpoints) + reply.left_out == 1_000
