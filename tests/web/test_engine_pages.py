"""The page of an engine and of its runs, of real engines in this process and in another."""

import asyncio
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from headrace import Engine, Model, Priority, task
from headrace.agents.engine.run_handle import Run
from headrace.errors import RunFailed
from headrace.store.engine_file.engine_schema import RunState
from headrace.web.api import agent_runs
from tests.agents.engine.programs import paying
from tests.store.kept_files import FORMATS, unpacked
from tests.trouble.children import until
from tests.web.event_client import followed
from tests.web.running_page import Answer, RunningPage

ROOT = Path(__file__).parents[2]
HOSTILE = "<script>alert(1)</script>"
outside = {"is_ready": False}


async def listening(ctx):
    ctx.emit({"told": HOSTILE})
    return await ctx.receive()


async def endless(ctx, _name):
    await ctx.step(HOSTILE, asyncio.sleep, 0, HOSTILE)
    await asyncio.sleep(600)


async def stepping(ctx, number):
    for i in range(3):
        await ctx.step(f"step-{i}", asyncio.sleep, 0.01)
    return number


@task(max_attempts=1)
async def failing(ctx, _name):
    if not outside["is_ready"]:
        raise ValueError(f"{HOSTILE}\nand a second line")
    return "at last"


def inline(path: Path, **options: Any) -> Engine:
    return Engine(path, isolation="inline", memory="+300MB", breaker=None, **options)


async def elsewhere(function: Callable[..., Any], *arguments: Any) -> Any:
    """As another process asks: the loop that waits for a result here must go on."""
    return await asyncio.to_thread(function, *arguments)


def engine_id(page: RunningPage) -> str:
    (file,) = page.api("/runs")["files"]
    return file["id"]


def without_scripts(answer: Answer) -> str:
    assert answer.status == 200, answer.body
    assert "<script>" not in answer.body
    assert "style=" not in answer.body
    return answer.body


async def test_an_engine_that_is_open_shows_slots_queue_heartbeats_and_memory(tmp_path: Path):
    path = tmp_path / "agents.run"
    async with inline(path, slots=1, queue_depth=3) as engine:
        engine.every(0.05, lambda: None, name=HOSTILE, jitter=0)
        runs = [await engine.submit(endless, f"{HOSTILE}{number}") for number in range(3)]
        await elsewhere(until, lambda: engine.status().waiting["HIGH"] == 2, "one to run and two to wait")
        await elsewhere(until, lambda: engine.status().heartbeats[0].runs > 0, "a beat")
        with RunningPage(tmp_path) as page:
            name = await elsewhere(engine_id, page)
            shown = await elsewhere(page.api, f"/engines/{name}")
            live = shown["live"]
            assert (shown["state"], live["pid"], live["slots"]) == ("running", os.getpid(), 1)
            assert [each["run"] for each in live["in_slots"]] == [runs[0].id]
            assert live["queue"]["HIGH"] == 2
            assert live["waiting_for"]
            assert live["heartbeats"][0]["runs"] > 0
            assert live["heartbeats"][0]["last_run_at"] is not None
            html = without_scripts(await elsewhere(page.get, f"/engines/{name}"))
            assert "&lt;script&gt;alert(1)" in html
            for words in ("In the slots", "Queue", "Heartbeats", "<svg", "The first waits for"):
                assert words in html
        for run in runs:
            await run.cancel()


async def test_a_closed_engine_shows_what_its_file_has(tmp_path: Path):
    path = tmp_path / "agents.run"
    async with inline(path) as engine:
        assert await (await engine.submit(stepping, 7)).result() == 7
    with RunningPage(tmp_path) as page:
        name = engine_id(page)
        shown = page.api(f"/engines/{name}")
        assert (shown["state"], shown["live"], shown["runs"]) == ("not running", None, {"done": 1})
        assert shown["peak_memory_bytes"] > 10_000_000
        assert page.api(f"/engines/{name}/memory")["points"]
        assert "No engine has this file open now" in without_scripts(page.get(f"/engines/{name}"))
        run = page.api(f"/engines/{name}/runs/1")
        assert [step["name"] for step in run["steps"]] == ["step-0", "step-1", "step-2"]
        assert (run["run"]["attempts"], run["texts"]) == (1, {})
        assert page.api(f"/engines/{name}/runs/1?text=true")["texts"] == {"arguments": "[[7],{}]", "result": "7"}
        html = without_scripts(page.get(f"/engines/{name}/runs/1?text=true"))
        assert "step-2" in html
        assert "<svg" in html
        assert "/steer/" not in html  # it is done: there is nothing to do about it


