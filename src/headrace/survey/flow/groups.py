"""Groups of questions: neighbours in a survey that have a name together. They change nothing about what is asked.

Covers: checking a new group, and what remains of groups when a question goes. Does not cover: drawing them
(survey.flow.drawing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from headrace.errors import SurveyError

# The names of the first and the last question of each group.
Groups: TypeAlias = Mapping[str, tuple[str, str]]


def with_group(groups: Groups, name: str, first: str, last: str, positions: Mapping[str, int]) -> Groups:
    """The groups and a new one."""
    if not name.isidentifier():
        raise SurveyError(f"A group cannot be called {name!r}.", fix="Use letters, digits and underscores.")
    if name in groups or name in positions:
        what = "group" if name in groups else "question"
        raise SurveyError(f"There is a {what} called {name!r} already.", fix="Give the group another name.")
    if positions[first] > positions[last]:
        raise SurveyError(f"Group {name!r}: {first!r} comes after {last!r}.", fix="Name the first question first.")
    for other, (from_name, to_name) in groups.items():
        if positions[first] <= positions[to_name] and positions[from_name] <= positions[last]:
            raise SurveyError(f"Group {name!r} overlaps with group {other!r}.", fix="A question is in one group only.")
    return {**groups, name: (first, last)}


def spans(groups: Groups, positions: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """The positions of the first and the last question of each group, as EDSL has them."""
    return {name: (positions[first], positions[last]) for name, (first, last) in groups.items()}


def without_member(groups: Groups, name: str, names: Sequence[str]) -> Groups:
    """The groups of a survey that loses a question; `names` are its questions with that one."""
    place = names.index(name)
    kept: dict[str, tuple[str, str]] = {}
    for group, (first, last) in groups.items():
        if first == last == name:
            continue
        kept[group] = names[place + 1] if first == name else first, names[place - 1] if last == name else last
    return kept
