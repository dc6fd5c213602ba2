"""The columns of results, by name: `answer.mood`, `agent.age`. Covers: which there are, and the kinds of their values.

Does not cover: finding names and expanding patterns (catalog), or a column's values in a row (records) or in SQL
(conditions).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import apsw
import msgspec

from headrace.expressions import ColumnKind, Expression
from headrace.results.columns.question_parts import FAILED_PART, PART_GROUPS, QuestionPart
from headrace.store.contents import decoding
from headrace.store.run_file.column_kinds import answer_kinds, field_kinds
from headrace.store.run_file.header import RunHeader
from headrace.survey.agent import NAME
from headrace.survey.model import MissingFunction, Model
from headrace.survey.values import kind_of


class Group(Enum):
    """What a column's value comes from; but for the last four it is the part of its name before the dot."""

    ANSWER = "answer"
    AGENT = "agent"
    SCENARIO = "scenario"
    MODEL = "model"
    ITERATION = "iteration"
    INTERVIEW = "interview"
    INDEX = "index"  # a row's place in its list: `agent.agent_index`
    PART = "part"  # a QuestionPart, whose own group is in the name
    ABSENT = "absent"  # a column of another file, which this one lacks; its name is the full one
    SHUFFLED = "shuffled"  # a number drawn from a seed and the ordinal; it only sorts


class ResultColumn(msgspec.Struct, frozen=True):
    """One column. `position` is the question's, for answers and parts.

    `computed` is what `mutate` was given, `label` the name that `rename` gave.
    """

    group: Group
    name: str
    position: int = -1
    part: QuestionPart | None = None
    computed: Bound | None = None
    label: str | None = None

    @property
    def prefix(self) -> str:
        """The part of its name before the dot."""
        if self.part is not None:
            return self.part.group
        if self.group is Group.ABSENT:
            return self.name.partition(".")[0]
        return self.name.removesuffix("_index") if self.group is Group.INDEX else self.group.value

    @property
    def full_name(self) -> str:
        return self.label or (self.name if self.group is Group.ABSENT else f"{self.prefix}.{self.name}")

    @property
    def bare_name(self) -> str:
        is_full = self.label is not None or self.group is Group.ABSENT
        return without_group(self.full_name) if is_full else self.name

    @property
    def is_own(self) -> bool:
        """Whether it is Headrace's own: a question, trait or field with the same bare name comes before it."""
        return is_own(self.full_name)

    def sources(self) -> Iterator[ResultColumn]:
        """The columns of the file that this one is made of."""
        if self.computed is None:
            yield self
        else:
            for column in self.computed.columns:
                yield from column.sources()


class Bound(msgspec.Struct, frozen=True):
    """An expression whose names are full names of `columns`: what it means does not change when columns are renamed."""

    expression: Expression
    columns: tuple[ResultColumn, ...]

    def column(self, name: str) -> ResultColumn:
        return next(column for column in self.columns if column.full_name == name)


ORDINAL = ResultColumn(Group.INTERVIEW, "ordinal")
STATUS = ResultColumn(Group.INTERVIEW, "status")
FAILED = ResultColumn(Group.INTERVIEW, "failed")
_INTERVIEW_KINDS = {ORDINAL.name: ColumnKind.INT, STATUS.name: ColumnKind.TEXT, FAILED.name: ColumnKind.BOOL}

PREFIXES = frozenset({"answer", "agent", "scenario", "model", "iteration", "interview", *PART_GROUPS})
_OWN = ("interview.", "iteration.")


def without_group(name: str) -> str:
    """A column's name without what stands before the dot, where that is one of ours."""
    prefix, _, rest = name.partition(".")
    return rest if rest and prefix in PREFIXES else name


def is_own(name: str) -> bool:
    """Whether a full name is of a column that Headrace adds to what users have asked and given: `interview.status`."""
    return name.startswith(_OWN)


def part_column(part: QuestionPart, question: str, position: int) -> ResultColumn:
    return ResultColumn(Group.PART, f"{question}{part.suffix}", position, part)


def model_value(model: Model, name: str) -> Any:
    """One parameter of a model; a function, which a file cannot hold, is shown as its reference."""
    if name == "model":
        return model.name
    if name == "inference_service" and name not in model.parameters:
        return model.service_name
    value = model.parameters.get(name)
    return value.reference if isinstance(value, MissingFunction) else value


def column_kinds(connection: apsw.Connection, column: ResultColumn, header: RunHeader) -> frozenset[ColumnKind] | None:
    """The kinds of values in a column, as far as the file keeps them; None where it does not."""
    with decoding(header.path, f"what the column {column.full_name} holds"):
        return _column_kinds(connection, column, header)


def _column_kinds(connection: apsw.Connection, column: ResultColumn, header: RunHeader) -> frozenset[ColumnKind] | None:
    if column.computed is not None:
        return None
    match column.group:
        case Group.ANSWER:
            return answer_kinds(connection, column.position)
        case Group.AGENT if column.name == NAME:
            return field_kinds(connection, "agent", NAME) | {ColumnKind.TEXT}
        case Group.AGENT | Group.SCENARIO:
            return field_kinds(connection, column.group.value, column.name)
        case Group.MODEL:
            return frozenset(kind_of(model_value(model, column.name)) for model in header.models)
        case Group.ITERATION | Group.INDEX:
            return frozenset({ColumnKind.INT})
        case Group.INTERVIEW:
            return frozenset({_INTERVIEW_KINDS[column.name]})
        case Group.ABSENT:
            return frozenset({ColumnKind.NULL})
        case Group.PART if column.part == FAILED_PART:
            return frozenset({ColumnKind.BOOL})
        case Group.PART | Group.SHUFFLED:
            return None
