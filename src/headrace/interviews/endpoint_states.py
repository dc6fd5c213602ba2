"""Keeps which models can be asked at present. Covers: holding a model's cursor while its endpoint cannot be called, the
words for the progress line, and the error of a run that had to do without a model.

Does not cover: why an endpoint is in a state (models.endpoint.endpoint).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from headrace.errors import ModelUnusable, Spelled
from headrace.interviews.contract import Observed
from headrace.interviews.cursors import Cursors
from headrace.models.limiter import EndpointState
from headrace.survey.model import Model

# Words of models.http_client.failures: a reason comes from workers as text.
_ABOUT_DESCRIPTION = ("Check the model's name", "give that as base_url")


class EndpointStates:
    """A model that cannot be asked stops its own cursor; the others go on. A question's own model, which every
    interview asks, stops them all.
    """

    def __init__(self, models: Sequence[Model], planned: int, cursors: Cursors) -> None:
        """`planned` models are the plan's; those of questions follow."""
        self._cursors = cursors
        self._planned = planned
        self._names = [model.name for model in models]
        self._closed: dict[int, str] = {}
        self._refused: dict[int, str] = {}  # closed at some time: what was in flight then is left
        self._held: dict[int, str] = {}

    def note(self, observed: Observed) -> None:
        """Follow the last state of a model's endpoint."""
        model, state = observed.model, observed.state
        self._held.pop(model, None)
        self._closed.pop(model, None)
        match state:
            case EndpointState.OPEN:
                pass
            case EndpointState.HELD:
                self._held[model] = observed.reason
            case EndpointState.CLOSED:
                self._closed[model] = self._refused[model] = observed.reason
            case _:
                assert_never(state)
        for cursor in range(self._planned) if model >= self._planned else (model,):
            self._steer(cursor)

    def _steer(self, cursor: int) -> None:
        """Hold, drop or let go a model's cursor, by its own state and by those of the questions' models."""
        asked = (cursor, *range(self._planned, len(self._names)))
        if any(model in self._closed for model in asked):
            self._cursors.drop(cursor)
        elif any(model in self._held for model in asked):
            self._cursors.hold(cursor)
        else:
            self._cursors.let_go(cursor)

    def notice(self) -> str:
        """Which models cannot be asked now, and why; empty where all can."""
        notices = [f"{self._names[model]} {reason}" for model, reason in self._held.items()]
        notices += [f"{self._names[model]} stopped" for model in self._closed]
        return ", ".join(dict.fromkeys(notices))

    def failure(self, done: int, total: int) -> ModelUnusable | None:
        """The error of a run that ended without these models; None where all could be asked."""
        if not self._refused:
            return None
        reasons = " ".join(dict.fromkeys(self._refused.values()))
        return ModelUnusable(
            f"{reasons} {done:,} of {total:,} interviews are done and saved.",
            fix=_to_go_on(reasons),
        )


def _to_go_on(reasons: str) -> Spelled:
    """How to go on once what the services said is mended: a model of another name, address or parameter is another
    job's, which this run's file does not take.
    """
    again = "Mend that and run again: what is missing is asked then."
    if not any(words in reasons for words in _ABOUT_DESCRIPTION):
        return Spelled(again, command=again)
    other = "A model with another name, base_url or parameter is another job:"
    return Spelled(
        f"{again} {other} give it another path, or fresh=True.",
        command=f"{again} {other} give it another -o, or --fresh.",
    )
