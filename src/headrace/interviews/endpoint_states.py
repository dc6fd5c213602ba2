"""Which models can be asked at present. Covers: what their endpoints said last, in words for the progress line.

Does not cover: why an endpoint stands as it does (models.endpoint.endpoint), or stopping its cursor
(interviews.cursors).
"""

from __future__ import annotations

from headrace.errors import ModelUnusable
from headrace.interviews.contract import Observed
from headrace.models.limiter import EndpointState
from headrace.plan.lists import ModelList


class EndpointStates:
    def __init__(self, models: ModelList) -> None:
        self._names = [model.name for model in models]
        self._closed: dict[int, str] = {}
        self._held: dict[int, str] = {}

    def note(self, observed: Observed) -> None:
        self._held.pop(observed.model, None)
        if observed.standing is EndpointState.HELD:
            self._held[observed.model] = observed.reason
        elif observed.standing is EndpointState.CLOSED:
            self._closed[observed.model] = observed.reason

    def notice(self) -> str:
        """What is the matter with models now; nothing where all is well."""
        told = [f"{self._names[model]} {reason}" for model, reason in self._held.items()]
        told += [f"{self._names[model]} stopped" for model in self._closed]
        return ", ".join(dict.fromkeys(told))

    def failure(self, done: int, total: int) -> ModelUnusable | None:
        """The error of a run that ended without these models; None where all could be asked."""
        if not self._closed:
            return None
        reasons = " ".join(dict.fromkeys(self._closed.values()))
        return ModelUnusable(
            f"{reasons} {done:,} of {total:,} interviews are done and saved.",
            fix="Mend that and run again: what is missing is asked then.",
        )