@pytest.mark.parametrize("written_as", FORMATS)
def test_an_engine_file_of_an_older_version_is_shown(tmp_path: Path, written_as: str):
    unpacked("engine", tmp_path, written_as)
    with RunningPage(tmp_path) as page:
        name = engine_id(page)
        assert sum(page.api(f"/engines/{name}")["runs"].values()) > 0
        assert page.api(f"/engines/{name}/memory")["points"] == []
        without_scripts(page.get(f"/engines/{name}"))
        for run in page.api(f"/engines/{name}/runs")["runs"]:
            without_scripts(page.get(f"/engines/{name}/runs/{run['number']}?text=true"))


async def test_runs_come_in_pages_by_state_and_no_cursor_of_another_list_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "agents.run"
    outside["is_ready"] = False
    async with inline(path, queue_depth=50) as engine:
        for number in range(7):
            await (await engine.submit(stepping, number)).result()
        with pytest.raises(RunFailed):
            await (await engine.submit(failing, HOSTILE)).result()
    with RunningPage(tmp_path) as page:
        name = engine_id(page)
        seen, cursor = [], ""
        while cursor is not None:
            found = page.api(f"/engines/{name}/runs?state=done&limit=3&cursor={cursor}")
            seen += [run["number"] for run in found["runs"]]
            cursor = found["next"]
        assert seen == [7, 6, 5, 4, 3, 2, 1]
        given = page.api(f"/engines/{name}/runs?state=done&limit=3")["next"]
        refused = page.get(f"/api/v1/engines/{name}/runs?state=failed&cursor={given}")
        assert (refused.status, "cursor" in refused.json()["error"]["message"]) == (400, True)
        refused = page.get(f"/api/v1/engines/{name}/runs?state=nonsense")
        assert (refused.status, "out of memory, lost" in refused.json()["error"]["fix"]) == (400, True)
        for state in RunState:
            word = "undecided" if state is RunState.UNDECIDED else state.value
            listed = page.api(f"/engines/{name}/runs?state={quote(word)}")
            assert all(run["state"] == word for run in listed["runs"])
        assert page.get(f"/api/v1/engines/{name}/runs/99").status == 404
        html = without_scripts(page.get(f"/engines/{name}/runs?limit=3"))
        assert "Earlier ones" in html
        failed = without_scripts(page.get(f"/engines/{name}/runs?state=failed"))
        assert "&lt;script&gt;alert(1)" in failed
        assert "and a second line" not in failed
        assert "and a second line" in without_scripts(page.get(f"/engines/{name}/runs/8"))
        monkeypatch.setattr(agent_runs, "_SEARCHED_AT_ONCE", 2)
        monkeypatch.setattr(agent_runs, "_SEARCH_S", -1)
        assert page.api(f"/engines/{name}/runs?state=failed")["searched_to"] == 7
        cancelled = page.api(f"/engines/{name}/runs?state=cancelled")
        assert (cancelled["runs"], cancelled["searched_to"]) == ([], 7)
        assert "Searched back to run 7" in without_scripts(page.get(f"/engines/{name}/runs?state=cancelled"))
        places = []
        while cancelled["next"] is not None:
            cancelled = page.api(f"/engines/{name}/runs?state=cancelled&cursor={cancelled['next']}")
            places.append(cancelled["searched_to"])
        assert places == [5, 3, 1, None]


