"""The list of runs, and the page of one run: its figures and its memory line."""

from __future__ import annotations

from headrace.charts.memory_svg import memory_svg
from headrace.results.plots.distributions import memory_chart
from headrace.web.api.run_list import RUN_LIST
from headrace.web.api.run_money import RUN_MONEY
from headrace.web.api.run_summary import RUN_SUMMARY, history_at
from headrace.web.api.typed_commands import AtTerminal, SteeringAction, at_terminal
from headrace.web.html_pages import rendered, svg
from headrace.web.pages.html_page import HtmlPage
from headrace.web.shown_files import ShownFile, ShownFiles


def _list_page(files: ShownFiles, given: dict[str, str]) -> str:
    return rendered("runs.html", found=RUN_LIST.call(files, RUN_LIST.parsed(given)))


def _run_page(files: ShownFiles, given: dict[str, str]) -> str:
    asked = RUN_SUMMARY.parsed(given)
    run = RUN_SUMMARY.call(files, asked)
    return rendered(
        "run.html",
        tab="",
        run=run,
        proof=given["proof"],
        action=SteeringAction.RESUME,
        at_terminal=at_terminal(SteeringAction.RESUME, files.one(asked.run).path) if run.ended else AtTerminal(),
        money=RUN_MONEY.call(files, asked),
        memory=_memory_picture(files.one(asked.run), run.done),
    )


def _memory_picture(file: ShownFile, done: int) -> str:
    points = history_at(file)
    return svg(memory_svg(memory_chart(points, file.path.name, done))) if points else ""


RUN_PAGES = (HtmlPage("/", _list_page), HtmlPage("/runs/{run}", _run_page))
