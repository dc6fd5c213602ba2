"""Instructions of a survey: what is told before the questions that follow, until a later one takes it back.

    Survey([Instruction(name="brief", text="Be brief."), q1, ChangeInstruction(drop=["brief"]), q2])

A text may hold templates, like a question's. Does not cover: an agent's own instruction (survey.agent).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from headrace.errors import SurveyError

_PREAMBLE = "Instructions for what follows:"


@dataclass(frozen=True)
class Instruction:
    """A text that stands in the prompt of every question behind it, below `preamble`."""

    name: str
    text: str
    preamble: str = _PREAMBLE

    def __post_init__(self) -> None:
        for setting, value in (("name", self.name), ("text", self.text), ("preamble", self.preamble)):
            if not isinstance(value, str) or (not value.strip() and setting != "preamble"):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise SurveyError(f"An instruction has {value!r} for its {setting}.", fix="Give a text.")

    @classmethod
    def example(cls) -> Instruction:
        return cls(name="example", text="This is an example of an instruction.")

    def to_dict(self) -> dict[str, Any]:
        told = {"name": self.name, "text": self.text}
        return told if self.preamble == _PREAMBLE else {**told, "preamble": self.preamble}


@dataclass(frozen=True)
class ChangeInstruction:
    """From here on, the instructions named in `drop` are not told any more, unless one is named in `keep`."""

    keep: Sequence[str] = ()
    drop: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", tuple(self.keep or ()))
        object.__setattr__(self, "drop", tuple(self.drop or ()))
        if not self.keep and not self.drop:
            raise SurveyError("A ChangeInstruction changes nothing.", fix="Name some instructions in drop or keep.")

    def to_dict(self) -> dict[str, Any]:
        return {"keep": list(self.keep), "drop": list(self.drop)}


# What a survey tells, each with the number of questions that stand before it.
Instructions: TypeAlias = tuple[tuple[int, Instruction | ChangeInstruction], ...]


def told_at(instructions: Instructions, position: int) -> list[Instruction]:
    """The instructions that the question at this position is asked with, in the order of the survey."""
    before = [given for place, given in instructions if place <= position]
    changes = [given for given in before if isinstance(given, ChangeInstruction)]
    keep, drop = {name for each in changes for name in each.keep}, {name for each in changes for name in each.drop}
    told = [given for given in before if isinstance(given, Instruction)]
    return [given for given in told if given.name in keep or given.name not in drop]


def moved(instructions: Instructions, place: int, by: int) -> Instructions:
    """The same where a question was added at `place` (by 1) or removed from it (by -1)."""
    return tuple((before + by if before > place else before, given) for before, given in instructions)


def in_words(told: Iterable[Instruction]) -> str:
    """The template that stands before the question's own text; empty where nothing is told."""
    return "".join(f"{given.preamble}\n{given.text}\n\n" if given.preamble else f"{given.text}\n\n" for given in told)


def check_instructions(instructions: Instructions) -> None:
    """Refuse two instructions of one name, and a change that names none of those before it."""
    known: set[str] = set()
    for _, given in instructions:
        if isinstance(given, ChangeInstruction):
            for name in (*given.keep, *given.drop):
                if name not in known:
                    raise SurveyError(f"There is no instruction {name!r} before the change.", fix="Add it before.")
        elif given.name in known:
            raise SurveyError(f"Two instructions are called {given.name!r}.", fix="Rename one.")
        else:
            known.add(given.name)


def to_rows(instructions: Instructions) -> list[Any]:
    return [[place, given.to_dict()] for place, given in instructions]


def from_rows(rows: Any) -> Instructions:
    """The reverse of `to_rows`, for what a run file holds."""
    made: list[tuple[int, Instruction | ChangeInstruction]] = []
    for place, held in cast("list[Any]", rows):
        settings = cast("dict[str, Any]", held)
        made.append((int(place), (Instruction if "name" in settings else ChangeInstruction)(**settings)))
    return tuple(made)
