"""An engine's pages while it works: figures move, emitted events come, and what a reader has opened stays open."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect

from headrace import Engine
from headrace.agents.context import AgentContext
from tests.trouble.children import until
from tests.web.browser.chromium import in_chromium, visiting
from tests.web.running_page import RunningPage


async def _counting(ctx: AgentContext) -> None:
    for number in range(10_000):
        await ctx.step(f"step {number}", asyncio.sleep, 0.2)
        ctx.emit({"counted": number})


@contextmanager
def _working(path: Path) -> Iterator[threading.Event]:
    """An engine at work in a thread of its own, until the event is set."""
    is_open, is_over = threading.Event(), threading.Event()

    async def work() -> None:
        async with Engine(path, isolation="inline", memory="+3GB") as engine:  # Chromium is counted in it
            engine.every(0.5, lambda: None, name="beat", jitter=0)
            await engine.submit(_counting, key="counting")
            is_open.set()
            await asyncio.to_thread(is_over.wait)

    thread = threading.Thread(target=asyncio.run, args=(work(),))
    thread.start()
    try:
        until(is_open.is_set, "the engine to open")
        yield is_over
    finally:
        is_over.set()
        thread.join()


@in_chromium
def test_an_engine_is_watched_until_it_closes(chromium: Browser, tmp_path: Path):
    with _working(tmp_path / "agents.run") as is_over, RunningPage(tmp_path) as page:
        (file,) = page.api("/runs")["files"]
        assert file["memory_bytes"] > 0
        with visiting(chromium, page) as visit:
            visit.enter(f"/engines/{file['id']}")
            beats = visit.window.locator("[data-fragment=heartbeats] td.n").nth(1)
            first = beats.inner_text()
            expect(beats).not_to_have_text(first, timeout=20_000)  # parts are drawn anew every five seconds
            is_over.set()
            expect(visit.window.locator("h1 .state")).to_have_text("not running")
            expect(visit.window.locator("main")).to_contain_text("No engine has this file open now")
            expect(visit.window.locator("[data-figure=memory]")).to_be_hidden()
            assert visit.trouble == []


@in_chromium
def test_an_agent_run_is_watched_with_what_it_emits(chromium: Browser, tmp_path: Path):
    with _working(tmp_path / "agents.run"), RunningPage(tmp_path) as page:
        (file,) = page.api("/runs")["files"]
        with visiting(chromium, page) as visit:
            visit.enter(f"/engines/{file['id']}/runs/1?text=true")
            table = visit.window.locator("[data-fragment=steps] details")
            table.locator("summary").click()
            visit.window.locator("h1").click()
            emitted = visit.window.locator("[data-fragment=texts] li")
            seen = emitted.count()
            expect(emitted.nth(seen + 1)).to_contain_text("counted")
            expect(table.locator("tbody tr").nth(seen + 1)).to_be_visible()  # it was opened, and stays open
            assert visit.trouble == []
