"""What the user types at a terminal to have a run do what the page offers, or cannot do itself: it starts no run.

Does not cover: steering through the page (web.api.run_steering).
"""

from __future__ import annotations

import shlex
from enum import Enum
from pathlib import Path

import msgspec

from headrace.interviews.steering.ended_runs import larger_budgets
from headrace.interviews.steering.needed_functions import needed_functions
from headrace.interviews.steering.run_file_status import RunFileStatus


class SteeringAction(Enum):
    PAUSE = "pause"
    RESUME = "resume"
    CONCURRENCY = "concurrency"
    STOP = "stop"
    RETRY = "retry"


_TO_LIVE = {
    SteeringAction.PAUSE: "headrace pause {}",
    SteeringAction.RESUME: "headrace resume {}",
    SteeringAction.CONCURRENCY: "headrace tune {} --concurrency N",
    SteeringAction.STOP: "headrace stop {}",
}
_RESUME_OPTIONS = {SteeringAction.RETRY: " --retry-failed", SteeringAction.CONCURRENCY: " --concurrency N"}
_MOST_FUNCTIONS = 5  # a survey may have thousands


class AtTerminal(msgspec.Struct, frozen=True):
    """The command; or some of the `functions` for which the program that made the file has to be run again, which no
    command can give. Neither where there is nothing to do.
    """

    command: str = ""
    functions: list[str] = []


def at_terminal(action: SteeringAction, path: Path) -> AtTerminal:
    """What to type for this, by how the run stands now. Failed interviews are asked again when it has ended."""
    status, file = RunFileStatus.at(path, is_brief=True), shlex.quote(str(path))
    if action is not SteeringAction.RETRY:
        if status.goes_on:
            return AtTerminal(_TO_LIVE[action].format(file))
        if status.is_complete:
            return AtTerminal()
    if functions := needed_functions(path):
        return AtTerminal(functions=functions[:_MOST_FUNCTIONS])
    larger = larger_budgets(status.budgets, status.stats)
    return AtTerminal(f"headrace resume {file}{_RESUME_OPTIONS.get(action, '')}{larger}")
