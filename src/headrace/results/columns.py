"""The columns of results, by name: `answer.mood`, `agent.age`. Covers: finding names and expanding patterns.

Does not cover: a column's values in a row (records) or in SQL (conditions).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import apsw

from headrace.errors import InvalidInput, nearest
from headrace.expressions import ColumnKind
from headrace.store.contents import decoding
from headrace.store.run_file.column_kinds import answer_kinds, field_kinds, field_names
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.stored_plan import read_plan
from headrace.survey.model import MissingFunction, Model
from headrace.survey.values import kind_of


class Group(Enum):
    """The part of a column's name before the dot."""

    ANSWER = "answer"
    AGENT = "agent"
    SCENARIO = "scenario"
    MODEL = "model"
    ITERATION = "iteration"
    INTERVIEW = "interview"


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """One column. `position` is the question's, in the group of answers."""

    group: Group
    name: str
    position: int = -1

    @property
    def full_name(self) -> str:
        return f"{self.group.value}.{self.name}"


class Catalog:
    """All columns of one file at one moment; agents and scenarios that are added may bring more.

    `first` are the columns that are shown where the user has chosen none. With `plainly`, a column goes by its bare
    name where no other has that name.
    """

    def __init__(self, columns: Iterable[ResultColumn], first: Iterable[ResultColumn] = (), *, plainly: bool = False):
        self._by_full_name = {column.full_name: column for column in columns}
        self._by_name: dict[str, list[ResultColumn]] = {}
        for column in self._by_full_name.values():
            self._by_name.setdefault(column.name, []).append(column)
        self._plainly = plainly
        self.names = tuple(self._shown(column) for column in first or self._by_full_name.values())

    def _shown(self, column: ResultColumn) -> str:
        return column.name if self._plainly and len(self._by_name[column.name]) == 1 else column.full_name

    def find(self, name: str) -> ResultColumn:
        """The column with this full name, or with this bare name where there is only one."""
        if name in self._by_full_name:
            return self._by_full_name[name]
        match self._by_name.get(name, []):
            case [column]:
                return column
            case []:
                raise InvalidInput(f"There is no column {name!r}.", fix=self._nearest(name))
            case several:
                names = " or ".join(column.full_name for column in several)
                raise InvalidInput(f"{name!r} could be several columns.", fix=f"Write {names}.")

    def expand(self, patterns: Iterable[str]) -> tuple[str, ...]:
        """The names that these names and patterns stand for, each once, in the order given."""
        return tuple(dict.fromkeys(name for pattern in patterns for name in self._expand(pattern)))

    def _expand(self, pattern: str) -> list[str]:
        if "*" not in pattern or pattern in self._by_full_name:
            return [self._shown(self.find(pattern))]
        matches = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL).fullmatch
        shown = {name: self._shown(column) for name, column in self._by_full_name.items()}
        found = [shown[name] for name in shown if matches(name)]
        found = found or [name for name in shown.values() if matches(name)]  # `lab*`, where they go by bare names
        # `scenario.*` of a job without scenarios is nothing; `scenarios.*` is a mistake.
        if not found and pattern not in {f"{group.value}.*" for group in Group}:
            raise InvalidInput(f"No column is called like {pattern!r}.", fix=self._nearest(pattern))
        return found

    def _nearest(self, name: str) -> str:
        hint = nearest(name, self._by_full_name)
        if hint.startswith("Did"):
            return hint
        by_bare_name = nearest(name, self._by_name)
        return by_bare_name if by_bare_name.startswith("Did") else hint


def read_catalog(reader: Reader, header: RunHeader) -> Catalog:
    """Read the columns of a file, in the order in which they are shown."""
    with reader.snapshot() as connection:
        with decoding(header.path, "the fields of its lists"):
            agent, scenario = field_names(connection, "agent"), field_names(connection, "scenario")
        iterations = read_plan(connection, header.path).shape.iteration if header.is_mapped else 1
    parameters = dict.fromkeys(name for model in header.models for name in model.parameters)
    answers = [ResultColumn(Group.ANSWER, name, position) for position, name in enumerate(header.question_names)]
    rows = [ResultColumn(Group.SCENARIO, name) for name in scenario]
    model, iteration = ResultColumn(Group.MODEL, "model"), ResultColumn(Group.ITERATION, "iteration")
    columns = [
        *answers,
        *(ResultColumn(Group.AGENT, name) for name in agent),
        *rows,
        model,
        *(ResultColumn(Group.MODEL, name) for name in parameters),
        iteration,
        ResultColumn(Group.INTERVIEW, "ordinal"),
        ResultColumn(Group.INTERVIEW, "status"),
    ]
    if not header.is_mapped:
        return Catalog(columns)
    # The rows as they came, with what was asked for behind them; the whole reply only where it has no parts.
    first = [*rows, *(answers[1:] or answers)]
    first += [model] if len(header.models) > 1 else []
    first += [iteration] if iterations > 1 else []
    return Catalog(columns, first, plainly=True)


def model_value(model: Model, name: str) -> Any:
    """One parameter of a model; a function, which a file cannot hold, is shown as its reference."""
    if name == "model":
        return model.name
    value = model.parameters.get(name)
    return value.reference if isinstance(value, MissingFunction) else value


def column_kinds(connection: apsw.Connection, column: ResultColumn, header: RunHeader) -> frozenset[ColumnKind] | None:
    """The kinds of values in a column, as far as the file keeps them; None where it does not."""
    with decoding(header.path, f"what the column {column.full_name} holds"):
        return _column_kinds(connection, column, header)


def _column_kinds(connection: apsw.Connection, column: ResultColumn, header: RunHeader) -> frozenset[ColumnKind] | None:
    match column.group:
        case Group.ANSWER:
            return answer_kinds(connection, column.position)
        case Group.AGENT | Group.SCENARIO:
            return field_kinds(connection, column.group.value, column.name)
        case Group.MODEL:
            return frozenset(kind_of(model_value(model, column.name)) for model in header.models)
        case Group.ITERATION:
            return frozenset({ColumnKind.INT})
        case Group.INTERVIEW:
            return frozenset({ColumnKind.INT if column.name == "ordinal" else ColumnKind.TEXT})
