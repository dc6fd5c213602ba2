"""Instructions of a survey: each stands in the prompts of the questions behind it, until a later change drops it.

    Survey([Instruction(name="brief", text="Be brief."), q1, ChangeInstruction(drop=["brief"]), q2])

A text may hold templates, like a question's. Does not cover: an agent's own instruction (survey.agent).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from headrace.errors import SurveyError, nearest

if TYPE_CHECKING:
    from headrace.survey.questions import Question

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
    """From here on, prompts leave out the instructions named in `drop`, unless they are named in `keep`."""

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


def to_dicts(instructions: Instructions, questions: Sequence[str]) -> list[dict[str, Any]]:
    """The instructions as stored: each names the question that it stands after; the first ones stand after none."""
    return [given.to_dict() | ({"after": questions[place - 1]} if place else {}) for place, given in instructions]


def interleaved(
    questions: Sequence[Question], stored: Iterable[Any]
) -> list[Question | Instruction | ChangeInstruction]:
    """The questions with the stored instructions at their places, as a survey is made of them."""
    after: dict[str | None, list[Instruction | ChangeInstruction]] = {}
    for held in stored:
        place, given = _from_dict(held)
        after.setdefault(place, []).append(given)
    told: list[Question | Instruction | ChangeInstruction] = [*after.pop(None, ())]
    for question in questions:
        told += [question, *after.pop(question.question_name, ())]
    if after:
        raise SurveyError(f"There is no question {next(iter(after))!r}.", fix="Name one that the instruction follows.")
    return told


def _from_dict(held: Any) -> tuple[str | None, Instruction | ChangeInstruction]:
    if not isinstance(held, dict):
        raise SurveyError(f"{held!r} is no instruction.", fix="Give it a name and a text.")
    settings = dict(cast("dict[str, Any]", held))
    place = settings.pop("after", None)
    kind = ChangeInstruction if settings.keys() & {"drop", "keep"} else Instruction
    known = [field.name for field in fields(kind)]
    for name in settings:
        if name not in known:
            raise SurveyError(f"An instruction has no setting {name!r}.", fix=nearest(str(name), [*known, "after"]))
    if kind is Instruction and not {"name", "text"} <= settings.keys():
        raise SurveyError("An instruction lacks its name or its text.", fix="Give it both.")
    return None if place is None else str(place), kind(**settings)
