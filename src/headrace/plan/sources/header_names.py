"""The names of columns, checked and renamed: each has one, and one of its own. Does not cover: valid names of fields
(plan.rows.given_sources).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from headrace.errors import ListError, nearest


def renamed_columns(header: Sequence[str], renames: dict[str, str], where: str, header_line: str = "") -> list[str]:
    """The names of the fields that these columns make. `where` they were found: "people.csv", and in which line."""
    for name in renames:
        if name not in header:
            raise ListError(f"{where} has no column {name!r}.", fix=nearest(name, header))
    names = [renames.get(name, name) for name in header]
    counts = Counter(names)
    for name in names:
        if not name or counts[name] > 1:
            what = f"has the column {name!r} twice" if name else "has a column without a name"
            place = f"{where}{header_line}: the header" if header_line else where
            raise ListError(f"{place} {what}.", fix=_fix(name, header[0]))
    return names


def _fix(name: str, first: str) -> str:
    if first.lower().startswith("sep="):  # by which Excel is told the delimiter
        return "Remove the first line, sep=, which Excel alone reads; the delimiter is found without it."
    # As pandas writes its index.
    index = "" if name else " Of pandas' index: to_csv(path, index=False) leaves it out."
    return f"Give each column a name of its own.{index}"
