"""The tables of a run file, and the view `results`, which any SQLite tool can read. Our own code never reads that view:
in a file from elsewhere it may be anything.

Rows are keyed by plan ordinal, so they are appended; a random key would cost ten times the time and bytes. Does not
cover: filling the tables (creation, run_journal).
"""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.errors import RESTORE, RunFileDamaged
from headrace.plan.census import MOST_FIELDS
from headrace.store.contents import typed_rows
from headrace.store.formats import RUN_FILE, check_format
from headrace.store.history.stored_history import MEMORY_HISTORY
from headrace.store.quoting import has_path, json_field, quote_name
from headrace.store.run_file.rows import ANSWER_COLUMNS
from headrace.store.schema_check import IsOurs, accepted_tables, check_schema
from headrace.store.transactions import transaction

# The version says which tables a file has: those of the second, with checksums, are what a file that keeps everything
# has. One that keeps less, or keeps totals, has those of the third as well.
WITHOUT_CHECKSUMS = 1  # files of this version are read as they are, and get the columns when they are written
WITH_CHECKSUMS = 2
WITH_TOTALS = RUN_FILE.version
MOST_VIEW_COLUMNS = 1990
MAPPED = "map"  # the kind of question whose survey is one prompt per row

_TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE boxes(number INTEGER PRIMARY KEY, low TEXT NOT NULL, high TEXT NOT NULL);
CREATE TABLE questions(position INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL,
                       holds_bools INTEGER NOT NULL, kinds INTEGER NOT NULL DEFAULT 0);
CREATE TABLE agents(position INTEGER PRIMARY KEY, fields TEXT NOT NULL, checksum);
CREATE TABLE scenarios(position INTEGER PRIMARY KEY, fields TEXT NOT NULL, checksum);
CREATE TABLE models(position INTEGER PRIMARY KEY, name TEXT NOT NULL, service TEXT NOT NULL, model TEXT NOT NULL);
CREATE TABLE fields(owner TEXT, name TEXT, kinds INTEGER NOT NULL, position INTEGER NOT NULL,
                    PRIMARY KEY(owner, name)) WITHOUT ROWID;
CREATE TABLE details(ordinal INTEGER PRIMARY KEY, detail BLOB NOT NULL);
CREATE TABLE pending(ordinal INTEGER, question INTEGER, record BLOB NOT NULL, checksum,
                     PRIMARY KEY(ordinal, question)) WITHOUT ROWID;
CREATE TABLE failures(ordinal INTEGER, question INTEGER, cause TEXT NOT NULL, message TEXT NOT NULL,
                      PRIMARY KEY(ordinal, question)) WITHOUT ROWID;
