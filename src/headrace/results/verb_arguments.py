"""The arguments of verbs that results and tables both have, read in one way: names, new names, directions, samples.

Does not cover: what the verbs do (results.reading and column_verbs, results.tables.row_verbs).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence

from headrace.display import counted
from headrace.errors import InvalidInput


def flat_names(columns: Iterable[str | list[str]]) -> list[str]:
    """The names of `select("a", ["b", "c"])`; everything where there is none."""
    return [name for each in columns for name in ([each] if isinstance(each, str) else each)] or ["*"]


def new_names(old_name: str | Mapping[str, str], new_name: str | None) -> Mapping[str, str]:
    """The new names by the old ones."""
    if isinstance(old_name, str) == (new_name is None):
        raise InvalidInput("rename takes two names, or a dict.", fix='Write rename("mood", "feeling").')
    return {old_name: new_name or ""} if isinstance(old_name, str) else old_name


def directions(columns: Sequence[str], reverse: bool | Sequence[bool]) -> list[bool]:
    """For each column whether it is sorted in descending order."""
    descending = [reverse] * len(columns) if isinstance(reverse, bool) else list(reverse)
    if len(descending) != len(columns):
        raise InvalidInput(
            f"sort_by has {counted(len(columns), 'column')} and {len(descending)} directions.",
            fix='Write one for each, sort_by("age", "mood", reverse=[False, True]), or one for all.',
        )
    return descending


def check_sample(n: int | None, frac: float | None) -> None:
    if (n is None) == (frac is None):
        raise InvalidInput("sample takes n or frac.", fix="Write sample(100), or sample(frac=0.1).")
    if frac is not None and not 0 <= frac <= 1:
        raise InvalidInput(f"frac is a part of the rows, from 0 to 1, not {frac}.", fix="Write sample(frac=0.1).")


def drawn_seed(seed: str | int | None) -> str:
    """The seed that was given, or one that is new each time."""
    return secrets.token_hex(8) if seed is None else str(seed)
