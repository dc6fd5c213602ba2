"""What a user does in the page, click by click, with a run that goes on."""

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.web.browser.chromium import in_chromium, visiting
from tests.web.browser.shown_place import Shown

expect.set_options(timeout=30_000)


@in_chromium
def test_figures_move_while_the_page_is_open(chromium: Browser, shown: Shown):
    with visiting(chromium, shown.page) as visit:
        visit.enter(f"/runs/{shown.going}")
        interviews = visit.window.locator("[data-figure=interviews] dd")
        first = interviews.inner_text()
        expect(interviews).not_to_have_text(first)
        assert visit.trouble == []


@in_chromium
def test_a_run_is_paused_and_resumed_by_clicks(chromium: Browser, shown: Shown):
    with visiting(chromium, shown.page) as visit:
        visit.enter("/")
        visit.window.click("text=going.run")
        for button, answer, state in (("Pause", "Yes, pause", "paused"), ("Resume", "Yes, go on", "running")):
            visit.window.click(f"nav[aria-label='Steer this run'] >> text={button}")
            visit.window.click(f"button:has-text('{answer}')")
            visit.window.click("text=Back to the run")
            expect(visit.window.locator("h1 .state")).to_have_text(state)
        assert visit.trouble == []


@in_chromium
def test_a_table_is_filtered_paged_and_opened_by_clicks(chromium: Browser, shown: Shown):
    with visiting(chromium, shown.page) as visit:
        window = visit.window
        visit.enter(f"/runs/{shown.ended}")
        window.click("nav.tabs >> text=Interviews")
        window.fill("input[name=filter]", "answer.mood == 'Good'")
        window.keyboard.press("Escape")  # what completes names covers the button
        window.click("button:has-text('Show')")
        rows = window.locator("table.rows tbody tr")
        expect(rows).to_have_count(50)
        window.click("a[rel=next]")
        expect(rows).to_have_count(10)
        rows.first.locator("a").click()
        expect(window.locator("h2").first).to_contain_text("Interview 150")
        window.click("a[rel=next]")
        expect(window.locator("h2").first).to_contain_text("Interview 153")
        window.go_back()
        assert visit.trouble == []


@in_chromium
def test_what_is_filtered_is_downloaded(chromium: Browser, shown: Shown, tmp_path: Path):
    with visiting(chromium, shown.page) as visit:
        visit.enter(f"/runs/{shown.ended}/table?filter=agent.age+%3C+25")
        with visit.window.expect_download() as started:
            visit.window.click("text=CSV")
        started.value.save_as(tmp_path / "saved.csv")
        saved = (tmp_path / "saved.csv").read_text("utf-8")
        assert started.value.suggested_filename == "a run that ended.csv"
        assert len(re.findall(r"^", saved, re.MULTILINE)) >= 31
        assert visit.trouble == []


@in_chromium
def test_a_mistake_in_a_filter_is_said_where_it_was_typed(chromium: Browser, shown: Shown):
    with visiting(chromium, shown.page) as visit:
        visit.enter(f"/runs/{shown.ended}/table?filter=agent.agee+%3C+25")
        assert "Did you mean 'agent.age'" in visit.window.inner_text("[role=alert]")
        assert visit.window.input_value("input[name=filter]") == "agent.agee < 25"
        assert visit.trouble == []
