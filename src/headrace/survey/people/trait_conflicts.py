"""Puts the traits of two agents together. Covers: what becomes of a trait that both have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeAlias

from headrace.errors import ListError
from headrace.survey.values import Fields

Conflicts: TypeAlias = Literal["numeric", "error", "repeated_observation"]
_Described: TypeAlias = tuple[Mapping[str, Any], Mapping[str, str]]  # traits, and what they mean


def combined(first: _Described, second: _Described, conflicts: Conflicts) -> tuple[Fields, dict[str, str]]:
    """The traits and the codebook of both; the second's traits get other names where the first has them."""
    (traits, codebook), (more, descriptions) = (dict(first[0]), dict(first[1])), second
    new_names: dict[str, str] = {}
    for name, value in more.items():
        new_names[name] = new = _free_name(name, traits) if conflicts == "numeric" else name
        traits[new] = _joined(name, first, second, conflicts) if new in traits else value
    for name, description in descriptions.items():
        codebook[new_names.get(name, name)] = description
    return traits, codebook


def _free_name(name: str, taken: Collection[str]) -> str:
    free, number = name, 0
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def _joined(name: str, first: _Described, second: _Described, conflicts: Conflicts) -> Any:
    if conflicts != "repeated_observation":
        if conflicts != "error":
            raise ListError(
                f"{conflicts!r} is no conflict_strategy.", fix='Use "numeric", "error" or "repeated_observation".'
            )
        raise ListError(f"Both agents have the trait {name!r}.", fix="Rename or drop one of them.")
    if first[1].get(name) != second[1].get(name):
        raise ListError(f"The codebooks of the two agents say different things of {name!r}.", fix="Make them equal.")
    values = first[0][name]
    return [*values, second[0][name]] if isinstance(values, list) else [values, second[0][name]]
