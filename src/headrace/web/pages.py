"""The HTML pages: which operations each one asks, and the template that it fills.

Does not cover: reading (web.api), or how templates are filled (web.html_pages).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.charts.memory_svg import memory_svg
from headrace.results.plots.distributions import memory_chart
from headrace.results.stats import history_of
from headrace.store.run_file.reader import Reader
from headrace.web.api.run_list import RUN_LIST
from headrace.web.api.run_summary import RUN_SUMMARY
from headrace.web.html_pages import rendered, svg
from headrace.web.shown_files import ShownFile, ShownFiles


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """`show` blocks: it runs in a thread. It is given what the address has: its path's names and its query."""

    path: str
    show: Callable[[ShownFiles, dict[str, str]], str]


def _list_page(files: ShownFiles, given: dict[str, str]) -> str:
    return rendered("runs.html", found=RUN_LIST.call(files, RUN_LIST.parsed(given)))


def _run_page(files: ShownFiles, given: dict[str, str]) -> str:
    asked = RUN_SUMMARY.parsed(given)
    run = RUN_SUMMARY.call(files, asked)
    return rendered("run.html", run=run, memory=_memory_picture(files.one(asked.run), run.done))


def _memory_picture(file: ShownFile, done: int) -> str:
    reader = Reader(file.path)
    try:
        points = history_of(reader)
    finally:
        reader.close()
    return svg(memory_svg(memory_chart(points, file.path.name, done))) if points else ""


PAGES = (HtmlPage("/", _list_page), HtmlPage("/runs/{run}", _run_page))
