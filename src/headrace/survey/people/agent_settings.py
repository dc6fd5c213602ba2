"""How agents' traits are written in a prompt: a codebook with what each trait means, or a template of one's own.

A list of agents holds its settings in a table, each once; the agents of most lists share one. A row names its entry by
number in the field `agent_settings`, and leaves the field out for the first entry. Does not cover: the instruction and
the rest of the system prompt (survey.prompts).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import msgspec

from headrace.errors import ListError
from headrace.survey.model import from_reference, to_reference
from headrace.survey.templates import CannotRender, Template
from headrace.survey.values import Fields, decode_value, encode_value

SETTINGS = "agent_settings"
MOST_SETTINGS = 10_000
# What a template may name beside the traits.
TRAITS, CODEBOOK = "traits", "codebook"
# The names of functions, as EDSL has them.
ANSWERS, TRAITS_OF = "answer_question_directly", "dynamic_traits_function"
UNCHECKED_ANSWERS = "answer_question_directly (not validated)"


@dataclass(frozen=True)
class AgentSettings:
    """`codebook` has a description for a trait, `template` the whole text of the traits: `I am {{ age }} years old.`

    `functions` by name are the program's own (survey.people.agent_functions): they are stored as references.
    """

    codebook: Mapping[str, str] = field(default_factory=dict[str, str])
    template: str | None = None
    functions: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def traits_text(self, traits: Fields) -> str:
        """The traits in words. CannotRender where the template names what this agent does not have."""
        if self.template is None:
            described = self.codebook.get
            return "\n".join([f"{described(name, name)}: {value}" for name, value in traits.items()])
        return self._compiled.render({**traits, TRAITS: traits, CODEBOOK: dict(self.codebook)})

    @property
    def trait_names(self) -> frozenset[str]:
        """The traits that the template names."""
        names = frozenset[str]() if self.template is None else self._compiled.names
        return frozenset(name.removeprefix(f"{TRAITS}.").partition(".")[0] for name in names) - {TRAITS, CODEBOOK}

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells two settings apart."""
        # Two functions may have one reference and have captured different values.
        functions = tuple((name, id(function)) for name, function in self.functions.items())
        return self.template, tuple(self.codebook.items()), functions

    @property
    def answers_itself(self) -> bool:
        """Whether a function answers in the model's place."""
        return ANSWERS in self.functions or UNCHECKED_ANSWERS in self.functions

    @cached_property
    def _compiled(self) -> Template:
        return Template(self.template or "", "The agents' traits_presentation_template")

    def to_dict(self) -> dict[str, Any]:
        held: dict[str, Any] = {"codebook": dict(self.codebook)} if self.codebook else {}
        if self.template is not None:
            held["template"] = self.template
        if self.functions:
            held["functions"] = {name: to_reference(function) for name, function in sorted(self.functions.items())}
        return held


PLAIN = AgentSettings()
_Entries = Annotated[list[AgentSettings], msgspec.Meta(max_length=MOST_SETTINGS)]


class SettingsTable:
    """The settings of a list's agents. Entries are never changed or removed, so a number means the same for good."""

    def __init__(self, entries: Iterable[AgentSettings] = ()) -> None:
        self._entries: list[AgentSettings] = list(entries)  # at most MOST_SETTINGS
        self._numbers = {entry.key: number for number, entry in enumerate(self._entries)}
        self._latest: tuple[AgentSettings, int] | None = None

    def number(self, settings: AgentSettings) -> int:
        """The number of these settings; a new one where no agent before had them."""
        if self._latest is not None and settings is self._latest[0]:
            return self._latest[1]
        number = self._numbers.setdefault(settings.key, len(self._entries))
        if number == len(self._entries):
            if number >= MOST_SETTINGS:
                raise ListError(
                    f"The agents have more than {MOST_SETTINGS:,} different codebooks and templates.",
                    fix="Put what differs into a trait, and name it in one template.",
                )
            self._entries.append(settings)
        self._latest = settings, number
        return number

    def of(self, fields: Fields) -> AgentSettings:
        """The settings of an agent, given its row."""
        if not self._entries:
            return PLAIN
        number = fields.get(SETTINGS, 0)
        if type(number) is not int or not 0 <= number < len(self._entries):  # a file that somebody else wrote
            raise CannotRender(f"the list has no settings {number!r}")
        return self._entries[number]

    @property
    def entries(self) -> tuple[AgentSettings, ...]:
        return tuple(self._entries)

    @property
    def is_plain(self) -> bool:
        """Whether no agent has a codebook, a template or a function."""
        return all(entry == PLAIN for entry in self._entries)

    @property
    def answers_everything(self) -> bool:
        """Whether functions answer for all agents, so that no model is called."""
        return bool(self._entries) and all(entry.answers_itself for entry in self._entries)

    @property
    def chooses_traits(self) -> bool:
        """Whether a function chooses an agent's traits, so that they are not known before a question is asked."""
        return any(TRAITS_OF in entry.functions for entry in self._entries)

    def begins_with(self, other: SettingsTable) -> bool:
        """Whether rows that refer to the other table mean the same with this one."""
        ours, theirs = ([entry.to_dict() for entry in table._entries] for table in (self, other))
        return ours[: len(theirs)] == theirs or (other.is_plain and self.of({}) == PLAIN)

    def to_row(self) -> bytes:
        """The table as stored; empty where it says nothing."""
        return b"" if self.is_plain else encode_value([entry.to_dict() for entry in self._entries])

    @classmethod
    def from_row(cls, row: bytes | str, functions: Sequence[Mapping[str, Any]] = ()) -> SettingsTable:
        """The reverse of `to_row`, for a row that may come from anywhere; what does not fit is a ValidationError.

        `functions` are those of each entry, where a program gives them.
        """
        entries: list[AgentSettings] = msgspec.convert(decode_value(row), _Entries) if row else []
        given = dict(enumerate(functions))
        return cls(_with_functions(entry, given.get(number, {})) for number, entry in enumerate(entries))


def _with_functions(stored: AgentSettings, functions: Mapping[str, Any]) -> AgentSettings:
    if not stored.functions:
        return stored
    found = {name: from_reference(held, functions.get(name)) for name, held in stored.functions.items()}
    return replace(stored, functions=found)


def checked_function(name: str, function: Any, counts: tuple[int, ...]) -> Any:
    """The function, or an error where it cannot be called with as many arguments as it is given."""
    if not callable(function):
        raise ListError(f"{name}: {function!r} is not a function.", fix="Give the function itself.")
    try:
        found = len(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # of some built in functions
        return function
    if found not in counts:
        wanted = "(agent, question, scenario)" if name == ANSWERS else "(question)"
        raise ListError(f"{name}: the function takes {found} arguments.", fix=f"It is called with {wanted}.")
    return function