def forms_in(html: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', html))


def pressed(page: RunningPage, address: str, **fields: str) -> Answer:
    """Open a confirmation and send its form, as a browser without scripts does."""
    return pressed_twice(page, address, times=1, **fields)[0]


def pressed_twice(page: RunningPage, address: str, times: int = 2, **fields: str) -> list[Answer]:
    """The same, and then load the answer again: the same form is sent again."""
    cookie = f"{page.access.cookie_name}={page.access.cookie}"
    asked = page.get(address, Cookie=cookie)
    hidden = forms_in(without_scripts(asked))
    assert hidden["proof"]
    origin = f"http://127.0.0.1:{page.port}"
    return [page.post(address, {**hidden, **fields}, Cookie=cookie, Origin=origin) for _ in range(times)]


async def test_a_run_is_cancelled_tried_again_and_told_by_forms(tmp_path: Path):
    path = tmp_path / "agents.run"
    outside["is_ready"] = False
    async with inline(path) as engine:
        going, waiting = await engine.submit(endless, HOSTILE), await engine.submit(listening)
        failed = await engine.submit(failing, "x")
        with pytest.raises(RunFailed):
            await failed.result()
        await elsewhere(until, lambda: waiting.status().state is RunState.RECEIVING, "a run that waits for a message")
        with RunningPage(tmp_path) as page:
            here = f"/engines/{await elsewhere(engine_id, page)}/runs"
            answer = await elsewhere(pressed, page, f"{here}/{going.id}/steer/cancel")
            assert "is cancelled" in without_scripts(answer)
            outside["is_ready"] = True
            answer = await elsewhere(pressed, page, f"{here}/{failed.id}/steer/retry")
            assert "tried again" in without_scripts(answer)
            assert await failed.result() == "at last"
            emitted = await elsewhere(page.api, f"{here}/{waiting.id}/emitted")
            assert HOSTILE in emitted["events"][0]["text"]
            shown = without_scripts(await elsewhere(page.get, f"{here}/{waiting.id}?text=true"))
            assert "&lt;script&gt;alert(1)" in shown
            send = f"{here}/{waiting.id}/steer/send"
            bad = await elsewhere(lambda: pressed(page, send, message="{no json"))
            assert (bad.status, "not JSON" in bad.body) == (409, True)
            answer, again = await elsewhere(lambda: pressed_twice(page, send, message='{"go": "on"}'))
            assert "message is saved" in without_scripts(answer)
            assert (again.status, "sent already" in again.body) == (409, True)
            assert await waiting.result() == {"go": "on"}
            befell = (await elsewhere(page.api, f"{here}/{going.id}"))["events"]
            assert "steered" in [event["what"] for event in befell]
            none = await elsewhere(page.post, f"/api/v1{here}/99/cancel", {})
            assert (none.status, "no run 99" in none.body) == (404, True)
            again = await elsewhere(page.post, f"/api/v1{here}/{going.id}/cancel", {})
            assert (again.status, "ended already" in again.body) == (409, True)


async def test_a_side_effect_of_a_killed_process_is_resolved_by_a_form(tmp_path: Path):
    path = tmp_path / "agents.run"
    await elsewhere(killed_inside_a_side_effect, path)
    async with inline(path) as engine:
        engine.register(paying.shop)
        while (found := (await engine.unfinished())[0]).state is not RunState.UNDECIDED:
            await asyncio.sleep(0.01)
        with RunningPage(tmp_path) as page:
            here = f"/engines/{await elsewhere(engine_id, page)}/runs/1"
            assert "nobody knows whether it happened" in without_scripts(await elsewhere(page.get, here))
            resolve = f"{here}/steer/resolve"
            empty = await elsewhere(lambda: pressed(page, resolve, happened="true", result=" "))
            assert empty.status == 400
            answer = await elsewhere(lambda: pressed(page, resolve, happened="true", result='{"id": 7}'))
            assert "It happened" in without_scripts(answer)
        assert await engine.handle(found).result() == {"id": 7}


def killed_inside_a_side_effect(path: Path) -> None:
    command = [sys.executable, "-m", "tests.agents.engine.programs.paying", str(path)]
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGKILL)


