"""A scenario is what a question is about: a dict of fields. Does not cover: lists of scenarios (plan.lists)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from headrace.errors import ListError
from headrace.missing_names import way_here
from headrace.stand_ins import HostedVerbs
from headrace.survey.files.file_store import FileStore
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
from headrace.survey.values import Fields

if TYPE_CHECKING:
    from headrace.plan.lists import ScenarioList


class Scenario(HostedVerbs, dict[str, Any]):
    """`Scenario({"city": "Oslo"})` or `Scenario(city="Oslo")`. Its values are data, never templates.

    Its fields are attributes too, `scenario.city`, where no method of a dict has that name.
    """

    def __init__(self, data: Mapping[str, Any] | None = None, **fields: Any) -> None:
        try:
            super().__init__(data or {}, **fields)
        except (TypeError, ValueError):
            raise ListError(
                f"A scenario cannot be made of {data!r}.", fix='Give a dict, like {"city": "Oslo"}.'
            ) from None

    @classmethod
    def example(cls, randomize: bool = False) -> Self:
        """A scenario to try things out with; `randomize` gives it a value that no other has."""
        persona = "A teacher who likes to sail."
        return cls({"persona": random_end(persona) if randomize else persona})

    @classmethod
    def from_file(cls, file_path: str | Path, field_name: str = "file") -> Self:
        """A scenario whose field is a picture or document: `Scenario.from_file("cat.png", field_name="photo")`."""
        return cls({field_name: FileStore(file_path)})

    def to_fields(self) -> Fields:
        return self

    @classmethod
    def from_fields(cls, fields: Fields) -> Self:
        return cls(fields)

    def rename(self, old_name_or_replacement_dict: str | Mapping[str, str], new_name: str | None = None) -> Self:
        """This scenario with fields renamed: `rename("a", "b")` or `rename({"a": "b"})`."""
        renames = given_renames(old_name_or_replacement_dict, new_name)
        check_known(renames, self, "The scenario has no")
        check_distinct(self, renames, "The scenario")
        return type(self)(renamed(self, renames))

    def keep(self, *field_names: str | list[str]) -> Self:
        """A scenario with these fields alone."""
        names = given_names(field_names)
        check_known(names, self, "The scenario has no")
        return type(self)(kept(self, names))

    def select(self, *field_names: str | list[str]) -> Self:
        """`keep`, under its other name."""
        return self.keep(*field_names)

    def drop(self, *field_names: str | list[str]) -> Self:
        """This scenario without these fields."""
        names = given_names(field_names)
        check_known(names, self, "The scenario has no")
        return type(self)(dropped(self, names))

    def copy(self) -> Self:
        """A copy of its own, lists and dicts in it included."""
        return copy.deepcopy(self)

    duplicate = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(copy.deepcopy(dict(self), memo))

    def __add__(self, other: Mapping[str, Any] | None) -> Self:
        """Both scenarios in one; where both have a field, the second's value counts."""
        return type(self)({**self, **(other or {})})

    def __mul__(self, other: Any) -> ScenarioList:
        from headrace.plan.lists import ScenarioList

        return ScenarioList([self]) * other if isinstance(other, Scenario) else other * self

    def replicate(self, n: int) -> ScenarioList:
        """A list of `n` copies."""
        from headrace.plan.lists import ScenarioList

        return ScenarioList(self for _ in range(n))

    def chunk(
        self,
        field: str,
        num_words: int | None = None,
        num_lines: int | None = None,
        include_original: bool = False,
        hash_original: bool = False,
    ) -> ScenarioList:
        """A list with a scenario for each part of a text; parameters as those of `ScenarioList.chunk`."""
        return self.to_scenario_list().chunk(field, num_words, num_lines, include_original, hash_original)

    def to_scenario_list(self) -> ScenarioList:
        """A list of this one scenario."""
        return self.replicate(1)

    def to(self, survey: Any) -> Any:
        """A job about this scenario: `scenario.to(survey)` is `survey.by(scenario)`."""
        return survey.by(self)

    def to_dict(self, *, add_edsl_version: bool = False) -> dict[str, Any]:
        """The fields as a plain dict; `add_edsl_version` as EDSL reads it."""
        return {**self, "edsl_version": "1.0.9", "edsl_class_name": "Scenario"} if add_edsl_version else dict(self)

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """The reverse of `to_dict`."""
        return cls({name: value for name, value in d.items() if name not in ("edsl_version", "edsl_class_name")})

    @classmethod
    def from_edsl(cls, given: Any, *, files: str | Path | None = None) -> Self:
        """The scenario that EDSL holds: an object, a dict, JSON text or a file; see `ScenarioList.from_edsl`."""
        from headrace.edsl_files.from_edsl import from_edsl

        return from_edsl(cls, given, files=files)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and name in self:
            return self[name]
        if not name.startswith("_") and (way := way_here(type(self), name)):
            raise AttributeError(f"Scenario.{name} is not there in Headrace. {way}")
        raise AttributeError(f"The scenario has neither a field nor an attribute {name!r}.")

    def __repr__(self) -> str:
        return f"Scenario({super().__repr__()})"
