"""The pages that steer a run: each asks once, by a form that works without scripts, and shows what came of it.

Does not cover: steering itself (web.api.run_steering).
"""

from __future__ import annotations

from headrace.errors import InvalidInput
from headrace.web.api.run_steering import STEERING, SteeringAction, command_for
from headrace.web.api.run_summary import RUN_SUMMARY
from headrace.web.html_pages import rendered
from headrace.web.operations import Method
from headrace.web.pages.html_page import HtmlPage
from headrace.web.shown_files import ShownFiles

_PATH = "/runs/{run}/steer/{action}"
_QUESTIONS = {
    SteeringAction.PAUSE: "Pause this run?",
    SteeringAction.RESUME: "Let this run go on?",
    SteeringAction.CONCURRENCY: "Change how many interviews are in flight?",
    SteeringAction.STOP: "Stop this run?",
    SteeringAction.RETRY: "Ask the failed interviews again?",
}


def _confirm(files: ShownFiles, given: dict[str, str]) -> str:
    action = _action(given)
    run = RUN_SUMMARY.call(files, RUN_SUMMARY.parsed(given))
    return rendered(
        "steer.html",
        tab=None,
        run=run,
        proof=given["proof"],
        action=action,
        question=_QUESTIONS[action],
        command=command_for(action, files.one(run.id).path),
    )


def _carry_out(files: ShownFiles, given: dict[str, str]) -> str:
    action = _action(given)
    operation = STEERING[action]
    steered = operation.call(files, operation.parsed(given))
    run = RUN_SUMMARY.call(files, RUN_SUMMARY.parsed(given))
    return rendered("steered.html", tab=None, run=run, proof=given["proof"], steered=steered)


def _action(given: dict[str, str]) -> SteeringAction:
    try:
        return SteeringAction(given["action"])
    except ValueError:
        raise InvalidInput(
            f"A run cannot be told to {given['action'][:40]!r}.",
            fix=f"It can be told: {', '.join(each.value for each in SteeringAction)}.",
        ) from None


STEERING_PAGES = (
    HtmlPage(_PATH, _confirm, steers=True),
    HtmlPage(_PATH, _carry_out, method=Method.POST, steers=True),
)
