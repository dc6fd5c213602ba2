"""An agent answers a survey. Covers: its traits and its one-row form. Does not cover: lists of agents (plan.lists)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import ListError
from headrace.survey.values import Fields, encode_fields

NAME, INSTRUCTION = "agent_name", "agent_instruction"


class Agent:
    """A respondent: `Agent(name="ada", traits={"age": 36})`. Its traits are data, never templates."""

    __slots__ = ("instruction", "name", "traits")

    def __init__(
        self,
        traits: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        instruction: str | None = None,
    ) -> None:
        if traits is not None and not isinstance(traits, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ListError(f"An agent's traits are {traits!r}.", fix='Give a dict, like {"age": 36}.')
        self.traits: Fields = dict(traits) if traits else {}
        self.name = name
        self.instruction = instruction
        if NAME in self.traits or INSTRUCTION in self.traits:
            raise ListError(f"{NAME!r} and {INSTRUCTION!r} cannot be traits.", fix="Use name= and instruction=.")

    def to_fields(self) -> Fields:
        """This agent as one row: its traits, and its name and instruction where it has them."""
        fields = self.traits
        if self.name is not None:
            fields = {NAME: self.name, **fields}
        if self.instruction is not None:
            fields = {INSTRUCTION: self.instruction, **fields}
        return fields

    @classmethod
    def from_fields(cls, fields: Fields) -> Agent:
        traits = dict(fields)
        name, instruction = traits.pop(NAME, None), traits.pop(INSTRUCTION, None)
        return cls(traits, name=name, instruction=instruction)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Agent) and self.to_fields() == other.to_fields()

    def __hash__(self) -> int:
        return hash(encode_fields(self.to_fields())[0])

    def __repr__(self) -> str:
        return f"Agent(name={self.name!r}, traits={self.traits!r})"
