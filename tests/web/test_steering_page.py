"""Steering a run in another process through the page: by forms, and by programs that have the token."""

import html
import json
import logging
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headrace import Results
from headrace.errors import NotSteerable
from headrace.interviews.steering.client import ask
from headrace.interviews.steering.messages import (
    PauseRequest,
    RetryCauseRequest,
    RetryRequest,
    StateRequest,
    StopNowRequest,
    StopRequest,
    TuneRequest,
    request_in_words,
)
from headrace.survey.record import Cause
from tests.cli.live import SURVEY, endless, live
from tests.trouble.children import until
from tests.web.running_page import RunningPage

pytestmark = pytest.mark.usefixtures("forks")

_FAILING = "test,latency_s=0.02,throw_exception=true,exception_probability=0.5"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(SURVEY)
    return tmp_path


def run_id(page: RunningPage) -> str:
    return page.api("/runs")["files"][0]["id"]


def failing(output: str, interviews: int) -> list[str]:
    words = endless(output, interviews=interviews)
    words[words.index("--model") + 1] = _FAILING
    return words


def fields_of(form: str) -> dict[str, str]:
    """What a browser would send of a page's form."""
    inputs = re.findall(r"<input ([^>]*)>", form)
    return {
        re.findall(r'name="([^"]*)"', each)[0]: html.unescape(re.findall(r'value="([^"]*)"', each)[0])
        for each in inputs
    }


def told(page: RunningPage, path: str, fields: dict[str, str] | None = None) -> Any:
    answer = page.post(f"/api/v1{path}", fields or {})
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


def test_a_run_is_paused_tuned_resumed_and_stopped_by_forms_that_ask_once(
    place: Path, caplog: pytest.LogCaptureFixture
):
    path = place / "a.run"
    with caplog.at_level(logging.INFO, "headrace"), live(place, *endless("a.run")) as run, RunningPage(path) as page:
        run.state_once(path)
        base = f"/runs/{run_id(page)}"
        cookie = {"Cookie": f"{page.access.cookie_name}={page.access.cookie}"}

        def submit(action: str, **changed: str) -> str:
            asked = page.get(f"{base}/steer/{action}", **cookie)
            assert asked.status == 200, asked.body
            assert ask(path, StateRequest()).is_stopping is (action == "stop" and "stopping already" in asked.body)
            answer = page.post(f"{base}/steer/{action}", {**fields_of(asked.body), **changed}, **cookie)
            assert answer.status == 200, answer.body
            return answer.body

        assert f'href="{base}/steer/pause"' in page.get(base).body
        assert "Paused: nothing more is started" in submit("pause")
        assert ask(path, StateRequest()).progress.is_paused
        assert f'href="{base}/steer/resume"' in page.get(base).body
        assert "Up to 7 interviews" in submit("concurrency", concurrency="7")
        assert ask(path, StateRequest()).concurrency == 7
        assert "It goes on." in submit("resume")
        assert not ask(path, StateRequest()).progress.is_paused
        assert "It stops as soon as" in submit("stop")
        run.ended()
    told_of = [record.getMessage() for record in caplog.records if "through the page" in record.getMessage()]
    asked_to = [re.findall(r"asked through the page to ([^:]*): process \d+ is", line)[0] for line in told_of]
    assert asked_to == ["pause", "have at most 7 interviews in flight", "go on", "stop"]
    assert page.access.token not in caplog.text


def test_the_same_form_sent_twice_does_not_stop_at_once(place: Path):
    path = place / "a.run"
    with live(place, *endless("a.run", latency_s=20)) as run, RunningPage(path) as page:
        until(lambda: run.state_once(path, done=0).progress.in_flight, "interviews in flight")
        base = f"/runs/{run_id(page)}"
        first = fields_of(page.get(f"{base}/steer/stop").body)
        assert page.post(f"{base}/steer/stop", first).status == 200
        again = page.post(f"{base}/steer/stop", first)
        assert (again.status, "sent already" in again.body) == (409, True)
        asked = page.post(f"/api/v1{base}/stop", {})
        assert (asked.status, "stopping already" in asked.body) == (409, True)
        assert run.is_alive
        assert page.post(f"{base}/steer/stop", fields_of(page.get(f"{base}/steer/stop").body)).status == 200
        run.ended()


@pytest.mark.parametrize("workers", ["0", "1"])
def test_one_request_to_stop_now_gives_up_what_is_in_flight(place: Path, workers: str):
    path = place / "a.run"
    words = [*endless("a.run", latency_s=3_000), "--workers", workers]
    with live(place, *words) as run, RunningPage(path) as page:
        until(lambda: run.state_once(path, done=0).progress.in_flight, "interviews in flight")
        assert told(page, f"/runs/{run_id(page)}/stop", {"now": "true"})["did"] == "It stops now."
        run.ended()  # no interview in flight ends by itself within its patience
    with Results.open(path) as results:
        assert results.stats().interviews == 0


