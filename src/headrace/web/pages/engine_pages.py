"""The pages of an engine: how it stands, its agent runs, its events, and one run."""

from __future__ import annotations

from urllib.parse import urlencode

from headrace.web.api.agent_runs import AGENT_RUN, AGENT_RUNS, EMITTED, ChosenState, EmittedAsked, RunsAsked
from headrace.web.api.engine_events import ENGINE_EVENTS, ENGINE_MEMORY, MEMORY_EVENTS, EventsAsked, folded
from headrace.web.api.engine_summary import ENGINE_SUMMARY, OneEngine
from headrace.web.engine_pictures import memory_picture, step_picture
from headrace.web.html_pages import rendered, svg
from headrace.web.pages.html_page import HtmlPage
from headrace.web.shown_files import ShownFiles

_FEW_EVENTS = 12


def _engine_page(files: ShownFiles, given: dict[str, str]) -> str:
    asked = OneEngine(given["engine"])
    engine = ENGINE_SUMMARY.call(files, asked)
    picture = memory_picture(engine, ENGINE_MEMORY.call(files, asked))
    return rendered(
        "engine.html",
        tab="",
        engine=engine,
        memory=svg(picture) if picture else "",
        events=ENGINE_EVENTS.call(files, EventsAsked(engine.id, what="memory", limit=_FEW_EVENTS)).events,
    )


def _runs_page(files: ShownFiles, given: dict[str, str]) -> str:
    asked = AGENT_RUNS.parsed(given)
    found = AGENT_RUNS.call(files, asked)
    here = f"/engines/{asked.engine}/runs"
    return rendered(
        "agent_runs.html",
        tab="/runs",
        engine=ENGINE_SUMMARY.call(files, OneEngine(asked.engine)),
        found=found,
        chosen=asked.state,
        states=[each.value for each in ChosenState],
        first=_address(here, asked) if asked.cursor else "",
        next="" if found.next is None else _address(here, asked, cursor=found.next),
    )


def _address(here: str, asked: RunsAsked, **more: str) -> str:
    return f"{here}?{urlencode({'state': asked.state.value, 'limit': asked.limit, **more})}"


def _events_page(files: ShownFiles, given: dict[str, str]) -> str:
    asked = ENGINE_EVENTS.parsed(given)
    found = ENGINE_EVENTS.call(files, asked)
    following = {"what": asked.what, "limit": asked.limit, "cursor": found.next or ""}
    return rendered(
        "engine_events.html",
        tab="/events",
        engine=ENGINE_SUMMARY.call(files, OneEngine(asked.engine)),
        events=found.events,
        what=asked.what,
        kinds=MEMORY_EVENTS,
        first=f"/engines/{asked.engine}/events?{urlencode({'what': asked.what})}" if asked.cursor else "",
        next="" if found.next is None else f"/engines/{asked.engine}/events?{urlencode(following)}",
    )


def _run_page(files: ShownFiles, given: dict[str, str]) -> str:
    asked = AGENT_RUN.parsed(given)
    shown = AGENT_RUN.call(files, asked)
    picture = step_picture(shown)
    emitted = EMITTED.call(files, EmittedAsked(asked.engine, asked.number)).events if asked.text else []
    return rendered(
        "agent_run.html",
        tab="/runs",
        engine=ENGINE_SUMMARY.call(files, OneEngine(asked.engine)),
        proof=given["proof"],
        shown=shown,
        steps=svg(picture) if picture else "",
        events=folded(shown.events),
        has_texts=asked.text,
        emitted=emitted,
    )


ENGINE_PAGES = (
    HtmlPage("/engines/{engine}", _engine_page),
    HtmlPage("/engines/{engine}/runs", _runs_page),
    HtmlPage("/engines/{engine}/events", _events_page),
    HtmlPage("/engines/{engine}/runs/{number}", _run_page),
)
