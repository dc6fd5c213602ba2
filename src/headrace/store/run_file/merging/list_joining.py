"""The lists of merged run files as one list each, joined by content. Covers: whether two lists are the same, joining
them, and which place in the joined list each row of the added one has.

Long lists stay on disk: a temporary table holds a digest and a place for each row. Models are few, and in memory.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TypeAlias

import apsw

from headrace.plan.identity import digest
from headrace.store.contents import decoding
from headrace.store.run_file.checksums import fields_checksum
from headrace.store.run_file.merging.merge_source import MergeSource
from headrace.store.transactions import transaction
from headrace.survey.model import Model
from headrace.survey.values import without_paths

Places: TypeAlias = Callable[[int], int]  # the place in the joined list of a row of the added one
_BATCH = 2_000


def same(position: int) -> int:
    return position


def are_same_rows(connection: apsw.Connection, source: MergeSource, table: str, length: int) -> bool:
    """Whether a list of the new file, which has so many rows, is that of the source."""
    held = connection.execute(f"SELECT fields FROM {table} WHERE position < ? ORDER BY position", (length,))
    pairs = zip_longest((fields for (fields,) in held), (fields for _, fields in source.list_rows(table)))
    return all(ours == theirs for ours, theirs in pairs)


def join_rows(connection: apsw.Connection, source: MergeSource, table: str, length: int) -> tuple[Places, int]:
    """Append the rows of the source's list that the new file, which has `length`, does not have yet. Returns the place
    of each of the source's rows, and the new length.
    """
    connection.execute("PRAGMA temp_store=FILE").fetchall()
    for name in ("joined_held", "joined_places"):
        connection.execute(f"DROP TABLE IF EXISTS temp.{name}")
    connection.execute("CREATE TEMP TABLE joined_held(digest, number, position, PRIMARY KEY(digest, number))")
    connection.execute("CREATE TEMP TABLE joined_places(theirs INTEGER PRIMARY KEY, ours INTEGER NOT NULL)")
    _note_held(connection, table)
    for batch in _batches(_numbered(connection, source.list_rows(table))):
        with transaction(connection):
            for position, fields, key, number in batch:
                held = "SELECT position FROM temp.joined_held WHERE digest = ? AND number = ?"
                ours: int | None = connection.execute(held, (key, number)).get
                if ours is None:
                    ours, length = length, length + 1
                    row = (ours, fields, fields_checksum(ours, fields.encode()))
                    connection.execute(f"INSERT INTO {table} VALUES(?, ?, ?)", row)
                connection.execute("INSERT INTO temp.joined_places VALUES(?, ?)", (position, ours))
    find = "SELECT ours FROM temp.joined_places WHERE theirs = ?"
    return lambda position: connection.execute(find, (position,)).get, length


def join_models(ours: list[str], theirs: list[str], path: Path) -> tuple[Places, list[str]]:
    """The rows of the models that are added, and the place of each of theirs. Two are the same by what identifies a
    model: not by its price, limits and time-outs.
    """
    with decoding(path, "its models"):
        held = {key: place for place, key in enumerate(_model_keys(ours))}
        places: dict[int, int] = {}
        added: list[str] = []
        for position, (key, row) in enumerate(zip(_model_keys(theirs), theirs, strict=True)):
            if key not in held:
                held[key] = len(ours) + len(added)
                added.append(row)
            places[position] = held[key]
    return places.__getitem__, added


def rows_digest(connection: apsw.Connection, table: str, settings: str | None) -> str:
    """The digest of a list, as a program's own list of the same rows has it."""
    found = hashlib.blake2b(digest_size=16)
    for (fields,) in connection.execute(f"SELECT fields FROM {table} ORDER BY position"):
        found.update(without_paths(fields.encode()) + b"\n")
    return digest(found.hexdigest().encode() + settings.encode()) if settings else found.hexdigest()


def models_digest(rows: list[str]) -> str:
    return digest(b"\n".join(Model.from_row(row).identity_row() for row in rows))


def _note_held(connection: apsw.Connection, table: str) -> None:
    """Fill `joined_held` with the digest of each row in the new file, equal ones numbered."""
    after = -1
    while page := connection.execute(
        f"SELECT position, fields FROM {table} WHERE position > ? ORDER BY position LIMIT {_BATCH}", (after,)
    ).fetchall():
        with transaction(connection):
            for position, fields in page:
                key = _key(str(fields))
                number = connection.execute("SELECT count(*) FROM temp.joined_held WHERE digest = ?", (key,)).get
                connection.execute("INSERT INTO temp.joined_held VALUES(?, ?, ?)", (key, number, position))
        after = page[-1][0]


def _numbered(connection: apsw.Connection, rows: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str, bytes, int]]:
    """The rows with their digest and the number of equal ones before them."""
    connection.execute("DROP TABLE IF EXISTS temp.joined_seen")
    connection.execute("CREATE TEMP TABLE joined_seen(digest PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID")
    count = "INSERT INTO temp.joined_seen VALUES(?, 1) ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count"
    for position, fields in rows:
        key = _key(fields)
        yield position, fields, key, connection.execute(count, (key,)).get - 1


def _batches(
    rows: Iterator[tuple[int, str, bytes, int]],
) -> Iterator[Iterator[tuple[int, str, bytes, int]]]:
    for head in rows:
        yield chain([head], islice(rows, _BATCH))


def _model_keys(rows: list[str]) -> Iterator[tuple[bytes, int]]:
    """What identifies each model, and the number of equal ones before it."""
    seen: Counter[bytes] = Counter()
    for row in rows:
        key = Model.from_row(row).identity_row()
        yield key, seen[key]
        seen[key] += 1


def _key(fields: str) -> bytes:
    return hashlib.blake2b(without_paths(fields.encode()), digest_size=16).digest()
