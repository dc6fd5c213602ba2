"""Lists and dicts in SQL: their texts, keys and lengths, read by SQLite's JSON functions out of a column's JSON.

A text comes out as it went in, NULs and every escape included, and so do the keys of dicts and the number of items. A
dict with a key that begins with `$` is inside another, `{"$dict": ...}`; any other such key is the tag of a number
(survey.values). Does not cover, since SQLite
might give another value: numbers in lists (it reads decimals by a method of its own, and integers beyond 64 bits are
tagged), items of dicts by their keys, and columns that hold texts beside lists. `closures` evaluate those.
"""

from __future__ import annotations

MOST_PLACES = 1_000_000  # SQLite cuts a larger index to 32 bits

_INNER, _INTEGER, _FLOAT = ("'$.\"$dict\"'", "'$.\"$int\"'", "'$.\"$float\"'")


def holds_text(column: str) -> str:
    """SQL: whether `?`, a text, is an item of a list or a key of a dict; 0 or 1."""
    # The keys of a list are integers.
    key = "iif(e.path = '$' AND substr(e.key, 1, 1) = '$', NULL, e.key)"
    held = f"CASE typeof(e.key) WHEN 'text' THEN {key} ELSE iif(e.type = 'text', e.atom, NULL) END"
    return f"EXISTS (SELECT 1 FROM {_items(column)} e WHERE {held} = ?)"


def text_at(column: str, choices: int) -> str:
    """SQL: whether the item of a list at a path, two `?`s, is a text and one of `choices` further `?`s; 0 or 1."""
    json = _json(column)
    marks = ", ".join("?" * choices)
    return f"ifnull(json_type({json}, ?) = 'text' AND json_extract({json}, ?) IN ({marks}), 0)"


def path_of(place: int) -> str:
    """The path of an item of a list; a negative place counts from the end."""
    return f"$[{place}]" if place >= 0 else f"$[#{place}]"


def length_of(column: str) -> str:
    """SQL: how many items a list or a dict has; NULL for anything else."""
    json = _json(column)
    tag = f"coalesce(json_type({json}, {_INTEGER}), json_type({json}, {_FLOAT}))"
    in_dict = f"iif({tag} IS NULL, (SELECT count(*) FROM {_items(column)}), NULL)"
    return f"(CASE json_type({json}) WHEN 'array' THEN json_array_length({json}) WHEN 'object' THEN {in_dict} END)"


def _items(column: str) -> str:
    json = _json(column)
    return f"json_each({json}, iif(json_type({json}, {_INNER}) IS NULL, '$', {_INNER}))"


def _json(column: str) -> str:
    return f"CAST({column} AS TEXT)"  # a BLOB would be taken for SQLite's own binary form
