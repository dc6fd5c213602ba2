"""The columns of a run's interviews with the kinds of their values, and the functions of the filter language."""

from __future__ import annotations

import msgspec

from headrace.expressions.meaning import BINARY, UNARY
from headrace.results.columns.question_parts import PARTS
from headrace.results.columns.result_column import FAILED, ResultColumn, part_column
from headrace.results.reading.file_view import FileView
from headrace.web.api.run_summary import OneRun
from headrace.web.operations import PageOperation
from headrace.web.shown_files import ShownFiles
from headrace.web.table_query import TableQuery

_MOST_COLUMNS = 2_000
_FUNCTIONS = tuple(sorted({*UNARY, *BINARY}))


class NamedColumn(msgspec.Struct, frozen=True):
    """`kinds` are those of its values so far: null, bool, int, real, text, json; empty where the file does not keep
    that. `is_first` where it is shown unless others are chosen.
    """

    name: str
    kinds: list[str]
    is_first: bool


class ColumnList(msgspec.Struct, frozen=True):
    """The columns that may be chosen, filtered and sorted by, and the functions that an expression may use;
    `truncated` where there are more columns.
    """

    columns: list[NamedColumn]
    functions: list[str]
    truncated: bool


def _table_columns(files: ShownFiles, asked: OneRun) -> ColumnList:
    with TableQuery().view(files.one(asked.run)) as view:
        catalog = view.catalog()
        first = frozenset(catalog.first)
        parts = [part_column(part, name, place) for name, place in catalog.questions.items() for part in PARTS]
        every = [*dict.fromkeys((*catalog.first, *catalog.data, FAILED, *parts))]
        return ColumnList(
            columns=[
                NamedColumn(catalog.shown(column), kinds, column in first)
                for column, kinds in _with_kinds(view, every[:_MOST_COLUMNS])
            ],
            functions=list(_FUNCTIONS),
            truncated=len(every) > _MOST_COLUMNS,
        )


def _with_kinds(view: FileView, columns: list[ResultColumn]) -> list[tuple[ResultColumn, list[str]]]:
    kinds = view.file.kept_kinds(columns)
    return [
        (column, sorted(kind.name.lower() for kind in held or ())) for column, held in zip(columns, kinds, strict=True)
    ]


RUN_COLUMNS = PageOperation(
    name="columns",
    summary="The columns of a run's interviews, and the functions that a filter may use.",
    path="/runs/{run}/columns",
    parameters=OneRun,
    reply=ColumnList,
    call=_table_columns,
)
