"""The pages that steer an agent run: each asks once, by a form that works without scripts, and shows what came of it.

Does not cover: steering itself (web.api.engine_steering).
"""

from __future__ import annotations

from headrace.errors import InvalidInput
from headrace.web.api.agent_runs import AGENT_RUN
from headrace.web.api.engine_steering import ENGINE_STEERING, EngineAction
from headrace.web.api.engine_summary import ENGINE_SUMMARY, OneEngine
from headrace.web.html_pages import rendered
from headrace.web.operations import Method
from headrace.web.pages.html_page import HtmlPage
from headrace.web.shown_files import ShownFiles

_PATH = "/engines/{engine}/runs/{number}/steer/{action}"
_QUESTIONS = {
    EngineAction.CANCEL: "Cancel this run?",
    EngineAction.RETRY: "Try this run again?",
    EngineAction.SEND: "Send this run a message?",
    EngineAction.RESOLVE: "Did the side effect happen?",
}


def _confirm(files: ShownFiles, given: dict[str, str]) -> str:
    action, asked = _action(given), AGENT_RUN.parsed({**given, "text": "false"})
    return rendered(
        "engine_steer.html",
        tab="/runs",
        engine=ENGINE_SUMMARY.call(files, OneEngine(asked.engine)),
        proof=given["proof"],
        shown=AGENT_RUN.call(files, asked),
        action=action,
        question=_QUESTIONS[action],
    )


def _carry_out(files: ShownFiles, given: dict[str, str]) -> str:
    operation = ENGINE_STEERING[_action(given)]
    steered = operation.call(files, operation.parsed(given))
    asked = AGENT_RUN.parsed({**given, "text": "false"})
    return rendered(
        "engine_steered.html",
        tab="/runs",
        engine=ENGINE_SUMMARY.call(files, OneEngine(asked.engine)),
        shown=AGENT_RUN.call(files, asked),
        steered=steered,
    )


def _action(given: dict[str, str]) -> EngineAction:
    try:
        return EngineAction(given["action"])
    except ValueError:
        raise InvalidInput(
            f"An agent run cannot be told to {given['action'][:40]!r}.",
            fix=f"It can be told: {', '.join(each.value for each in EngineAction)}.",
        ) from None


ENGINE_STEERING_PAGES = (
    HtmlPage(_PATH, _confirm, steers=True),
    HtmlPage(_PATH, _carry_out, method=Method.POST, steers=True),
)
