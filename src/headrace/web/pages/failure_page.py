"""The failures of a run, and what can be done about them."""

from __future__ import annotations

from headrace.web.api.failure_groups import FAILURE_GROUPS
from headrace.web.api.run_summary import RUN_SUMMARY
from headrace.web.api.typed_commands import SteeringAction, at_terminal
from headrace.web.html_pages import rendered
from headrace.web.pages.html_page import HtmlPage
from headrace.web.shown_files import ShownFiles


def _failures(files: ShownFiles, given: dict[str, str]) -> str:
    found = FAILURE_GROUPS.call(files, FAILURE_GROUPS.parsed({**given, "text": "true"}))
    run = RUN_SUMMARY.call(files, RUN_SUMMARY.parsed(given))
    return rendered(
        "failures.html",
        tab="/failures",
        run=run,
        proof=given["proof"],
        found=found,
        action=SteeringAction.RETRY,
        at_terminal=at_terminal(SteeringAction.RETRY, files.one(run.id).path),
    )


FAILURE_PAGES = (HtmlPage("/runs/{run}/failures", _failures),)
