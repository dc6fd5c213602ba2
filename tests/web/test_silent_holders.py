"""The page while processes that hold its files are stopped (SIGSTOP) and do not answer: looking at them costs nobody
else any time, and they are asked again as soon as they go on.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.agents.steering.engine_client import engine_state
from headrace.interviews.steering.client import ask
from headrace.interviews.steering.messages import StateRequest
from headrace.store.holder_socket import request_client
from tests.cli.live import SURVEY, endless, live
from tests.trouble.children import until
from tests.web.event_client import EventClient, followed
from tests.web.running_page import RunningPage

pytestmark = pytest.mark.usefixtures("forks")

ROOT = Path(__file__).parents[2]
_STREAMS = 8


@pytest.fixture(autouse=True)
def patient_looks() -> None:
    """Not here: these tests are about the patience that the page has."""


@contextmanager
def engines(*paths: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that has engines open at these paths."""
    program = [sys.executable, "-W", "error", "-m", "tests.agents.engine.programs.waiting", *map(str, paths)]
    places = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    with subprocess.Popen(
        program, cwd=ROOT, env={**os.environ, "PYTHONPATH": places}, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "open\n"
            yield child
        finally:
            child.kill()


def listed(page: RunningPage) -> dict[str, dict[str, Any]]:
    return {file["name"]: file for file in page.api("/runs")["files"]}


def seconds_of(*calls: Callable[[], object]) -> float:
    began_s = time.monotonic()
    for call in calls:
        call()
    return time.monotonic() - began_s


def test_stopped_processes_are_waited_for_once_and_asked_again_when_they_go_on(tmp_path: Path):
    names = [f"{number:02}.run" for number in range(12)]
    with engines(*(tmp_path / name for name in names)) as process, RunningPage(tmp_path) as page:
        until(lambda: all(file["memory_bytes"] for file in listed(page).values()), "answers", within_s=30)
        process.send_signal(signal.SIGSTOP)
        assert seconds_of(lambda: listed(page)) < 5.5  # to wait half a second for each takes 6 s
        looks = [lambda: listed(page), lambda: page.get("/"), lambda: page.get("/metrics")]
        assert seconds_of(*looks * 3) < 12  # to wait for each anew takes 16 s
        found = listed(page)
        assert sorted(found) == names
        for file in found.values():
            assert (file["state"], file["memory_bytes"]) == ("running", None)
            assert "does not answer" in file["trouble"]
            assert "does not answer" in page.get(f"/engines/{file['id']}").body
        process.send_signal(signal.SIGCONT)
        until(
            lambda: all(file["memory_bytes"] and not file["trouble"] for file in listed(page).values()),
            "answers",
            within_s=30,
        )
        process.send_signal(signal.SIGSTOP)
        listed(page)
        process.kill()  # a process that is stopped and then dies is not one that does not answer
        until(lambda: all(file["state"] == "not running" for file in listed(page).values()), "its end", within_s=30)
        assert not any(file["trouble"] for file in listed(page).values())
        assert [engine_state(tmp_path / name) for name in names] == [None] * len(names)


def test_a_stopped_run_is_shown_by_its_file_with_the_trouble_in_words(tmp_path: Path):
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "s.yaml").write_text(SURVEY)
    with live(tmp_path, *endless("place/a.run")) as run, RunningPage(place) as page:
        run.state_once(place / "a.run")
        name = listed(page)["a.run"]["id"]
        run.freeze()
        page.api(f"/runs/{name}")
        looks = [lambda: page.get(f"/runs/{name}"), lambda: page.get("/metrics"), lambda: page.api(f"/runs/{name}")]
        assert seconds_of(*looks * 2) < 4
        shown = page.api(f"/runs/{name}")
        assert (shown["state"], shown["live"], shown["total"]) == ("running", None, 100_000)
        assert f"process {run.pid}) does not answer" in shown["trouble"]
        assert f"process {run.pid}) does not answer" in page.get(f"/runs/{name}").body
        assert "headrace_interviews_planned" in page.get("/metrics").body
        run.thaw()
        shown = until(lambda: found if (found := page.api(f"/runs/{name}"))["live"] else None, "an answer")
        assert shown["trouble"] == ""


def test_many_streams_of_a_stopped_engine_leave_room_for_requests(tmp_path: Path):
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "s.yaml").write_text(SURVEY)
    stopped = [place / f"{number}.engine.run" for number in range(_STREAMS)]
    with (
        engines(*stopped) as process,
        live(tmp_path, *endless("place/a.run")) as run,
        RunningPage(place) as page,
        ExitStack() as streams,
        ThreadPoolExecutor(_STREAMS) as openers,
    ):
        run.state_once(place / "a.run")
        files = listed(page)
        process.send_signal(signal.SIGSTOP)

        def follow(path: Path) -> EventClient:
            return streams.enter_context(followed(page.port, f"/engines/{files[path.name]['id']}/runs/1/live"))

        opened = [openers.submit(follow, path) for path in stopped]
        name = files["a.run"]["id"]
        until(lambda: any(each.done() for each in opened), "the first stream")
        looks = [lambda: page.api(f"/runs/{name}"), lambda: page.post(f"/api/v1/runs/{name}/pause", {})]
        assert seconds_of(*looks) < 15
        assert ask(place / "a.run", StateRequest()).progress.is_paused
        assert all(each.result().status == 200 for each in opened)
        process.kill()
        process.wait()
        assert [engine_state(path) for path in stopped] == [None] * _STREAMS


def test_requests_to_steer_stopped_processes_leave_room_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(request_client, "ANSWER_WITHIN_S", 60.0)  # all of them wait to the end
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "s.yaml").write_text(SURVEY)
    stopped = [place / f"{number}.engine.run" for number in range(6)]
    with (
        engines(*stopped) as process,
        live(tmp_path, *endless("place/a.run")) as run,
        RunningPage(place) as page,
        ThreadPoolExecutor(len(stopped)) as clients,
    ):
        run.state_once(place / "a.run")
        files = listed(page)
        process.send_signal(signal.SIGSTOP)
        addresses = [f"/api/v1/engines/{files[path.name]['id']}/runs/1/cancel" for path in stopped]
        sent = [clients.submit(page.post, address, {}) for address in addresses]
        time.sleep(0.5)  # so that they are all waited for
        name = files["a.run"]["id"]
        page.api(f"/runs/{name}")
        page.post(f"/api/v1/runs/{name}/pause", {})
        assert not any(each.done() for each in sent)
        assert ask(place / "a.run", StateRequest()).progress.is_paused
        process.kill()
        assert {each.result().status for each in sent} == {409}
