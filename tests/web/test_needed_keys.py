"""A model whose key is missing or refused: the list, the run's page, `top` and `status` say that its run needs a key,
and what to do; while the run goes on with its other models, and when it has ended.
"""

import asyncio
import html
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace import Agent, Engine, Job, Model, QuestionFreeText, Results, Survey
from headrace.cli.top.top_lines import Room, top_lines
from headrace.errors import ModelUnusable
from headrace.interviews.steering.client import ask
from headrace.interviews.steering.messages import PauseRequest, ResumeRequest, StopNowRequest
from headrace.interviews.steering.run_file_status import RunFileStatus
from headrace.models.model_endpoints import needed_keys
from headrace.results.stats import EndpointStats
from headrace.web.shown_files import ShownFiles
from tests.cli.live import live
from tests.models.behaviours import Call
from tests.models.server import HostileServer
from tests.trouble.children import until
from tests.web.running_page import RunningPage

pytestmark = pytest.mark.usefixtures("forks")

_VARIABLE = "KEY_OF_A_TEST"
_ADVICE = f"locked: Check the key ({_VARIABLE} in the environment)."


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostileServer]:
    """A service that refuses the key of the model `locked` alone, and takes its time for another one."""
    monkeypatch.setenv(_VARIABLE, "a-key-that-is-refused")
    with HostileServer() as server:
        server.behave(_only_locked_is_refused, latency=lambda _: 0.02)
        yield server


def _only_locked_is_refused(call: Call) -> str:
    return "401" if call.body["model"] == "locked" else "ok"


def a_job(server: HostileServer, people: int, *names: str) -> Job:
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    models = [
        Model(name, service_name="openai_compatible", base_url=server.url, api_key_env=_VARIABLE) for name in names
    ]
    return survey.by([Agent(traits={"n": n}) for n in range(people)]).by(models)


@contextmanager
def going_on(job: Job, path: Path) -> Iterator[None]:
    """While the block runs, the job does; it is stopped at the end."""

    def run() -> None:
        with pytest.raises((ModelUnusable, KeyboardInterrupt)):
            job.run(path, concurrency=2, cache=False)

    running = threading.Thread(target=run)
    running.start()
    try:
        yield
    finally:
        ask(path, StopNowRequest())
        running.join(60)
        assert not running.is_alive()


def listed(page: RunningPage) -> dict[str, Any]:
    [file] = page.api("/runs")["files"]
    return file


def status_of(path: Path) -> str:
    with live(path.parent, "status", path.name) as command:
        return command.ended()[1]


def looked_at(place: Path) -> str:
    return "\n".join(top_lines(ShownFiles([place]), Room(200, None, has_unicode=True)))


def test_a_run_that_goes_on_without_one_of_its_models_needs_a_key(server: HostileServer, tmp_path: Path):
    path = tmp_path / "a.run"
    with RunningPage(tmp_path) as page:
        with going_on(a_job(server, 5_000, "locked", "open"), path):
            until(lambda: path.exists() and listed(page)["needs"], "the refused key", every_s=0.05)
            file = listed(page)
            assert (file["state"], file["goes_on"], file["needs"]) == ("needs a key", True, _ADVICE)
            run = page.api(f"/runs/{file['id']}")
            assert (run["state"], run["needs"], run["ended"]) == ("needs a key", _ADVICE, "")
            shown = html.unescape(page.get(f"/runs/{file['id']}").body)
            assert 'class="state needs-a-key"' in shown
            assert _ADVICE in shown
            assert "/steer/pause" in shown
            assert 'headrace_running{file="a.run"' in page.get("/metrics").body
            assert f"needs a key: {_ADVICE}" in status_of(path)
            assert ask(path, PauseRequest()).progress.is_paused
            assert listed(page)["state"] == "paused"
            ask(path, ResumeRequest())
            assert listed(page)["state"] == "needs a key"
        stopped = listed(page)
        assert (stopped["state"], stopped["goes_on"], stopped["needs"]) == ("needs a key", False, _ADVICE)