async def test_steering_needs_the_proof_and_can_be_left_out(tmp_path: Path):
    async with inline(tmp_path / "agents.run") as engine:
        run = await engine.submit(listening)
        with RunningPage(tmp_path) as page:
            here = f"/engines/{await elsewhere(engine_id, page)}/runs/{run.id}"
            cookie = f"{page.access.cookie_name}={page.access.cookie}"
            for path in (f"{here}/steer/cancel", f"/api/v1{here}/cancel"):
                refused = await elsewhere(lambda path=path: page.post(path, {}, Cookie=cookie))
                assert refused.status == 403
            assert not run.status().state.is_final
            unknown = await elsewhere(page.get, f"{here}/steer/explode")
            assert unknown.status == 400
        with RunningPage(tmp_path, can_steer=False) as page:
            assert "/steer/" not in without_scripts(await elsewhere(page.get, here))
            assert (await elsewhere(page.post, f"/api/v1{here}/cancel", {})).status in (404, 405)
        await run.cancel()


def test_why_a_run_was_preempted_is_two_clicks_from_the_list(tmp_path: Path):
    path = tmp_path / "agents.run"
    command = [sys.executable, "-m", "tests.agents.engine.programs.hungry", str(path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    with RunningPage(tmp_path) as page:
        name = engine_id(page)
        assert f'href="/engines/{name}"' in page.get("/").body
        html = without_scripts(page.get(f"/engines/{name}"))
        stopped = [
            event
            for event in page.api(f"/engines/{name}/events?what=memory")["events"]
            if event["what"] in ("preempted", "killed")
        ]
        assert stopped
        assert all(event["reading"]["used_bytes"] > 0 and "memory" in event["reason"] for event in stopped)
        number = stopped[0]["run"]
        assert f'href="/engines/{name}/runs/{number}"' in html
        run = without_scripts(page.get(f"/engines/{name}/runs/{number}"))
        assert stopped[0]["reason"] in run.replace("&#x27;", "'")
        assert " of " in run[run.index("What befell it") :]
        line = page.api(f"/engines/{name}/memory")
        end = line["points"][-1]["second"] + line["points"][-1]["seconds"]
        assert all(0 <= placed["second"] <= end for placed in line["events"])


@task(max_attempts=2)
async def failing_always(ctx):
    raise ValueError("no such page")


async def until_failed(run: Run) -> None:
    with pytest.raises(RunFailed):
        await run.result()


async def test_failed_attempts_are_counted_with_the_last_and_across_tries_by_hand(tmp_path: Path):
    async with inline(tmp_path / "agents.run") as engine:
        run = await engine.submit(failing_always)
        await until_failed(run)
        with RunningPage(tmp_path) as page:
            here = f"/engines/{await elsewhere(engine_id, page)}/runs"
            assert (await elsewhere(page.api, f"{here}/1"))["run"]["failures"] == 2
            await run.retry()
            await until_failed(run)
            html = without_scripts(await elsewhere(page.get, f"{here}/1"))
            assert html.count("ValueError: no such page (line") == 3  # and two attempts tried again
            assert "its error, above" in html
            assert "ended without a journaled step" in html
            assert html.count(f'href="{here}/1"') == 0
            (line,) = (await elsewhere(page.api, here))["runs"]
            assert (line["attempts"], line["failures"], line["deaths"]) == (4, 4, 0)


async def asking(ctx):
    await ctx.ask(Model("test", canned_response="x"), "Well?")
    await ctx.sleep(0.01)
    ctx.emit(1)
    return await ctx.receive()


async def test_steps_that_have_no_name_are_said_in_words(tmp_path: Path):
    async with inline(tmp_path / "agents.run") as engine:
        run = await engine.submit(asking)
        await elsewhere(until, lambda: run.status().state is RunState.RECEIVING, "a run that waits for a message")
        await run.send("go on")
        await run.result()
    with RunningPage(tmp_path) as page:
        here = f"/engines/{engine_id(page)}/runs/1"
        steps = page.api(here)["steps"]
        assert [step["label"] for step in steps] == [
            "ask a model",
            "sleep",
            "waited for a message",
            "receive a message",
        ]
        assert all(step["name"].startswith("$") for step in steps)
        html = without_scripts(page.get(here))
        picture = html[html.index("<svg") : html.index("</svg>")]
        assert "ask a model" in picture
        assert "$ask" not in picture
        assert "$ask" in html


async def quickly(ctx):
    return 1


async def by_steps(ctx):
    while not outside["is_ready"]:
        await ctx.step(f"step-{time.monotonic()}", asyncio.sleep, 0.05)


async def test_a_run_that_lacked_a_slot_is_named_and_memory_is_not_blamed(tmp_path: Path):
    outside["is_ready"] = False
    async with inline(tmp_path / "agents.run", slots=1) as engine:
        low = await engine.submit(by_steps, priority=Priority.LOW)
        await elsewhere(until, lambda: low.status().attempts == 1, "it to run")
        high = await engine.submit(quickly, priority=Priority.HIGH)
        assert await high.result() == 1
        outside["is_ready"] = True
        await low.result()
    with RunningPage(tmp_path) as page:
        name = engine_id(page)
        (event,) = page.api(f"/engines/{name}/events?what=preempted")["events"]
        lacked = "makes room for work of a higher priority, which lacked a slot"
        assert event["reason"] == f"{lacked}: run {high.id} ({high.name})"
        assert "preempted" not in [each["what"] for each in page.api(f"/engines/{name}/events?what=memory")["events"]]
        assert page.api(f"/engines/{name}/memory")["events"] == []


async def test_events_that_tell_the_same_are_one_row(tmp_path: Path):
    def beat() -> None:
        raise RuntimeError("the watcher broke")

    async with inline(tmp_path / "agents.run") as engine:
        assert await (await engine.submit(stepping, 7)).result() == 7
        engine.every(0.01, beat, name="watcher", jitter=0)
        await elsewhere(until, lambda: engine.status().heartbeats[0].failures > 20, "beats that fail")
    with RunningPage(tmp_path) as page:
        name = engine_id(page)
        events = page.api(f"/engines/{name}/events")["events"]
        told = [(each["run"], each["what"], each["reason"]) for each in events]
        assert all(one != other for one, other in pairwise(told))
        failed = [each for each in events if "broke" in each["reason"]]  # one, unless something else came in between
        assert sum(each["times"] for each in failed) > 20
        most = max(failed, key=lambda each: each["times"])
        assert most["times"] > 1
        assert most["since"] < most["at"]
        assert f"× {most['times']}, since " in without_scripts(page.get(f"/engines/{name}/events"))


def test_a_run_file_is_no_engine_and_an_id_that_is_none_is_said(tmp_path: Path):
    unpacked("plain", tmp_path, "format_2")
    with RunningPage(tmp_path) as page:
        (file,) = page.api("/runs")["files"]
        refused = page.get(f"/api/v1/engines/{file['id']}")
        assert (refused.status, "run file" in refused.json()["error"]["message"]) == (400, True)
        assert page.get("/engines/0011223344556677").status == 404


async def test_an_engine_and_a_run_are_followed_in_figures_without_what_was_written(tmp_path: Path):
    async with inline(tmp_path / "agents.run") as engine:
        run = await engine.submit(endless, HOSTILE)
        with RunningPage(tmp_path) as page:
            name = await elsewhere(engine_id, page)
            events = await elsewhere(first_events, page, f"/engines/{name}/live", f"/engines/{name}/runs/{run.id}/live")
            assert events[0]["engine"]["live"]["pid"] == os.getpid()
            assert {figure["name"]: figure["text"] for figure in events[0]["engine"]["figures"]}["pressure"] == "normal"
            assert events[1]["run"]["state"] == "running"
            assert "alert(1)" not in str(events[1])
            assert (await elsewhere(first_status, page, f"/engines/{name}/runs/99/live")) == 404
        await run.cancel()


def first_events(page: RunningPage, *paths: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path in paths:
        with followed(page.port, path) as client:
            event = client.next()
            assert event is not None
            found.append(event.data)
    return found


def first_status(page: RunningPage, path: str) -> int:
    with followed(page.port, path) as client:
        return client.status


async def test_a_text_of_megabytes_in_a_file_from_elsewhere_is_not_read(tmp_path: Path):
    path = tmp_path / "agents.run"
    async with inline(path) as engine:
        await (await engine.submit(stepping, 7)).result()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET name = ?", ("x" * 10_000_000,))
    with RunningPage(tmp_path) as page:
        name = engine_id(page)
        assert page.api(f"/engines/{name}/runs")["runs"][0]["name"] == "too long to show"
        assert "too long to show" in without_scripts(page.get(f"/engines/{name}/runs/1"))