def test_programs_may_send_json(place: Path):
    path = place / "a.run"
    with live(place, *endless("a.run")) as run, RunningPage(path) as page:
        run.state_once(path)
        address = f"/api/v1/runs/{run_id(page)}/concurrency"
        assert page.post_body(address, '{"concurrency": 3}', "application/json; charset=utf-8").status == 200
        assert ask(path, StateRequest()).concurrency == 3
        for body in ("[" * 60_000, '{"concurrency": {}}', "[1]", '{"concurrency": 0}', "", '{"proof": [1]}', "\x00"):
            assert page.post_body(address, body, "application/json").status == 400, body
        other = page.post_body(address, '{"concurrency": 5}', "text/plain")
        assert (other.status, "JSON" in other.json()["error"]["fix"]) == (400, True)
        shown = f"/runs/{run_id(page)}/steer/concurrency"
        assert page.post_body(shown, '{"concurrency": 5, "once": [1]}', "application/json").status == 400
        assert ask(path, StateRequest()).concurrency == 3
        run.kill()


def test_requests_are_said_in_words():
    requests = (PauseRequest(), TuneRequest(1), StopNowRequest(), RetryCauseRequest(Cause.REFUSED), StateRequest())
    for request in requests:
        assert not re.search(r"Request|[<>(_]", request_in_words(request))


def test_stops_that_come_at_once_give_up_nothing(place: Path):
    path = place / "a.run"
    with live(place, *endless("a.run", latency_s=3, concurrency=8)) as run, RunningPage(path) as page:
        until(lambda: run.state_once(path, done=0).progress.in_flight == 8, "interviews in flight")
        address = f"/api/v1/runs/{run_id(page)}/stop"
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda _: page.post(address, {}).status, range(4)))
        assert sorted(answers) == [200, 409, 409, 409]
        run.ended()
    with Results.open(path) as results:
        assert len(results) >= 8


def test_a_live_run_asks_its_failed_interviews_again(place: Path):
    path = place / "a.run"
    with live(place, *failing("a.run", 2_000)) as run, RunningPage(path) as page:
        before = run.state_once(path, done=60)
        assert before.progress.failed
        name = run_id(page)
        assert "Retry all of them" in page.get(f"/runs/{name}/failures").body
        told(page, f"/runs/{name}/pause")
        until(lambda: ask(path, StateRequest()).progress.in_flight == 0, "what is in flight to end", every_s=0.02)
        paused = ask(path, StateRequest()).progress
        steered = told(page, f"/runs/{name}/retry")
        assert steered["retried"] == paused.failed
        now = ask(path, StateRequest()).progress
        assert (now.failed, now.done) == (0, paused.done - paused.failed)
        with pytest.raises(NotSteerable, match="being asked again already"):
            ask(path, RetryRequest())
        shown = page.api(f"/runs/{name}")
        assert shown["live"]["to_ask_again"] == steered["to_ask_again"] == paused.failed
        assert shown["done"] == page.api("/runs")["files"][0]["done"] == now.done
        assert {"name": "to be asked again", "text": f"{paused.failed:,}", "is_bad": False} in shown["figures"]
        for place_shown in ("", "/failures"):
            body = page.get(f"/runs/{name}{place_shown}").body
            assert ("being asked again" in body, "steer/retry" in body) == (True, False)
        assert "<form" not in page.get(f"/runs/{name}/steer/retry").body
        told(page, f"/runs/{name}/concurrency", {"concurrency": "200"})
        told(page, f"/runs/{name}/resume")
        run.ended()
    with Results.open(path) as results:
        stats = results.stats()
        assert (stats.interviews, len(results)) == (2_000, 2_000)
        assert stats.failed == len({failure.ordinal for failure in results.failed()})
        # Each was asked once, and those that had failed once more: no more, and no less.
        assert stats.calls == 2_000 + steered["retried"]


