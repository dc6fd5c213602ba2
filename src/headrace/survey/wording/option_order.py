"""The order in which options are shown where a survey randomizes them, and the items of a matrix that does.

It follows from the survey's seed, the interview's ordinal and the question's name alone, so that an interview that goes
on after a crash, or is asked again, shows the same order. Does not depend on Python's own random numbers, which may
differ between its versions.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from headrace.errors import SurveyError

if TYPE_CHECKING:
    from headrace.survey.questions import Question

_OPTIONS, _ITEMS = "question_options", "question_items"


@dataclasses.dataclass(frozen=True, slots=True)
class Randomizing:
    """Which questions of a survey show their options in random order, and which options keep their place."""

    questions: tuple[str, ...] = ()
    pinned: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict[str, Sequence[Any]])
    seed: int = 0

    def check(self, questions: Mapping[str, Question]) -> None:
        """Refuse a question that has no options, or whose pinned ones are not among them."""
        for name in self.questions:
            if not hasattr(questions[name], _OPTIONS):
                raise SurveyError(f"Question {name!r} has no options to randomize.", fix="Leave it out.")
        for name, options in self.pinned.items():
            if name not in self.questions:
                raise SurveyError(
                    f"options_to_pin names {name!r}, whose options are not randomized.",
                    fix="Name it in questions_to_randomize too, or leave it out here.",
                )
            shown = getattr(questions[name], _OPTIONS)
            if not isinstance(shown, str) and (unknown := [each for each in options if each not in shown]):
                raise SurveyError(
                    f"options_to_pin has {unknown[0]!r}, which is no option of {name!r}.",
                    fix=f"Pin some of {list(shown)}.",
                )

    def without(self, name: str) -> Randomizing:
        """The same for a survey that loses a question."""
        pinned = {asked: options for asked, options in self.pinned.items() if asked != name}
        return Randomizing(tuple(asked for asked in self.questions if asked != name), pinned, self.seed)


def orders_of(question: Question, randomizing: Randomizing) -> Iterator[OptionOrder]:
    """What is shown in random order in one question: its options, its items, both or nothing."""
    name = question.question_name
    if name in randomizing.questions:
        yield OptionOrder(name, randomizing.seed, randomizing.pinned.get(name, ()), _OPTIONS)
    if question.pinned_items is not None:
        yield OptionOrder(f"{name}.{_ITEMS}", randomizing.seed, question.pinned_items, _ITEMS)


class OptionOrder:
    """Shuffles one setting of a question, but for what is pinned. `name` tells its order from that of others."""

    def __init__(self, name: str, seed: int, pinned: Sequence[Any], setting: str) -> None:
        self._name = name
        self._seed = seed
        self._pinned = tuple(pinned)
        self._setting = setting

    def applied(self, question: Question, ordinal: int) -> Question:
        """The question as this interview sees it."""
        options = cast("tuple[Any, ...]", getattr(question, self._setting))
        places = [place for place, option in enumerate(options) if option not in self._pinned]
        order = shuffled(len(places), self._seed, ordinal, self._name)
        shown = list(options)
        for place, chosen in zip(places, order, strict=True):
            shown[place] = options[places[chosen]]
        return dataclasses.replace(question, **{self._setting: shown})


def shuffled(count: int, seed: int, ordinal: int, name: str) -> tuple[int, ...]:
    """The numbers below `count` in an order that these three decide."""
    digest = hashlib.shake_256(f"{seed}|{ordinal}|{name}".encode()).digest(8 + 2 * count)
    chance, order = int.from_bytes(digest, "big"), list(range(count))
    for last in range(count - 1, 0, -1):
        chance, chosen = divmod(chance, last + 1)
        order[last], order[chosen] = order[chosen], order[last]
    return tuple(order)
