"""The names that columns go by in a user's SQL. A bare name stands for the only column that has it.

    select age, mood from self     `age` is "agent.age" where only agents have one
    select "agent.age" from self   always

Does not cover: running the query (sql_table).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.errors import InvalidInput
from headrace.results.columns.catalog import Catalog
from headrace.results.columns.result_column import Group, ResultColumn


class SqlNames:
    """`names` are those of columns that the query calls otherwise than the view `results` does; `computed` are columns
    that only Python can compute, by the name they go by: all of them, where `in_view` is empty.
    """

    def __init__(self, catalog: Catalog, in_view: Iterable[str]) -> None:
        self._catalog = catalog
        self._in_view = set(in_view)
        self.names: dict[str, list[str]] = {}
        self.computed: dict[str, ResultColumn] = {}
        for column in catalog.data:
            viewed = self._name_in_view(column)
            # An answer that shares its name with a field goes by its full name: alone it would hide the field.
            if viewed is not None and (column.label or (self._is_shared(column) and viewed != column.full_name)):
                self.names[viewed] = [self._sql_name(column)]
        for column in catalog.first:
            is_new = column.computed is not None or column.group is Group.ABSENT
            if (is_new or not self._in_view) and "\0" not in self._sql_name(column):
                self.computed[self._sql_name(column)] = column

    def use(self, name: str) -> bool:
        """Let a column go by a name that SQLite does not know; False where no column can."""
        several = self._catalog.called(name)
        if len(several) > 1:
            names = " or ".join(f'"{column.full_name}"' for column in several)
            raise InvalidInput(f"{name!r} could be several columns.", fix=f"Write {names}, in double quotes.")
        if not self._catalog.has(name):
            alias, _, rest = name.partition(".")  # `s.age` of `self as s`
            return bool(alias and rest) and self.use(rest)
        return self._let(self._catalog.find(name), name)

    def _let(self, column: ResultColumn, name: str) -> bool:
        viewed = self._name_in_view(column)
        if viewed is None:
            is_known = name in self.computed
            self.computed[name] = column
            return not is_known
        if name in self.names.get(viewed, ()):
            return False
        self.names.setdefault(viewed, []).append(name)
        return True

    def _name_in_view(self, column: ResultColumn) -> str | None:
        if column.computed is not None or column.group is Group.ABSENT:
            return None
        plain = replace(column, label=None)
        return next((each for each in (plain.full_name, plain.bare_name) if each in self._in_view), None)

    def _is_shared(self, column: ResultColumn) -> bool:
        return len(self._catalog.called(column.bare_name)) > 1

    def _sql_name(self, column: ResultColumn) -> str:
        """Answers go by their bare names where these are theirs alone, others by their full names."""
        shown = self._catalog.shown(column)
        return shown if self._is_shared(column) else shown.removeprefix("answer.")
