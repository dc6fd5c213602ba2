"""A file changed by somebody who knows how it is made: with checksums that fit. They find damage, and prove nothing."""

from contextlib import closing
from pathlib import Path

import apsw

from headrace.store.run_file.checksums import (
    CHECK,
    CheckedPart,
    counters_checksum,
    fields_checksum,
    interview_checksum,
    part_checksum,
    plan_checksum,
    record_checksum,
)


def fitted(path: Path) -> Path:
    """Every checksum of a run file made to fit what it holds now."""
    with closing(apsw.Connection(str(path))) as connection, connection:
        connection.create_scalar_function("fields_checksum", _of_fields, 2)
        connection.create_scalar_function("record_checksum", record_checksum, 3)
        for table in ("agents", "scenarios"):
            connection.execute(f"UPDATE {table} SET checksum = fields_checksum(position, fields)")
        connection.execute("UPDATE pending SET checksum = record_checksum(ordinal, question, record)")
        for *values, _ in connection.execute("SELECT * FROM interviews").fetchall():
            detail = connection.execute("SELECT detail FROM details WHERE ordinal = ?", (values[0],)).get
            checksum = interview_checksum(tuple(values), detail or b"")
            connection.execute("UPDATE interviews SET checksum = ? WHERE ordinal = ?", (checksum, values[0]))
        counters = dict(connection.execute("SELECT name, value FROM counters").fetchall())
        connection.execute("UPDATE counters SET value = ? WHERE name = ?", (counters_checksum(counters), CHECK))
        connection.execute("UPDATE meta SET value = ? WHERE key = ?", (plan_checksum(connection), CHECK))
        for part in CheckedPart:
            connection.execute("UPDATE meta SET value = ? WHERE key = ?", (part_checksum(connection, part), part.value))
    return path


def _of_fields(position: int, fields: str | bytes) -> int:
    return fields_checksum(position, fields.encode() if isinstance(fields, str) else bytes(fields or b""))
