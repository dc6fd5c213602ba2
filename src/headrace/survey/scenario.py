"""A scenario is what a question is about: a dict of fields. Does not cover: lists of scenarios (plan.lists)."""

from __future__ import annotations

from typing import Any

from headrace.stand_ins import HostedVerbs
from headrace.survey.values import Fields


class Scenario(HostedVerbs, dict[str, Any]):
    """`Scenario({"city": "Oslo"})`. Its values are data, never templates."""

    def to_fields(self) -> Fields:
        return self

    @classmethod
    def from_fields(cls, fields: Fields) -> Scenario:
        return cls(fields)

    def __repr__(self) -> str:
        return f"Scenario({super().__repr__()})"
