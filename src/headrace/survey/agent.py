"""An agent answers a survey. Covers: its traits, what they mean, and its one-row form.

Does not cover: lists of agents (plan.lists), or the system prompt (survey.prompts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any, Self, cast

from headrace.edsl_names import warn_once
from headrace.errors import ListError, nearest
from headrace.missing_names import way_here
from headrace.stand_ins import HostedVerbs
from headrace.survey.people.agent_settings import (
    ANSWERS,
    PLAIN,
    SETTINGS,
    TRAITS_OF,
    UNCHECKED_ANSWERS,
    AgentSettings,
    checked_function,
)
from headrace.survey.people.field_verbs import (
    check_distinct,
    check_known,
    dropped,
    given_names,
    given_renames,
    kept,
    random_end,
    renamed,
)
from headrace.survey.people.misspelt_names import refuse_misspelt, warn_of_misspelt
from headrace.survey.people.trait_conflicts import Conflicts, combined
from headrace.survey.templates import Template
from headrace.survey.values import Fields, encode_value

NAME, INSTRUCTION = "agent_name", "agent_instruction"
_RESERVED = frozenset({NAME, INSTRUCTION, SETTINGS})
# What `keep` and `drop` know beside the traits.
AGENT_PARTS = ("name", "instruction", "codebook", "traits_presentation_template")
# EDSL's other arguments, which would otherwise be taken for traits.
_NOT_HERE = {
    "trait_categories": "Keep the traits of a category with keep().",
    "dynamic_traits_function_source_code": "Code is not read out of data: give the function itself.",
    "dynamic_traits_function_name": "Give the function itself.",
    "answer_question_directly_source_code": "Code is not read out of data: give the function itself.",
    "answer_question_directly_function_name": "Give the function itself.",
}


def unnamed(place: int) -> str:
    """What an agent without a name is called, by its place in the list: in results, texts and rules."""
    return f"Agent_{place}"


class Agent(HostedVerbs):
    """A respondent: `Agent(name="ada", traits={"age": 36})` or `Agent(name="ada", age=36)`.

    Its traits are data, never templates. They are attributes too, `agent.age`, where no method has that name.
    `codebook` says what a trait means, `{"age": "Age in years"}`; `traits_presentation_template` is a text for all of
    them, `I am {{ age }} years old.`; `instruction` says how to answer. `dynamic_traits_function` of a question returns
    the traits that the agent has for it (survey.people.agent_functions).
    """

    __slots__ = ("codebook", "functions", "instruction", "name", "traits", "traits_presentation_template")

    def __init__(
        self,
        traits: Mapping[str, Any] | None = None,
        name: str | int | None = None,
        codebook: Mapping[str, str] | None = None,
        instruction: str | None = None,
        *,
        traits_presentation_template: str | None = None,
        dynamic_traits_function: Callable[..., Any] | None = None,
        **more_traits: Any,
    ) -> None:
        self.traits = _checked_traits(traits, more_traits)
        self.name = name if name is None or type(name) is int else str(name)
        self.instruction = instruction
        self.codebook = _checked_codebook(codebook)
        if self.codebook and not self.codebook.keys() <= self.traits.keys():
            warn_of_misspelt(self.codebook, self.traits)
        self.traits_presentation_template = traits_presentation_template
        self.functions: dict[str, Callable[..., Any]] = {}
        if dynamic_traits_function is not None:
            self.dynamic_traits_function = dynamic_traits_function
        if traits_presentation_template is not None:
            Template(traits_presentation_template, "An agent's traits_presentation_template")

    @classmethod
    def example(cls, randomize: bool = False) -> Self:
        """An agent to try things out with; `randomize` gives it a trait that no other has."""
        return cls({"age": 22, "hair": random_end("brown") if randomize else "brown", "height": 5.5})

    @property
    def settings(self) -> AgentSettings:
        """What its list stores once for all agents that have the same."""
        if not self.codebook and self.traits_presentation_template is None and not self.functions:
            return PLAIN
        return AgentSettings(self.codebook, self.traits_presentation_template, self.functions)

    def to_fields(self) -> Fields:
        """This agent as one row: its traits, and its name and instruction where it has them."""
        fields = self.traits
        if self.name is not None:
            fields = {NAME: self.name, **fields}
        if self.instruction is not None:
            fields = {INSTRUCTION: self.instruction, **fields}
        return fields

    @classmethod
    def from_fields(cls, fields: Fields, settings: AgentSettings = PLAIN) -> Self:
        traits = dict(fields)
        name, instruction = traits.pop(NAME, None), traits.pop(INSTRUCTION, None)
        traits.pop(SETTINGS, None)
        made = cls(traits, name, None, instruction)
        if settings is not PLAIN:
            made.codebook, made.traits_presentation_template = dict(settings.codebook), settings.template
            made.functions = dict(settings.functions)
        return made

    def prompt(self) -> str:
        """What a model is told of this agent, in the system prompt."""
        from headrace.survey.prompts import persona  # which knows agents

        return persona(self.to_fields(), self.settings)

    def has(self, name: str) -> bool:
        """Whether it has this trait, or this of its other parts: a name, an instruction, a codebook, a template."""
        return name in self.traits or name in self._parts()

    def add_trait(self, trait_name_or_dict: str | Mapping[str, Any], value: Any = None) -> Self:
        """This agent with one trait more, `add_trait("age", 36)`, or several, `add_trait({"age": 36})`."""
        if isinstance(trait_name_or_dict, str):
            return self._changed(traits={**self.traits, trait_name_or_dict: value})
        if value is not None:
            raise ListError(
                "add_trait was given a dict and a value.", fix='Write add_trait("age", 36), or give a dict.'
            )
        return self._changed(traits={**self.traits, **trait_name_or_dict})

    @property
    def dynamic_traits_function(self) -> Callable[..., Any] | None:
        """The function that chooses its traits for each question; None for an agent whose traits are fixed."""
        return self.functions.get(TRAITS_OF)

    @dynamic_traits_function.setter
    def dynamic_traits_function(self, function: Callable[..., Any] | None) -> None:
        self.functions.pop(TRAITS_OF, None)
        if function is not None:
            self.functions[TRAITS_OF] = checked_function(TRAITS_OF, function, (0, 1))

    def add_direct_question_answering_method(
        self,
        method: Callable[[Agent, Any, Any], Any],
        validate_response: bool = True,
        translate_response: bool = False,
    ) -> Self:
        """Have `method(agent, question, scenario)` answer every question in place of a model.

        Its answers are validated like any other; with `validate_response=False` they are stored as they are. Changes
        this agent, as EDSL does, and returns it.
        """
        if translate_response:
            warn_once(
                "translate_response= has no effect in Headrace: a method's answer is an answer, not a code for one."
            )
        self.remove_direct_question_answering_method()
        self.functions[ANSWERS if validate_response else UNCHECKED_ANSWERS] = checked_function(ANSWERS, method, (3,))
        return self

    def remove_direct_question_answering_method(self) -> None:
        """Have the model answer again."""
        for name in (ANSWERS, UNCHECKED_ANSWERS):
            self.functions.pop(name, None)

    def remove_trait(self, trait: str) -> Self:
        """This agent without a trait; the same where it has no such trait."""
        return self._changed(traits=dropped(self.traits, [trait]), codebook=dropped(self.codebook, [trait]))

    def update_trait(self, trait_name: str, value: Any) -> Self:
        """This agent with another value of a trait that it has."""
        check_known([trait_name], self.traits, "The agent has no")
        return self.add_trait(trait_name, value)

    def translate_traits(self, values_codebook: Mapping[str, Mapping[Any, Any]]) -> Self:
        """This agent with values replaced: `{"hair": {1: "brown"}}`; a value without a replacement stays."""
        translated = {
            name: _replaced(value, values_codebook[name]) if name in values_codebook else value
            for name, value in self.traits.items()
        }
        return self._changed(traits=translated)

    def rename(self, old_name_or_dict: str | Mapping[str, str], new_name: str | None = None) -> Self:
        """This agent with traits renamed, in its codebook too."""
        renames = given_renames(old_name_or_dict, new_name)
        check_known(renames, self.traits, "The agent has no")
        check_distinct(self.traits, renames, "The agent")
        return self._changed(traits=renamed(self.traits, renames), codebook=renamed(self.codebook, renames))

    def keep(self, *field_names: str | list[str]) -> Self:
        """An agent with these traits alone. Its name and instruction are kept where they are named: `keep("name")`."""
        names = given_names(field_names)
        check_known(names, [*self.traits, *self._parts()], "The agent has no")
        traits = [name for name in names if name in self.traits]
        parts = {part: getattr(self, part) for part in self._parts() if part in names}
        parts.setdefault("codebook", kept(self.codebook, traits))
        made = type(self)(kept(self.traits, traits), **parts)
        made.functions = dict(self.functions)
        return made

    def select(self, *traits: str) -> Self:
        """`keep`, under its other name."""
        return self.keep(*traits)

    def drop(self, *field_names: str | list[str]) -> Self:
        """This agent without these traits, or without its name, instruction, codebook or template."""
        names = given_names(field_names)
        check_known(names, [*self.traits, *self._parts()], "The agent has no")
        parts: dict[str, Any] = {part: None for part in AGENT_PARTS if part in names and part not in self.traits}
        parts.setdefault("codebook", dropped(self.codebook, names))
        return self._changed(traits=dropped(self.traits, names), **parts)

    def add(self, other_agent: Agent | None = None, *, conflict_strategy: Conflicts = "numeric") -> Self:
        """Both agents in one. What to do where both have a trait: "numeric" calls the other one's `age_1`, "error"
        raises, "repeated_observation" makes a list of both values.
        """
        if other_agent is None:
            return self
        mine, other = (self.traits, self.codebook), (other_agent.traits, other_agent.codebook)
        traits, codebook = combined(mine, other, conflict_strategy)
        template = self.traits_presentation_template
        return self._changed(
            traits=traits,
            codebook=codebook,
            name=self.name if self.name is not None else other_agent.name,
            traits_presentation_template=other_agent.traits_presentation_template if template is None else template,
        )

    def __add__(self, other: Agent | None) -> Self:
        return self.add(other)

    def to(self, survey: Any) -> Any:
        """A job that asks this agent: `agent.to(survey)` is `survey.by(agent)`."""
        return survey.by(self)

    def duplicate(self) -> Self:
        """A copy of its own."""
        return self._changed()

    copy = duplicate

    def to_dict(self, *, add_edsl_version: bool = False, full_dict: bool = False) -> dict[str, Any]:
        """The agent as JSON values; `full_dict` with the parts that it does not have, `add_edsl_version` as EDSL reads
        it.
        """
        held = {part: getattr(self, part) for part in AGENT_PARTS}
        parts = {part: value for part, value in held.items() if full_dict or value not in (None, {})}
        written = {"traits": dict(self.traits), **parts}
        return {**written, "edsl_version": "1.0.9", "edsl_class_name": "Agent"} if add_edsl_version else written

    @classmethod
    def from_dict(cls, agent_dict: Mapping[str, Any]) -> Self:
        """The reverse of `to_dict`."""
        given = {name: value for name, value in agent_dict.items() if not name.startswith("edsl_")}
        for name in given:
            if name not in ("traits", *AGENT_PARTS):
                raise ListError(f"An agent has no {name!r}.", fix=nearest(name, ("traits", *AGENT_PARTS)))
        return cls(**given)

    @classmethod
    def from_edsl(cls, given: Any) -> Self:
        """The agent that EDSL holds: an object, a dict, JSON text or a file; see `Survey.from_edsl`."""
        from headrace.edsl_files.from_edsl import from_edsl

        return from_edsl(cls, given)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and name not in Agent.__slots__:
            if name in self.traits:
                return self.traits[name]
            if name == ANSWERS and self.settings.answers_itself:
                return MethodType(self.functions.get(ANSWERS) or self.functions[UNCHECKED_ANSWERS], self)
        if not name.startswith("_") and (way := way_here(type(self), name)):
            raise AttributeError(f"Agent.{name} is not there in Headrace. {way}")
        raise AttributeError(f"The agent has neither a trait nor an attribute {name!r}.")

    def __getitem__(self, name: str) -> Any:
        return self.traits[name] if name in self.traits else getattr(self, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Agent):
            return False
        return self.functions == other.functions and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(encode_value(self.to_dict()))

    def __repr__(self) -> str:
        more = "".join(f", {part}={value!r}" for part, value in self._parts().items() if part != "name")
        return f"Agent(name={self.name!r}, traits={self.traits!r}{more})"

    def _parts(self) -> dict[str, Any]:
        return {part: value for part in AGENT_PARTS if (value := getattr(self, part)) not in (None, {})}

    def _changed(self, **parts: Any) -> Self:
        held: dict[str, Any] = {"traits": self.traits, **{part: getattr(self, part) for part in AGENT_PARTS}}
        made = type(self)(**{**held, **parts})
        made.functions = dict(self.functions)
        return made


def _checked_traits(traits: Any, more: dict[str, Any]) -> Fields:
    if traits is not None and not isinstance(traits, Mapping):
        raise ListError(f"An agent's traits are {traits!r}.", fix='Give a dict, like {"age": 36}.')
    for name in more:
        if name in _NOT_HERE:
            raise ListError(f"An agent takes no {name}.", fix=_NOT_HERE[name])
        refuse_misspelt(name, ("traits", *AGENT_PARTS, TRAITS_OF), is_alone=traits is None)
    checked: Fields = {**(traits or {}), **more}
    if not _RESERVED.isdisjoint(checked):
        raise ListError(
            f"{NAME!r}, {INSTRUCTION!r} and {SETTINGS!r} cannot be traits.", fix="Use name= and instruction=."
        )
    return checked


def _checked_codebook(codebook: Any) -> dict[str, str]:
    if codebook is None:
        return {}
    if isinstance(codebook, Mapping):
        held: dict[Any, Any] = dict(cast("Mapping[Any, Any]", codebook))
        if all(isinstance(each, str) for pair in held.items() for each in pair):
            return held
    raise ListError(f"The codebook is {codebook!r}.", fix='Give a dict of texts, like {"age": "Age in years"}.')


def _replaced(value: Any, replacements: Mapping[Any, Any]) -> Any:
    try:
        return replacements.get(value, value)
    except TypeError:  # a list or a dict, which no replacement stands for
        return value
