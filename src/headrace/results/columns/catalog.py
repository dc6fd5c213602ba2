"""The catalog of a file's columns. Covers: finding a column by name and expanding patterns.

    answer.mood, agent.age, ...   data: listed, shown and exported where the user has chosen no columns
    comment.mood_comment, ...     parts of questions, and a few that every file has: found when they are named

A bare name is looked for among the data first, so that a trait or an answer is never hidden by a part of a question;
nor by a column of Headrace's own: `status` is a question of that name, if there is one, before `interview.status`.
Does not cover: columns themselves (columns).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from headrace.errors import InvalidInput, nearest
from headrace.results.columns.question_parts import PART_GROUPS, PARTS, parts_called, question_first
from headrace.results.columns.result_column import FAILED, PREFIXES, Group, ResultColumn, model_value, part_column
from headrace.store.contents import decoding
from headrace.store.run_file.column_kinds import field_names
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.stored_job.stored_boxes import read_plan
from headrace.survey.agent import INSTRUCTION, NAME
from headrace.survey.model import Model

_EVERYTHING = ("*", "*.*")
_MOST_GUESSED = 200  # questions: comparing a wrong name with all their parts takes too long beyond
# What every file has and few want to see. A field of a list with the same name comes first.
_UNLISTED = (
    ResultColumn(Group.AGENT, NAME),
    ResultColumn(Group.AGENT, INSTRUCTION),
    ResultColumn(Group.INDEX, "agent_index"),
    ResultColumn(Group.INDEX, "scenario_index"),
    ResultColumn(Group.INDEX, "model_index"),
    ResultColumn(Group.MODEL, "inference_service"),
    FAILED,
)


class ColumnChanges(msgspec.Struct, frozen=True):
    """What `mutate` and `rename` have made of a file's columns: columns added, and new labels by column."""

    added: tuple[ResultColumn, ...] = ()
    labels: tuple[tuple[ResultColumn, str], ...] = ()

    def adding(self, column: ResultColumn) -> ColumnChanges:
        return replace(self, added=(*self.added, column))

    def labelling(self, column: ResultColumn, label: str) -> ColumnChanges:
        plain = replace(column, label=None)
        kept = tuple(each for each in self.labels if each[0] != plain)
        return replace(self, labels=(*kept, (plain, label)))


