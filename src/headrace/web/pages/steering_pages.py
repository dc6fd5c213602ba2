"""The pages that steer a run or an agent run: each asks once, by a form that works without scripts, and shows what came
of it.

Does not cover: steering itself (web.api.run_steering, web.api.engine_steering).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from headrace.errors import InvalidInput
from headrace.web.api.agent_runs import AGENT_RUN
from headrace.web.api.engine_steering import ENGINE_STEERING, EngineAction
from headrace.web.api.engine_summary import ENGINE_SUMMARY, OneEngine
from headrace.web.api.run_steering import RETRY, STEERING, failed_for
from headrace.web.api.run_summary import RUN_SUMMARY
from headrace.web.api.typed_commands import SteeringAction, at_terminal
from headrace.web.html_pages import rendered
from headrace.web.operations import AnyOperation, Method
from headrace.web.pages.html_page import HtmlPage
from headrace.web.shown_files import ShownFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steerable:
    """Something that can be steered: how it is called, what it can be told and how that is asked, and what its two
    templates show of it.
    """

    noun: str
    actions: type[Enum]
    operations: Mapping[Any, AnyOperation]
    questions: Mapping[Any, str]
    shown: Callable[[ShownFiles, dict[str, str]], dict[str, Any]]
    ask_template: str
    done_template: str

    def action(self, given: dict[str, str]) -> Enum:
        try:
            return self.actions(given["action"])
        except ValueError:
            raise InvalidInput(
                f"{self.noun} cannot be told to {given['action'][:40]!r}.",
                fix=f"It can be told: {', '.join(each.value for each in self.actions)}.",
            ) from None


def _confirm(steerable: _Steerable, files: ShownFiles, given: dict[str, str]) -> str:
    action = steerable.action(given)
    more = {"proof": given["proof"], "once": given["once"], "action": action, "question": steerable.questions[action]}
    return rendered(steerable.ask_template, **steerable.shown(files, given), **more)


def _carry_out(steerable: _Steerable, files: ShownFiles, given: dict[str, str]) -> str:
    operation = steerable.operations[steerable.action(given)]
    steered = operation.call(files, operation.parsed(given))
    return rendered(steerable.done_template, **steerable.shown(files, given), steered=steered)


def _shown_run(files: ShownFiles, given: dict[str, str]) -> dict[str, Any]:
    run = RUN_SUMMARY.call(files, RUN_SUMMARY.parsed(given))
    action, path = SteeringAction(given["action"]), files.one(run.id).path
    shown = {"tab": None, "run": run, "at_terminal": at_terminal(action, path), "cause": "", "of_cause": None}
    if action is SteeringAction.RETRY and given.get("cause"):
        cause = RETRY.parsed({"run": run.id, "cause": given["cause"]}).cause
        shown |= {"cause": cause, "of_cause": failed_for(path, cause) if cause else None}
    return shown


def _shown_agent_run(files: ShownFiles, given: dict[str, str]) -> dict[str, Any]:
    asked = AGENT_RUN.parsed({**given, "text": "false"})
    engine = ENGINE_SUMMARY.call(files, OneEngine(asked.engine))
    return {"tab": "/runs", "engine": engine, "shown": AGENT_RUN.call(files, asked)}


def _pages(path: str, steerable: _Steerable) -> tuple[HtmlPage, HtmlPage]:
    return (
        HtmlPage(path, partial(_confirm, steerable), steers=True),
        HtmlPage(path, partial(_carry_out, steerable), method=Method.POST, steers=True),
    )


_RUN = _Steerable(
    noun="A run",
    actions=SteeringAction,
    operations=STEERING,
    questions={
        SteeringAction.PAUSE: "Pause this run?",
        SteeringAction.RESUME: "Let this run go on?",
        SteeringAction.CONCURRENCY: "Change how many interviews are in flight?",
        SteeringAction.STOP: "Stop this run?",
        SteeringAction.RETRY: "Ask the failed interviews again?",
    },
    shown=_shown_run,
    ask_template="steer.html",
    done_template="steered.html",
)
_AGENT_RUN = _Steerable(
    noun="An agent run",
    actions=EngineAction,
    operations=ENGINE_STEERING,
    questions={
        EngineAction.CANCEL: "Cancel this run?",
        EngineAction.RETRY: "Try this run again?",
        EngineAction.SEND: "Send this run a message?",
        EngineAction.RESOLVE: "Did the side effect happen?",
    },
    shown=_shown_agent_run,
    ask_template="engine_steer.html",
    done_template="engine_steered.html",
)
STEERING_PAGES = (
    *_pages("/runs/{run}/steer/{action}", _RUN),
    *_pages("/engines/{engine}/runs/{number}/steer/{action}", _AGENT_RUN),
)