def test_a_run_that_has_ended_for_want_of_a_key_says_so_until_it_has_gone_on_with_another(
    server: HostileServer, tmp_path: Path
):
    path, job = tmp_path / "a.run", a_job(server, 3, "locked")
    with pytest.raises(ModelUnusable, match="answered 401"):
        job.run(path, cache=False)
    with RunningPage(tmp_path) as page:
        file = listed(page)
        assert (file["state"], file["goes_on"], file["needs"]) == ("needs a key", False, _ADVICE)
        assert _ADVICE in html.unescape(page.get("/").body)
        shown = html.unescape(page.get(f"/runs/{file['id']}").body)
        assert f"It needs a key. {_ADVICE}" in shown
        assert f"headrace resume {path}" in shown
        assert ("needs a key" in looked_at(path), _ADVICE in looked_at(path)) == (True, True)
        status = status_of(path)
        assert f"needs a key: {_ADVICE}" in status
        assert "resume a.run" in status
        server.behave("ok")
        job.run(path, cache=False).close()
        assert (listed(page)["state"], listed(page)["needs"]) == ("complete", "")


def test_in_a_list_top_says_below_it_what_to_do(server: HostileServer, tmp_path: Path):
    with pytest.raises(ModelUnusable):
        a_job(server, 3, "locked").run(tmp_path / "a.run", cache=False)
    a_job(server, 3, "open").run(tmp_path / "b.run", cache=False).close()
    assert f"a.run: {_ADVICE}" in looked_at(tmp_path)
    for rows in (2, 4, 40):
        lines = top_lines(ShownFiles([tmp_path]), Room(60, rows, has_unicode=True))
        assert len(lines) <= rows
        assert max(map(len, lines)) <= 60
    assert "Check the key" in " ".join(lines)


def test_a_spent_quota_is_no_missing_key(server: HostileServer, tmp_path: Path):
    path = tmp_path / "a.run"
    server.behave("quota")
    with pytest.raises(ModelUnusable):
        a_job(server, 3, "locked").run(path, cache=False)
    assert (RunFileStatus.at(path).state, RunFileStatus.at(path).needed_keys) == ("not running", "")


def test_a_function_that_gives_no_key_is_a_missing_one(server: HostileServer, tmp_path: Path):
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    model = Model("locked", service_name="openai_compatible", base_url=server.url, api_key=lambda: "")
    with pytest.raises(ModelUnusable):
        survey.by(model).run(tmp_path / "a.run", cache=False)
    status = RunFileStatus.at(tmp_path / "a.run")
    assert (status.state, status.needed_keys) == (
        "needs a key",
        "locked: the function api_key gave no key. It must be a text.",
    )


async def test_an_engine_needs_the_key_of_its_models_and_a_survey_in_it_only_those_of_its_own(
    server: HostileServer, tmp_path: Path
):
    async with Engine(tmp_path / "agents.run", isolation="inline", memory="+300MB") as engine:
        with pytest.raises(ModelUnusable):
            await engine.run(a_job(server, 2, "locked"), tmp_path / "locked.run")
        await engine.run(a_job(server, 2, "open"), tmp_path / "open.run")
        with RunningPage(tmp_path) as page:
            found = await asyncio.to_thread(page.api, "/runs")
            files = {file["name"]: (file["state"], file["goes_on"], file["needs"]) for file in found["files"]}
            assert files == {
                "agents.run": ("needs a key", True, _ADVICE),
                "locked.run": ("needs a key", False, _ADVICE),
                "open.run": ("complete", False, ""),
            }
            [engine_id] = [file["id"] for file in found["files"] if file["kind"] == "engine"]
            shown = await asyncio.to_thread(page.get, f"/engines/{engine_id}")
            assert _ADVICE in html.unescape(shown.body)
    with Results.open(tmp_path / "open.run") as results:
        assert [each.model for each in results.stats().endpoints] == ["open"]


def test_of_many_models_the_first_three_are_named():
    models = [EndpointStats(f"m{n}", 1, 0, 0, 0, "closed", "no", "Check it.") for n in range(5)]
    assert needed_keys(models) == "m0: Check it. m1: Check it. m2: Check it. And 2 models more."
    assert needed_keys(models[:1] * 2) == "m0: Check it."
