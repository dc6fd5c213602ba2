"""The words around a survey's questions, where a survey brings its own."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from headrace.errors import SurveyError


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """`persona` opens the system prompt of agents without an instruction of their own; `before_memory` and
    `after_memory` stand around the earlier questions that a prompt repeats.
    """

    persona: str = "Answer the questions of a survey as the person described here would. Stay in character."
    before_memory: str = "Earlier in this survey you were asked, and you answered:"
    after_memory: str = "Now answer this one."

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, str):
                raise SurveyError(f"{name}={value!r} is no text.", fix="Give a text; an empty one says nothing.")

    def changed(self) -> dict[str, Any]:
        """What differs from our own words: what is stored."""
        return {name: value for name, value in asdict(self).items() if value != getattr(OURS, name)}


OURS = Wording()
