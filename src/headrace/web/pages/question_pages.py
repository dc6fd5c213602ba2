"""The questions of a run as small pictures, some at a time: a bar leads to its interviews in the table.

A picture is counted for a fraction of a second a request. A page that is not complete asks again: its script for what
is on screen, and without one the browser loads the page anew.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from headrace.charts.bar_svg import bar_svg
from headrace.errors import HeadraceError, InvalidInput, QueryTimeout
from headrace.web.api.question_pictures import (
    QUESTION_LIST,
    CountedQuestion,
    ShownQuestion,
    counted_questions,
)
from headrace.web.api.run_summary import RUN_SUMMARY
from headrace.web.html_pages import rendered, svg
from headrace.web.pages.html_page import HtmlPage
from headrace.web.shown_files import ShownFiles

_ON_A_PAGE = 6
_PICTURE_PX = 480  # as wide as half a window, or a telephone


class QuestionsShown(msgspec.Struct, frozen=True):
    """What the address asks for; `question` where it is one alone."""

    run: str
    question: str = ""
    by: str = ""
    filter: str = ""
    first: int = 0

    def address(self, **changed: str | int) -> str:
        """The address of the same with some of it changed."""
        asked = {**msgspec.to_builtins(self), **changed}
        path = f"/runs/{quote(str(asked['run']), safe='')}/questions"
        path += f"/{quote(str(asked['question']), safe='')}" if asked["question"] else ""
        query = urlencode({name: asked[name] for name in ("by", "filter", "first") if asked[name]}, errors="replace")
        return f"{path}?{query}" if query else path


def _questions(files: ShownFiles, given: dict[str, str]) -> str:
    try:
        asked = msgspec.convert(given, QuestionsShown, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"The address cannot be read: {error}.") from None
    run = RUN_SUMMARY.call(files, RUN_SUMMARY.parsed({"run": asked.run}))
    count = str(_ON_A_PAGE) if not asked.question else "100"
    listed = QUESTION_LIST.call(
        files, QUESTION_LIST.parsed({"run": asked.run, "first": str(max(0, asked.first)), "count": count})
    )
    shown = [each for each in listed.questions if not asked.question or each.name == asked.question]
    if asked.question and not shown:
        shown = [ShownQuestion(asked.question, "", "")]
    trouble: HeadraceError | None = None
    counted: list[CountedQuestion] = []
    try:
        counted = counted_questions(files, asked.run, [each.name for each in shown], asked.by, asked.filter)
    except (InvalidInput, QueryTimeout) as error:
        trouble = error
    return rendered(
        "questions.html",
        tab="/questions",
        run=run,
        asked=asked,
        splits=listed.splits,
        everything=QuestionsShown(asked.run, asked.question).address(),
        back=asked.address(question=""),
        before=asked.address(first=max(0, asked.first - _ON_A_PAGE)) if asked.first and not asked.question else "",
        behind=asked.address(first=asked.first + _ON_A_PAGE) if listed.truncated and not asked.question else "",
        trouble=None if trouble is None else {"message": trouble.message, "fix": trouble.fix},
        pictures=[_picture(asked, question, each) for question, each in zip(shown, counted, strict=False)],
        drawn=[_drawn(asked.run, each) for each in counted],
        is_complete=all(each.counted.is_complete for each in counted),
    )


def _picture(asked: QuestionsShown, question: ShownQuestion, found: CountedQuestion) -> dict[str, Any]:
    return {
        "name": question.name,
        "kind": question.kind,
        "text": question.text,
        "read": found.counted.read,
        "total": found.counted.total,
        "is_complete": found.counted.is_complete,
        "address": asked.address(question=question.name, first=0),
    }


def _drawn(run: str, found: CountedQuestion) -> Any:
    links = [[_table(run, condition) if condition else "" for condition in panel] for panel in found.drawn.filters]
    return svg(bar_svg(found.drawn.chart, links, _PICTURE_PX))


def _table(run: str, condition: str) -> str:
    return f"/runs/{quote(run, safe='')}/table?{urlencode({'filter': condition}, errors='replace')}"


QUESTION_PAGES = (
    HtmlPage("/runs/{run}/questions", _questions),
    HtmlPage("/runs/{run}/questions/{question}", _questions),
)