class Catalog(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All columns of one file at one moment; agents and scenarios that are added may bring more.

    `data` are the columns of answers, fields, model and interview; `first` those that are shown where the user has
    chosen none. With `plainly`, a column goes by its bare name where no other has that name.
    """

    data: tuple[ResultColumn, ...]
    first: tuple[ResultColumn, ...]
    questions: dict[str, int]
    plainly: bool = False
    labels: dict[ResultColumn, str] = msgspec.field(default_factory=dict[ResultColumn, str])

    def changed(self, changes: ColumnChanges) -> Catalog:
        """The same catalog with what `mutate` and `rename` have made of it."""
        labels = dict(changes.labels)

        def labelled(columns: Iterable[ResultColumn]) -> tuple[ResultColumn, ...]:
            return tuple(replace(each, label=labels[each]) if each in labels else each for each in columns)

        known = {*self.data, *changes.added}
        unlisted = (column for column in labels if column not in known)
        behind = _behind_answers(self.first)
        first = (*self.first[:behind], *changes.added, *self.first[behind:])
        data = (*self.data, *changes.added, *unlisted)
        return replace(self, data=labelled(data), first=labelled(first), labels=labels)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that are shown where the user has chosen none."""
        return tuple(self.shown(column) for column in self.first)

    def shown(self, column: ResultColumn) -> str:
        """The name that a column goes by."""
        is_plain = self.plainly and column.label is None and self._by_name.get(column.name, [column]) == [column]
        return column.name if is_plain else column.full_name

    def find(self, name: str) -> ResultColumn:
        """The column with this full name, or with this bare name where there is only one."""
        found = self._exact(name)
        if found is not None:
            return found
        match self._by_name.get(name) or list(self._unlisted(name)):
            case [column]:
                return column
            case []:
                raise InvalidInput(f"There is no column {name!r}.", fix=self._nearest(name))
            case several:
                names = " or ".join(column.full_name for column in several)
                raise InvalidInput(f"{name!r} could be several columns.", fix=f"Write {names}.")

    def has(self, name: str) -> bool:
        """Whether a column has this full or bare name."""
        return self._exact(name) is not None or name in self._by_name or any(True for _ in self._unlisted(name))

    def called(self, name: str) -> list[ResultColumn]:
        """The columns of data with this bare name; Headrace's own only where no other has it."""
        return self._by_name.get(name, [])

    def expand(self, patterns: Iterable[str]) -> tuple[ResultColumn, ...]:
        """The columns that these names and patterns stand for, each once, in the order given."""
        return tuple(dict.fromkeys(column for pattern in patterns for column in self._expand(pattern)))

    @cached_property
    def _by_full_name(self) -> dict[str, ResultColumn]:
        return {column.full_name: column for column in (*map(self._labelled, _UNLISTED), *self.data)}

    @cached_property
    def _by_name(self) -> dict[str, list[ResultColumn]]:
        found: dict[str, list[ResultColumn]] = {}
        for column in sorted(self.data, key=lambda column: column.is_own):  # the user's first
            others = found.setdefault(column.bare_name, [])
            if not (column.is_own and others):
                others.append(column)
        return found

    def _exact(self, name: str) -> ResultColumn | None:
        if name in self._by_full_name:
            return self._by_full_name[name]
        prefix, _, rest = name.partition(".")
        if prefix in PART_GROUPS:
            return next((each for each in self._parts(rest) if each.prefix == prefix), None)
        return self._question_first(name)

    def _question_first(self, name: str) -> ResultColumn | None:
        """A name in the spelling of templates and rules: `mood.answer`, `mood.comment`."""
        if name.endswith(".answer"):
            return self._by_full_name.get(f"answer.{name.removesuffix('.answer')}")
        question, part = question_first(name) or ("", None)
        if part is None or question not in self.questions:
            return None
        return self._labelled(part_column(part, question, self.questions[question]))

    def _unlisted(self, name: str) -> Iterator[ResultColumn]:
        yield from (column for column in _UNLISTED if column.name == name)
        yield from self._parts(name)

    def _parts(self, name: str) -> Iterator[ResultColumn]:
        for part, question in parts_called(name):
            if question in self.questions:
                column = self._labelled(part_column(part, question, self.questions[question]))
                if column.bare_name == name:
                    yield column

    def _labelled(self, column: ResultColumn) -> ResultColumn:
        return replace(column, label=self.labels[column]) if column in self.labels else column

    def _expand(self, pattern: str) -> list[ResultColumn]:
        if pattern in _EVERYTHING:
            return list(self.first)
        if "*" not in pattern or pattern in self._by_full_name:
            return [self.find(pattern)]
        found = list(self._matching(pattern))
        # `scenario.*` of a job without scenarios is nothing; `scenarios.*` is a mistake.
        if not found and pattern not in {f"{prefix}.*" for prefix in PREFIXES}:
            raise InvalidInput(f"No column is called like {pattern!r}.", fix=self._nearest(pattern))
        return found

    def _matching(self, pattern: str) -> Iterator[ResultColumn]:
        """Full names where the pattern has a dot, bare names where it has none."""
        prefix, dot, _ = pattern.partition(".")

        def is_match(column: ResultColumn) -> bool:
            return _is_like(column.full_name if dot else column.bare_name, pattern)

        data = list(filter(is_match, self.data))
        yield from data
        if data and self.plainly:
            return  # `lab*` of rows that keep their columns: those columns
        for part in PARTS:
            if not dot or "*" in prefix or prefix == part.group:
                columns = (part_column(part, question, position) for question, position in self.questions.items())
                yield from filter(is_match, map(self._labelled, columns))

    def _nearest(self, name: str) -> str:
        hint = nearest(name, self._by_full_name)
        if hint.startswith("Did"):
            return hint
        guessed = self.questions if len(self.questions) <= _MOST_GUESSED else ()
        parts = (part_column(part, question, 0).full_name for question in guessed for part in PARTS)
        for names in ((*self._by_name, *(column.name for column in _UNLISTED)), parts):
            further = nearest(name, names)
            if further.startswith("Did"):
                return further
        return hint


def _is_like(name: str, pattern: str) -> bool:
    """Whether a name is of a pattern with stars, each for any letters. Taking the first place for each part is enough,
    and takes no longer for many stars; a regular expression would try all places of all parts.
    """
    first, *parts, last = pattern.split("*")
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in parts:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _behind_answers(columns: tuple[ResultColumn, ...]) -> int:
    """The place behind the last answer."""
    return max((place + 1 for place, each in enumerate(columns) if each.group is Group.ANSWER), default=0)


def read_catalog(reader: Reader, header: RunHeader) -> Catalog:
    """Read the columns of a file, in the order in which they are shown."""
    with reader.snapshot() as connection:
        with decoding(header.path, "the fields of its lists"):
            agent, scenario = field_names(connection, "agent"), field_names(connection, "scenario")
        iterations = read_plan(connection, header.path).shape.iteration if header.is_mapped else 1
    return catalog_of(header.question_names, agent, scenario, header.models, iterations, is_mapped=header.is_mapped)


def catalog_of(
    question_names: Sequence[str],
    agent: Iterable[str],
    scenario: Iterable[str],
    models: Sequence[Model],
    iterations: int,
    *,
    is_mapped: bool,
) -> Catalog:
    """The columns of a job with these questions, fields of agents and scenarios, and models."""
    answers = [ResultColumn(Group.ANSWER, name, position) for position, name in enumerate(question_names)]
    rows = [ResultColumn(Group.SCENARIO, name) for name in scenario]
    model, iteration = ResultColumn(Group.MODEL, "model"), ResultColumn(Group.ITERATION, "iteration")
    names = dict.fromkeys(name for each in models for name in each.parameters)
    parameters = [ResultColumn(Group.MODEL, name) for name in names]
    fields = [*answers, *(ResultColumn(Group.AGENT, name) for name in agent), *rows, model]
    interview = [iteration, ResultColumn(Group.INTERVIEW, "ordinal"), ResultColumn(Group.INTERVIEW, "status")]
    questions = {name: position for position, name in enumerate(question_names)}
    data = (*fields, *parameters, *interview)
    if not is_mapped:
        first = (*fields, *(each for each in parameters if _differs(each.name, models)), *interview)
        return Catalog(data=data, first=first, questions=questions)
    # The rows as they came, with what was asked for behind them; the whole reply only where it has no parts.
    shown = [*rows, *(answers[1:] or answers)]
    shown += [model] if len(models) > 1 else []
    shown += [iteration] if iterations > 1 else []
    return Catalog(data=data, first=tuple(shown), questions=questions, plainly=True)


def _differs(parameter: str, models: Sequence[Model]) -> bool:
    """Whether models have different values of a parameter: one that all share says nothing about a row."""
    values = [model_value(model, parameter) for model in models]
    return any(value != values[0] for value in values)