def test_only_those_of_one_cause_are_asked_again(place: Path):
    path = place / "a.run"
    (place / "s.yaml").write_text(SURVEY.replace("free_text", "numerical"))
    words = failing("a.run", 2_000)
    with live(place, *words, "--model", "test,latency_s=0.02,canned_response=many") as run, RunningPage(path) as page:
        until(lambda: len(causes(page)) == 2, "failures of two causes")
        name, cookie = run_id(page), {"Cookie": f"{page.access.cookie_name}={page.access.cookie}"}
        told(page, f"/runs/{name}/pause")
        until(lambda: ask(path, StateRequest()).progress.in_flight == 0, "what is in flight to end", every_s=0.02)
        found = causes(page)
        (link,) = re.findall(r'href="([^"]*cause=invalid[^"]*)"', page.get(f"/runs/{name}/failures", **cookie).body)
        asked = page.get(link, **cookie).body
        assert f"{found['invalid answer']:,} interviews failed because of “invalid answer”" in asked
        assert "asks those of all causes again" in asked
        none = page.get(f"/runs/{name}/steer/retry?cause=out%20of%20memory", **cookie).body
        assert ("No interview has failed because of" in none, "<form" in none) == (True, False)
        unknown = page.get(f"/runs/{name}/steer/retry?cause=nonsense", **cookie)
        assert (unknown.status, "<form" in unknown.body) == (400, False)
        assert all(cause.value in unknown.body for cause in Cause)
        answer = page.post(f"/runs/{name}/steer/retry", fields_of(asked), **cookie)
        assert f"{found['invalid answer']:,} failed interviews will be asked again" in answer.body
        assert ask(path, StateRequest()).progress.failed == sum(found.values()) - found["invalid answer"]
        wrong = page.post(f"/api/v1/runs/{name}/retry", {"cause": "bad luck"})
        assert (wrong.status, "cause" in wrong.body) == (400, True)
        run.kill()


def causes(page: RunningPage) -> dict[str, int]:
    """How many interviews failed, by cause; each has one question."""
    groups = page.api(f"/runs/{run_id(page)}/failures")["groups"] if page.api("/runs")["files"] else []
    return {
        cause: sum(each["count"] for each in groups if each["cause"] == cause) for cause in {g["cause"] for g in groups}
    }


def test_a_run_that_stops_takes_no_retry(place: Path):
    path = place / "a.run"
    with live(place, *endless("a.run", latency_s=20)) as run:
        until(lambda: run.state_once(path, done=0).progress.in_flight, "interviews in flight")
        ask(path, StopRequest())
        with pytest.raises(NotSteerable, match="it is ending"):
            ask(path, RetryRequest())
        run.kill()


def test_where_nothing_runs_the_page_shows_the_command(place: Path):
    path = place / "it's done.run"
    with live(place, *failing(path.name, 12)) as run:
        run.ended()
    with RunningPage(path) as page:
        name = run_id(page)
        assert "/steer/" not in page.get(f"/runs/{name}").body
        shown = html.unescape(page.get(f"/runs/{name}/steer/retry").body)
        assert "headrace resume " in shown
        assert "--retry-failed" in shown
        assert "<form" not in shown
        failures = html.unescape(page.get(f"/runs/{name}/failures").body)
        assert "--retry-failed" in failures
        assert "it'\"'\"'s done.run'" in failures
        answer = page.post(f"/api/v1/runs/{name}/pause", {})
        assert answer.status == 409
        assert "Nothing is running" in answer.body


def test_without_steering_there_are_no_forms_and_no_such_addresses(place: Path):
    path = place / "a.run"
    with live(place, *failing("a.run", 100_000)) as run, RunningPage(path, can_steer=False) as page:
        run.state_once(path, done=20)
        name = run_id(page)
        for shown in (f"/runs/{name}", f"/runs/{name}/failures"):
            body = page.get(shown).body
            assert "steer" not in body, shown
            assert page.access.form_proof not in body
        for action in ("pause", "resume", "concurrency", "stop", "retry"):
            assert page.get(f"/runs/{name}/steer/{action}").status == 404
            assert page.post(f"/runs/{name}/steer/{action}", {"concurrency": "3"}).status == 404
            assert page.post(f"/api/v1/runs/{name}/{action}", {"concurrency": "3"}).status == 404
        assert not ask(path, StateRequest()).is_stopping
        run.kill()


def test_a_form_without_its_proof_steers_nothing(place: Path):
    path = place / "a.run"
    with live(place, *endless("a.run")) as run, RunningPage(path) as page:
        run.state_once(path)
        name = run_id(page)
        cookie = {"Cookie": f"{page.access.cookie_name}={page.access.cookie}"}
        for fields in ({}, {"proof": "of another"}, {"proof": page.access.cookie}):
            assert page.post(f"/runs/{name}/steer/stop", fields, **cookie).status == 403
            assert page.post(f"/api/v1/runs/{name}/stop", fields, **cookie).status == 403
        assert page.get(f"/runs/{name}/steer/stop?proof=x").body.count(page.access.form_proof) == 1
        assert page.post(f"/runs/{name}/steer/explode", {}).status == 400
        assert page.post(f"/runs/{name}/steer/concurrency", {"concurrency": "0"}).status == 400
        assert not ask(path, StateRequest()).is_stopping
        run.kill()
