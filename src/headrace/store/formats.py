"""Formats: which kind of file a database is, by the two numbers in its SQLite header.

Covers: run files and engine files; refusing another kind, another program's database and a newer version in words. Does
not cover: their tables (run_file.run_schema, engine_file.engine_schema).
"""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec

from headrace.errors import NotARunFile, RunFileTooNew, Spelled


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of file. `mistaken` and `fix` refuse such a file where another kind is expected."""

    name: str
    application_id: int
    version: int
    mistaken: str
    fix: str


RUN_FILE = Format(
    name="a run file",
    application_id=0x48445243,  # "HDRC"
    version=3,
    mistaken="a survey's run file, not an engine's",
    fix="Read it with Results.open(path), run it with job.run(path) or engine.run(job, path); give the engine"
    " a path of its own.",
)
ENGINE_FILE = Format(
    name="an engine file",
    application_id=0x48445245,  # "HDRE"
    version=1,
    mistaken="an engine's file, which holds agent runs and no survey",
    fix="Open it with: async with Engine(path) as engine. A survey in an engine has a run file of its own.",
)


def check_format(connection: apsw.Connection, path: Path, expected: Format) -> None:
    """Refuse a file that is not of this format, in a version that is known here.

    It asks SQLite: reading the header ourselves would, on closing the file, drop the POSIX locks that other connections
    of this process hold on it, and another process could then destroy what they are writing.
    """
    try:
        application: int = connection.execute("PRAGMA application_id").get
        version: int = connection.execute("PRAGMA user_version").get
    except apsw.NotADBError:
        raise NotARunFile(f"{path} is not {expected.name}.", path=path, fix=_fix_for(path)) from None
    for other in (RUN_FILE, ENGINE_FILE):
        if application == other.application_id != expected.application_id:
            raise NotARunFile(f"{path} is {other.mistaken}.", path=path, fix=other.fix)
    if application != expected.application_id:
        what = "empty" if not path.stat().st_size else "a database of another program"
        raise NotARunFile(f"{path} is {what}, not {expected.name}.", path=path, fix="Use another path.")
    if version > expected.version:
        raise RunFileTooNew(
            f"{path} was written by a newer Headrace (file version {version}, known here: {expected.version}).",
            path=path,
            fix="Open it with the Headrace that wrote it, or a newer one.",
        )


def _fix_for(path: Path) -> str:
    """What to do with a file that is no database; EDSL's results are mostly called like this."""
    if path.name.lower().endswith((".ep", ".json", ".json.gz")):
        return Spelled(
            'If EDSL saved it, make a run file of it: Results.from_edsl(path, "study.run").',
            command="If EDSL saved it, make a run file of it: headrace import FILE -o study.run.",
        )
    return "Use another path; it is left as it is."


def has_format(connection: apsw.Connection, format: Format) -> bool:
    try:
        return connection.execute("PRAGMA application_id").get == format.application_id
    except apsw.NotADBError:
        return False
