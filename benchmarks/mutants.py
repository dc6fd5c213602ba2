"""Files that something or somebody has changed: bytes, pages, the schema, values. The same seed makes the same file."""

import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

_PAGE = 4096
_VALUES: list[object] = [
    None, 0, 1, -1, 2**63 - 1, -(2**63), 10**11, 0.5, float("inf"), -0.0,
    "", "x", "\0", "é" * 50, '"', "'; --", "$." * 20, "x" * 100_000, b"", b"\xff\xfe", b"\x00" * 100,
    "[" * 2000, '{"a":' * 300, "[1]", "{}", '{"$int":"9999"}', '{"$int":[]}', b'{"$float":{}}',
    "1,1,1,100000000000", "0,0,0,0", "-1,2,3,4", b"\x28\xb5\x2f\xfd\xa4\x00\x00\x00\xff\x01\x00\x00",
]  # fmt: skip
_SCHEMAS = [
    ("more", "more, g AS (hex(zeroblob(1000000000)))"), ("INTEGER", "TEXT"), ("PRIMARY KEY", ""), ("NOT NULL", ""),
    ("CREATE TABLE", "CREATE VIRTUAL TABLE"), ("value", "value CHECK(value > 1)"), ("WITHOUT ROWID", ""), ("a0", "b0"),
    ("(", "("), (")", ""), ("TABLE", "VIEW"), ("name", "name DEFAULT (randomblob(100000000))"),
]  # fmt: skip
_STATEMENTS = [
    "CREATE TRIGGER t AFTER INSERT ON {} BEGIN DELETE FROM {}; END",
    "CREATE INDEX i ON {}(hex(zeroblob(100)))",
    "ALTER TABLE {} RENAME TO other",
    "DROP VIEW IF EXISTS results",
    "CREATE VIEW v AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
    "CREATE TABLE mine(x)",
    "DELETE FROM {}",
    "PRAGMA user_version={number}",
    "PRAGMA application_id={number}",
    "ALTER TABLE {} ADD COLUMN more_of_it",
]


def mutate(path: Path, seed: int) -> str:
    """Change the file in place; says what kind of change it was."""
    rng = random.Random(seed)
    change = rng.choice([_bytes, _bytes, _pages, _schema, _values, _values, _values])
    with suppress(sqlite3.Error, OverflowError):  # some changes are refused: then another seed has its turn
        change(path, rng)
    return change.__name__.strip("_")


def _bytes(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 1, 2, 8, 64])):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _pages(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    pages = len(content) // _PAGE
    one, other = (rng.randrange(pages) * _PAGE for _ in range(2))
    match rng.randrange(5):
        case 0:
            content[one : one + _PAGE] = bytes(_PAGE)
        case 1:
            content[one : one + _PAGE] = content[other : other + _PAGE]
        case 2:
            content[one : one + _PAGE], content[other : other + _PAGE] = (
                content[other : other + _PAGE],
                content[one : one + _PAGE],
            )
        case 3:
            del content[rng.randrange(1, len(content)) :]
        case _:
            content[one : one + _PAGE] = rng.randbytes(_PAGE)
    path.write_bytes(content)


def _schema(path: Path, rng: random.Random) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        tables = _tables(connection)
        if rng.random() < 0.5:
            old, new = rng.choice(_SCHEMAS)
            connection.execute(
                "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = ?", (old, new, rng.choice(tables))
            )
        else:
            statement = rng.choice(_STATEMENTS).replace("{number}", str(rng.randrange(-5, 2**31)))
            connection.execute(statement.replace("{}", rng.choice(tables)))
        connection.commit()


def _values(path: Path, rng: random.Random) -> None:
    chosen = random.Random(repr(rng.getstate()))  # of its own: the other choices of a seed stay what they were
    with closing(sqlite3.connect(path)) as connection:
        for _ in range(rng.choice([1, 1, 3])):
            table = rng.choice(_tables(connection))
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            column, value = rng.choice(columns[:40]), rng.choice(_VALUES)
            place = f"{chosen.getrandbits(32)} % (SELECT count(*) FROM {table})"
            one = f"SELECT {columns[0]} FROM {table} LIMIT 1 OFFSET {place}"
            some = rng.choice(["", f" WHERE {columns[0]} IN ({one})"])
            with suppress(sqlite3.Error, OverflowError):
                connection.execute(f"UPDATE OR REPLACE {table} SET {column} = ?{some}", (value,))
        connection.commit()


def _tables(connection: sqlite3.Connection) -> list[str]:
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return [name for (name,) in connection.execute(sql)]
