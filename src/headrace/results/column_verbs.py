"""The verbs that change columns: `mutate`, `rename` and `drop`. Nothing is read or computed until rows are asked for.

Does not cover: choosing columns by name and pattern (catalog), or evaluating what `mutate` was given (records).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from headrace.errors import InvalidInput
from headrace.expressions import parse
from headrace.results.columns.binding import bind
from headrace.results.columns.catalog import Catalog
from headrace.results.columns.result_column import Group, ResultColumn, without_group
from headrace.results.reading.file_view import FileView

_ASSIGNMENT = re.compile(r"\s*(?:\{\{\s*)?([\w.]+)(?:\s*\}\})?\s*=(?!=)(.*)", re.DOTALL)


def mutated(part: FileView, assignment: str) -> FileView:
    """The view with one answer column more: `double = scale * 2`."""
    name, source = read_assignment(assignment)
    catalog = part.catalog()
    _refuse_taken(name, f"answer.{name}", catalog)
    column = ResultColumn(Group.ANSWER, name, computed=bind(parse(source), catalog))
    selected = None if part.selected is None else (*part.selected, column)
    return replace(part, changes=part.changes.adding(column), selected=selected)


def read_assignment(assignment: str) -> tuple[str, str]:
    """The new column's name and its expression."""
    found = _ASSIGNMENT.fullmatch(assignment)
    name = found[1].removeprefix("answer.") if found else ""
    if found is None or not name.isidentifier():
        raise InvalidInput(f"{assignment!r} names no new column.", fix='Write it like mutate("double = scale * 2").')
    return name, found[2].strip()


def renamed(part: FileView, names: Mapping[str, str]) -> FileView:
    """The view with other names for columns. Where columns were chosen, a new name is taken as it is; otherwise it
    stays in its group: `answer.q` becomes `answer.mood`.
    """
    for old, new in names.items():
        catalog = part.catalog()
        column = catalog.find(old)
        label = new if part.selected is not None or without_group(new) != new else f"{column.prefix}.{new}"
        if label != column.full_name:
            _refuse_taken(new, label, catalog)
        part = _labelled(part, column, label)
    return part


def dropped(part: FileView, names: Iterable[str]) -> FileView:
    """The view without these columns, which may be patterns."""
    catalog = part.catalog()
    gone = set(catalog.expand(names))
    return replace(part, selected=tuple(column for column in part.columns(catalog) if column not in gone))


def _labelled(part: FileView, column: ResultColumn, label: str) -> FileView:
    new = replace(column, label=label)
    selected = part.selected and tuple(new if each == column else each for each in part.selected)
    return replace(part, changes=part.changes.labelling(column, label), selected=selected)


def _refuse_taken(name: str, label: str, catalog: Catalog) -> None:
    """Refuse a name that another column has: neither may hide the other."""
    given = (each for each in catalog.data if each.full_name == label or (each.bare_name == name and not each.is_own))
    taken = next(given, None)
    if taken is not None:
        raise InvalidInput(f"There is a column {taken.full_name!r} already.", fix="Choose another name.")
