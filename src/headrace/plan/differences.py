"""Says in words how a job differs from the one that a run file holds, for PlanMismatch. Pure.

Covers: questions, the other parts of a survey, conditions, models and lists.
Does not cover: whether two plans are the same (plan.identity).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from headrace.display import cell_text
from headrace.expressions import Expression
from headrace.plan.rows.row_list import RowList
from headrace.survey.model import Model
from headrace.survey.stored_survey import stored_parts
from headrace.survey.survey import Survey
from headrace.survey.values import decode_fields, decode_value

ROWS_COMPARED = 10_000  # of each list: enough to say what kind of difference it is
_LONGEST_VALUE = 40
_SAID = {"question_text": "text", "question_options": "options"}
_ABSENT = object()


def of_surveys(stored: Survey, wanted: Survey) -> Iterator[str]:
    theirs = {question.question_name: question.to_dict() for question in stored.questions}
    ours = {question.question_name: question.to_dict() for question in wanted.questions}
    yield from _only_on_one_side("question", theirs, ours)
    for name in theirs:
        if name in ours:
            yield from _settings(f"question {name!r}", theirs[name], ours[name])
    if list(theirs) != list(ours) and theirs.keys() == ours.keys():
        yield "the questions stand in another order"
    rules = [{name: rule.source for name, rule in survey.skip_rules.items()} for survey in (stored, wanted)]
    yield from _settings("skip rules", *rules)
    parts = stored_parts(stored), stored_parts(wanted)
    for part in ("rules", "memory", "instructions", "randomize", "pinned", "seed", "wording", "groups"):
        theirs_of, ours_of = (held.get(part) for held in parts)
        if theirs_of != ours_of:
            yield f"the survey's {part}: {_value(theirs_of)} in the file, {_value(ours_of)} in this job"


def of_conditions(stored: Sequence[Expression], wanted: Sequence[Expression]) -> Iterator[str]:
    for theirs, ours in zip_longest((each.source for each in stored), (each.source for each in wanted)):
        if theirs != ours:
            yield f"where: {_value(theirs)} in the file, {_value(ours)} in this job"


def of_models(stored: Sequence[Model], wanted: Sequence[Model]) -> Iterator[str]:
    if [model.name for model in stored] != [model.name for model in wanted]:
        yield f"models: {_names(stored)} in the file, {_names(wanted)} in this job"
        return
    for theirs, ours in zip(stored, wanted, strict=True):
        if theirs.identity_row() != ours.identity_row():
            yield from _settings(f"model {ours.name!r}", _parameters(theirs), _parameters(ours))


def of_lists(what: str, stored: Iterator[bytes], count: int, wanted: RowList[Any]) -> Iterator[str]:
    """How two lists differ; `stored` are the file's first ROWS_COMPARED rows, of `count`."""
    if count != len(wanted):
        yield f"{what}s: {count:,} in the file, {len(wanted):,} in this job"
    for number, (theirs, ours) in enumerate(zip_longest(stored, wanted.source.rows())):
        if theirs is None or ours is None or number == ROWS_COMPARED:
            return
        if theirs != ours:
            place = f"{what} {number + 1:,} of {count:,}" if count == len(wanted) else f"{what} {number + 1:,}"
            yield from _settings(place, decode_fields(theirs), decode_fields(ours))
            return


def _settings(what: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    for name in {**theirs, **ours}:
        held, given = theirs.get(name, _ABSENT), ours.get(name, _ABSENT)
        if held != given:
            said = _SAID.get(name, name)
            yield f"{what}: {said} {_value(held)} in the file, {_value(given)} in this job"


def _only_on_one_side(what: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    for side, other, where in ((theirs, ours, "the file"), (ours, theirs, "this job")):
        missing = [repr(name) for name in side if name not in other]
        if missing:
            shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
            yield f"{what}{'s' * (len(missing) > 1)} {shown} only in {where}"


def _value(value: Any) -> str:
    if value is _ABSENT or value is None:
        return "none"
    if isinstance(value, tuple):
        value = list(value)  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
    return cell_text(repr(value) if isinstance(value, str) else value, _LONGEST_VALUE)


def _names(models: Sequence[Model]) -> str:
    return cell_text(", ".join(model.name for model in models), _LONGEST_VALUE)


def _parameters(model: Model) -> dict[str, Any]:
    """The parameters that make it another model. A function is known by its name and a digest of its source."""
    held = decode_value(model.identity_row())
    given: dict[str, Any] = {}
    for name, value in held["parameters"].items():
        given[name] = value[0] if isinstance(value, list) else _Function(str(value["function"]))
    return {"service": held["service"], **given}


class _Function(msgspec.Struct, frozen=True):
    function: str

    def __str__(self) -> str:
        name, _, digest = self.function.partition("@")
        return f"{name} (source {digest[:6]})"