CREATE TABLE counters(name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE runs(number INTEGER PRIMARY KEY, started_at REAL NOT NULL, ended_at REAL, reused INTEGER NOT NULL,
                  peak_memory_bytes INTEGER, outcome TEXT, endpoints TEXT);
"""
# Made when a run embeds files, in a file of any version: older versions take them for tables of the user's own.
_EMBEDDED_FILES = """
CREATE TABLE embedded(digest TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE embedded_parts(digest TEXT, part INTEGER, content BLOB NOT NULL, PRIMARY KEY(digest, part));
"""
# Made in a file that has grown long, of any version, as are those of embedded files.
_ROW_BLOCKS = """
CREATE TABLE row_blocks(block INTEGER PRIMARY KEY, bits BLOB NOT NULL, checksum);
"""
_KEEPING_TABLES = """
CREATE TABLE finished(cause TEXT, block INTEGER, bits BLOB NOT NULL, checksum, PRIMARY KEY(cause, block)) WITHOUT ROWID;
CREATE TABLE totals(key TEXT PRIMARY KEY, interviews INTEGER NOT NULL, state BLOB NOT NULL, checksum) WITHOUT ROWID;
"""

_CHECKSUM = ", checksum"
_CHECKED = ("interviews", "agents", "scenarios", "pending")
_ACCEPTED = {
    WITH_TOTALS: accepted_tables(_TABLES, MEMORY_HISTORY, _EMBEDDED_FILES, _ROW_BLOCKS, _KEEPING_TABLES),
    WITH_CHECKSUMS: accepted_tables(_TABLES, MEMORY_HISTORY, _EMBEDDED_FILES, _ROW_BLOCKS),
    WITHOUT_CHECKSUMS: accepted_tables(_TABLES.replace(_CHECKSUM, ""), MEMORY_HISTORY),
}
_NEWER = ("memory_history", "embedded", "embedded_parts", "row_blocks")


def create_tables(connection: apsw.Connection, questions: int, *, with_totals: bool) -> None:
    """Make the tables; those of totals and finished bits only where the file keeps less than everything, or totals."""
    version = WITH_TOTALS if with_totals else WITH_CHECKSUMS
    connection.execute(f"PRAGMA application_id={RUN_FILE.application_id}; PRAGMA user_version={version};")
    connection.execute(_TABLES + MEMORY_HISTORY + _KEEPING_TABLES * with_totals)
    connection.execute(_interviews(min(questions, ANSWER_COLUMNS)))


def _interviews(answers: int) -> str:
    columns = "".join(f", a{position}" for position in range(answers))
    return (
        "CREATE TABLE interviews(ordinal INTEGER PRIMARY KEY, iteration, agent, scenario, model, status"
        f"{columns}, more{_CHECKSUM})"
    )


def add_checksums(connection: apsw.Connection) -> None:
    """Make a file of version 1 one of version 2. Its rows stay as they are: they count as unchecked."""
    with transaction(connection):
        for table in _CHECKED:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum")
        connection.execute(f"PRAGMA user_version={WITH_CHECKSUMS}")


def add_embedded_files(connection: apsw.Connection) -> None:
    """Give a file the tables for contents of files, where it has none."""
    if not has_embedded_files(connection):
        connection.execute(_EMBEDDED_FILES)


def has_embedded_files(connection: apsw.Connection) -> bool:
    sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('embedded', 'embedded_parts')"
    return connection.execute(sql).get == 2


def add_row_blocks(connection: apsw.Connection) -> None:
    """Give a file the table of blocks of rows, where it has none."""
    if not has_row_blocks(connection):
        connection.execute(_ROW_BLOCKS)


def has_row_blocks(connection: apsw.Connection) -> bool:
    sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'row_blocks'"
    return connection.execute(sql).get == 1


def check_is_run_file(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file that is no run file, or whose tables are not those that `create_tables` makes."""
    check_format(connection, path, RUN_FILE)
    version: int = connection.execute("PRAGMA user_version").get
    if version not in _ACCEPTED:
        raise RunFileDamaged(f"{path} is damaged: there is no file version {version}.", path=path, fix=RESTORE)
    ending = "" if version == WITHOUT_CHECKSUMS else _CHECKSUM
    others: dict[str, IsOurs] = {"interviews": lambda sql: _is_interviews(sql, ending)}
    check_schema(connection, path, _ACCEPTED[version], others, newer=_NEWER)
    asked: int = connection.execute("SELECT count(*) FROM questions").get
    answers = _answers_in(connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'interviews'").get)
    if not asked or answers != min(asked, ANSWER_COLUMNS):
        raise RunFileDamaged(
            f"{path} is damaged: it has {asked} questions, and {answers} columns for their answers.",
            path=path,
            fix=RESTORE,
        )


def _is_interviews(sql: str, ending: str) -> bool:
    """Whether this is our table `interviews` for any number of questions; `ending` is the text behind the answers."""
    return sql == _interviews(_answers_in(sql)).replace(_CHECKSUM, ending)


def _answers_in(sql: str) -> int:
    return sql.count(", a") - 1  # one is the column `agent`


def create_view(connection: apsw.Connection) -> None:
    """Make the view `results`: a row an interview, answers by question name, fields as `agent.x` and `scenario.x`.

    The columns of a mapped job's rows keep their own names.
    """
    columns = ", ".join(f"{sql} AS {quote_name(name)}" for name, sql in view_columns(connection))
    connection.execute("DROP VIEW IF EXISTS results")
    connection.execute(
        f"CREATE VIEW results AS SELECT {columns} FROM interviews i JOIN agents a ON a.position = i.agent"
        " JOIN scenarios s ON s.position = i.scenario JOIN models m ON m.position = i.model"
    )


def view_columns(connection: apsw.Connection) -> list[tuple[str, str]]:
    """Name and SQL of each column of the view; answers come first, since the number of columns is bounded."""
    asked = typed_rows(connection, tuple[str, str], "SELECT name, kind FROM questions ORDER BY position")
    names, is_mapped = [name for name, _ in asked], asked[0][1] == MAPPED
    columns = [(name, answer_column(position)) for position, name in enumerate(names)]
    columns += [
        ("interview.ordinal", "i.ordinal"),
        ("interview.status", "CASE i.status WHEN 0 THEN 'done' ELSE 'failed' END"),
        ("iteration.iteration", "i.iteration"),
        ("model.model", "m.name"),
    ]
    owners = {"agent": "a.fields", "scenario": "s.fields"}
    taken = {name.lower() for name, _ in columns}
    fields = "SELECT owner, name FROM fields ORDER BY owner, position LIMIT ?"
    for owner, name in typed_rows(connection, tuple[str, str], fields, (2 * MOST_FIELDS,)):
        if has_path(name):
            is_own = is_mapped and owner == "scenario" and name.lower() not in taken
            shown = name if is_own else f"{owner}.{name}"
            taken.add(shown.lower())
            columns.append((shown, json_field(owners[owner], name)))
    return columns[:MOST_VIEW_COLUMNS]


def answer_column(position: int) -> str:
    """The SQL of an answer, where `i` is the table `interviews`."""
    if position < ANSWER_COLUMNS:
        return f"i.a{position}"
    return f"json_extract(i.more, '$[{position - ANSWER_COLUMNS}]')"
