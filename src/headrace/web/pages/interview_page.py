"""One interview as a conversation, alone or beside another of the same agent and scenario."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from headrace.web.api.conversation import Conversation, ConversationTurn
from headrace.web.api.one_interview import ONE_INTERVIEW, Neighbour
from headrace.web.api.run_summary import RUN_SUMMARY, OneRun
from headrace.web.html_pages import rendered
from headrace.web.pages.html_page import HtmlPage
from headrace.web.shown_files import ShownFiles
from headrace.web.table_query import TableQuery


def _interview_page(files: ShownFiles, given: dict[str, str]) -> str:
    # An empty choice of the form is none.
    asked = ONE_INTERVIEW.parsed({name: text for name, text in given.items() if text} | {"text": "true"})
    run = RUN_SUMMARY.call(files, OneRun(asked.run))
    found = ONE_INTERVIEW.call(files, asked)
    query = TableQuery(asked.filter, asked.sort)
    both = [found.interview, *([] if found.beside is None else [found.beside])]
    return rendered(
        "interview.html",
        tab="/table",
        run=run,
        query=query,
        found=found,
        agent=_shown_fields(found.agent),
        scenario=_shown_fields(found.scenario),
        sides=[_side(each) for each in both],
        turns=[[_turn(each) for each in turns] for turns in zip(*(each.turns for each in both), strict=False)],
        table=f"/runs/{run.id}/table{query.in_address()}",
        previous=_link(found.previous, run.id, query),
        next=_link(found.next, run.id, query),
        twins=[
            {"twin": twin, "link": _address(run.id, asked.ordinal, query, twin.ordinal) if twin.status else ""}
            for twin in found.twins
        ],
        beside=asked.beside,
        alone=_address(run.id, asked.ordinal, query),
    )


def _address(run: str, ordinal: int, query: TableQuery, beside: int | None = None) -> str:
    more = {} if beside is None else {"beside": beside}
    return f"/runs/{run}/interviews/{ordinal}{query.in_address(**more)}"


def _link(neighbour: Neighbour | None, run: str, query: TableQuery) -> dict[str, str] | None:
    """Where a neighbour is: its page, or the table that goes on looking for it."""
    if neighbour is None:
        return None
    if neighbour.ordinal is not None:
        return {"link": _address(run, neighbour.ordinal, query), "in_table": ""}
    return {"link": f"/runs/{run}/table{query.in_address(cursor=neighbour.cursor or '')}", "in_table": "yes"}


def _shown_fields(fields: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, _text(value)) for name, value in fields.items()]


def _side(conversation: Conversation) -> dict[str, Any]:
    shown = msgspec.to_builtins(conversation)
    del shown["turns"]
    return {**shown, "parameters": _shown_fields(conversation.parameters), "started": _moment(conversation.started_at)}


def _turn(turn: ConversationTurn) -> dict[str, Any]:
    return {**msgspec.to_builtins(turn), "answer": _text(turn.answer), "has_answer": turn.answer is not None}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "unknown"  # a file may hold any number


INTERVIEW_PAGES = (HtmlPage("/runs/{run}/interviews/{ordinal}", _interview_page),)
