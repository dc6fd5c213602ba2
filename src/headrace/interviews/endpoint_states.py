"""Keeps which models can be asked at present. Covers: holding a model's cursor while its endpoint cannot be called, the
words for the progress line, and the error of a run that had to do without a model.

Does not cover: why an endpoint is in a state (models.endpoint.endpoint).
"""

from __future__ import annotations

from typing import assert_never

from headrace.errors import ModelUnusable
from headrace.interviews.contract import Observed
from headrace.interviews.cursors import Cursors
from headrace.models.limiter import EndpointState
from headrace.plan.lists import ModelList


class EndpointStates:
    """A model that cannot be asked stops its own cursor; the others go on."""

    def __init__(self, models: ModelList, cursors: Cursors) -> None:
        self._cursors = cursors
        self._names = [model.name for model in models]
        self._closed: dict[int, str] = {}
        self._held: dict[int, str] = {}

    def note(self, observed: Observed) -> None:
        """Follow the last state of a model's endpoint."""
        model, state = observed.model, observed.state
        self._held.pop(model, None)
        match state:
            case EndpointState.OPEN:
                self._cursors.let_go(model)
            case EndpointState.HELD:
                self._held[model] = observed.reason
                self._cursors.hold(model)
            case EndpointState.CLOSED:
                self._closed[model] = observed.reason
                self._cursors.drop(model)
            case _:
                assert_never(state)

    def notice(self) -> str:
        """Which models cannot be asked now, and why; empty where all can."""
        notices = [f"{self._names[model]} {reason}" for model, reason in self._held.items()]
        notices += [f"{self._names[model]} stopped" for model in self._closed]
        return ", ".join(dict.fromkeys(notices))

    def failure(self, done: int, total: int) -> ModelUnusable | None:
        """The error of a run that ended without these models; None where all could be asked."""
        if not self._closed:
            return None
        reasons = " ".join(dict.fromkeys(self._closed.values()))
        return ModelUnusable(
            f"{reasons} {done:,} of {total:,} interviews are done and saved.",
            fix="Mend that and run again: what is missing is asked then.",
        )
