"""The names that columns go by in a user's SQL. A bare name stands for the only column that has it.

    select age, mood from self     `age` is "agent.age" where only agents have one
    select "agent.age" from self   always

The names that a query mentions are columns of `self` before SQLite sees the query: an alias of the same name hides them
no more than it would hide a column of a table. Does not cover: running the query (sql_table).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from msgspec.structs import replace

from headrace.errors import InvalidInput, nearest
from headrace.results.columns.catalog import Catalog
from headrace.results.columns.result_column import Group, ResultColumn

# One token of SQL at a time; what is not closed goes to the end, so that the search takes no more than the length.
_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|'[^']*(?:''[^']*)*(?:'|\Z)
    |(?P<quoted>"[^"]*(?:""[^"]*)*(?:"|\Z)|`[^`]*(?:``[^`]*)*(?:`|\Z)|\[[^\]]*(?:\]|\Z))
    |(?P<word>[^\W\d][\w$]*)""",
    re.DOTALL | re.VERBOSE,
)
_CALL = re.compile(r"\s*\(")


def mentioned_names(query: str) -> list[str]:
    """The names in a query that may be columns: all but functions, and aliases where they are given. Keywords too."""
    found: dict[str, None] = {}
    before = ""
    for token in _TOKEN.finditer(query):
        word, quoted = token["word"], token["quoted"]
        if (word or quoted) and before.lower() != "as" and not _CALL.match(query, token.end()):
            found[word or _unquoted(quoted)] = None
        before = word or ""
    return list(found)


def _unquoted(quoted: str) -> str:
    mark = quoted[0]
    return quoted[1:-1] if mark == "[" else quoted[1:-1].replace(mark * 2, mark)


class SqlNames:
    """What the columns of `self` are called: those that a query mentions as it calls them, each other one by one name.

    `names` has the names of each column of the view `results`; `computed` the columns that only Python can compute, by
    name: all columns, where `in_view` is empty. `columns` has both, `mentioned` the names that the query uses. SQL does
    not tell `age` from `Age`: no two columns have such names.
    """

    def __init__(self, catalog: Catalog, in_view: Sequence[str], mentioned: Iterable[str]) -> None:
        self._catalog = catalog
        self._in_view = set(in_view)
        self._spellings = _spellings(catalog.data)
        self._chosen = self._columns_called(mentioned)
        self.mentioned = {name for names in self._chosen.values() for name in names}
        self._taken = {name.lower() for name in self.mentioned}
        viewed = {name: column for column in catalog.data if (name := self._name_in_view(column)) is not None}
        self.names = {name: self._names_of(viewed.get(name), name) for name in in_view}
        self.computed = {name: column for column in self._unviewed() for name in self._names_of(column, "")}
        shown = {each: viewed[name] for name, names in self.names.items() if name in viewed for each in names}
        self.columns = shown | self.computed

    def several(self, name: str) -> list[ResultColumn]:
        """The columns that this name could stand for, where it is not clear which."""
        spellings = self._spellings.get(name.lower(), [])
        if name in spellings or len(spellings) == 1:
            spellings = [name if name in spellings else spellings[0]]
        found = [column for each in spellings for column in self._catalog.called(each)]
        return found if len(found) > 1 else []

    def nearest(self, name: str) -> str:
        """The names that are like this one, in words."""
        known = [each.removeprefix("answer.") for each in self._catalog.names]
        bare = [column.bare_name for column in self._catalog.first]
        return nearest(name, known if "." in name else [*bare, *known])

    def _columns_called(self, mentioned: Iterable[str]) -> dict[ResultColumn, list[str]]:
        chosen: dict[ResultColumn, list[str]] = {}
        owners: dict[str, ResultColumn] = {}
        for word in mentioned:
            name = self._spelling(word)
            if name is None:
                continue
            column = self._catalog.find(name)
            if owners.setdefault(name.lower(), column) != column:
                other = owners[name.lower()].full_name
                raise InvalidInput(
                    f"SQL takes {other!r} and {column.full_name!r} for the same column here.",
                    fix=f"Rename one of them: results.rename({other!r}, ...).sql(...).",
                )
            names = chosen.setdefault(column, [])
            if name not in names:
                names.append(name)
        return chosen

    def _spelling(self, word: str) -> str | None:
        """How the catalog spells the one column that SQLite would find by this word; None where there is none."""
        spellings = self._spellings.get(word.lower(), [])
        if word in spellings or not spellings:
            name = word
        else:
            name = spellings[0] if len(spellings) == 1 else ""
        is_one = len(self._catalog.called(name)) <= 1 and "\0" not in name and self._catalog.has(name)
        return name if is_one else None

    def _unviewed(self) -> Iterator[ResultColumn]:
        """The columns that Python computes: those that are shown, then others that the query mentions."""
        shown = [column for column in self._catalog.first if self._is_new(column) or not self._in_view]
        yield from (column for column in shown if "\0" not in column.full_name)
        yield from (each for each in self._chosen if each not in shown and self._name_in_view(each) is None)

    def _names_of(self, column: ResultColumn | None, viewed: str) -> list[str]:
        if column is None:
            return [self._free(viewed)]
        return self._chosen.get(column) or [self._free(self._default(column, viewed))]

    def _default(self, column: ResultColumn, viewed: str) -> str:
        # An answer that shares its name with a field goes by its full name: alone it would hide the field.
        is_other = not viewed or column.label or (self._is_shared(column) and viewed != column.full_name)
        return self._sql_name(column) if is_other else viewed

    def _free(self, name: str) -> str:
        """The name, with a number where another column has it."""
        tried = (name if number == 1 else f"{name}_{number}" for number in count(1))
        free = next(each for each in tried if each.lower() not in self._taken)
        self._taken.add(free.lower())
        return free

    def _name_in_view(self, column: ResultColumn) -> str | None:
        if self._is_new(column):
            return None
        plain = replace(column, label=None)
        return next((each for each in (plain.full_name, plain.bare_name) if each in self._in_view), None)

    def _is_new(self, column: ResultColumn) -> bool:
        return column.computed is not None or column.group is Group.ABSENT

    def _is_shared(self, column: ResultColumn) -> bool:
        spellings = self._spellings[column.bare_name.lower()]
        return len(spellings) > 1 or len(self._catalog.called(column.bare_name)) > 1

    def _sql_name(self, column: ResultColumn) -> str:
        """Answers go by their bare names where these are theirs alone, others by their full names."""
        shown = self._catalog.shown(column)
        return shown if self._is_shared(column) else shown.removeprefix("answer.")


def _spellings(columns: Iterable[ResultColumn]) -> dict[str, list[str]]:
    """The bare and full names of columns, by what SQL takes for one name; Headrace's own only where no other has it."""
    found: dict[str, list[str]] = {}
    for column in sorted(columns, key=lambda column: column.is_own):
        for name in dict.fromkeys((column.full_name, column.bare_name)):
            spellings = found.setdefault(name.lower(), [])
            if name not in spellings and not (column.is_own and spellings):
                spellings.append(name)
    return found
