"""The names that columns go by in a user's SQL. A bare name stands for the only column that has it.

    select age, mood from self     `age` is "agent.age" where only agents have one
    select "agent.age" from self   always

Does not cover: running the query (table).
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.errors import InvalidInput
from headrace.results.columns.catalog import Catalog


class SqlNames:
    """`names` are those of columns that the query calls otherwise than the view `results` does."""

    def __init__(self, catalog: Catalog, in_view: Iterable[str]) -> None:
        self._catalog = catalog
        self._in_view = set(in_view)
        # An answer that shares its name with a field goes by its full name: alone it would hide the field.
        bare = (
            each for each in catalog.data if each.bare_name in self._in_view and each.full_name not in self._in_view
        )
        shared = (column for column in bare if len(catalog.called(column.bare_name)) > 1)
        self.names: dict[str, list[str]] = {column.bare_name: [column.full_name] for column in shared}

    def use(self, name: str) -> bool:
        """Let a column go by a name that SQLite does not know; False where no column can."""
        several = self._catalog.called(name)
        if len(several) > 1:
            names = " or ".join(f'"{column.full_name}"' for column in several)
            raise InvalidInput(f"{name!r} could be several columns.", fix=f"Write {names}, in double quotes.")
        try:
            column = self._catalog.find(name)
        except InvalidInput:
            return False
        in_view = next((each for each in (column.full_name, column.bare_name) if each in self._in_view), None)
        if in_view is None or name in self.names.get(in_view, ()):
            return False
        self.names.setdefault(in_view, []).append(name)
        return True
