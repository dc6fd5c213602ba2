"""The contents of files in prompts that a run file holds: each once, by its digest, in parts of a block.

A file counts as embedded once its line in `embedded` is there, which is written behind its last part. Does not cover:
checking contents when they are read (survey.files.checked_file does, by the digest).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

import apsw

from headrace.errors import FileUnusable
from headrace.plan.job import Job
from headrace.store.contents import raw_rows
from headrace.store.live_file import LiveFile
from headrace.store.run_file.reader import open_run_file
from headrace.store.run_file.run_schema import add_embedded_files, has_embedded_files
from headrace.store.transactions import transaction
from headrace.survey.files.checked_file import blocks_of, new_digest
from headrace.survey.files.file_contents import FileReference, add_source, remove_source
from headrace.survey.files.file_store import FileStore
from headrace.survey.values import decode_fields

_PARTS_A_TRANSACTION = 32  # 12 MB
_FILE = b'"$file"'


def embed_files(live: LiveFile, job: Job, pause: Callable[[], None]) -> None:
    """Keep every file that the scenarios refer to and that is not kept yet; `pause` may raise to stop.

    A file that cannot be read now is left out: its interviews say why.
    """
    connection = live.connection
    add_embedded_files(connection)
    for row in job.scenarios.source.rows():
        if _FILE in row:
            for file in _files_in(decode_fields(row)):
                if not connection.execute("SELECT 1 FROM embedded WHERE digest = ?", (file.digest,)).fetchone():
                    _embed(live, file, pause)


def _embed(live: LiveFile, file: FileStore, pause: Callable[[], None]) -> None:
    connection = live.connection
    # What an embedding that was cut short has left.
    connection.execute("DELETE FROM embedded_parts WHERE digest = ?", (file.digest,))
    parts = enumerate(blocks_of(file))
    try:
        while batch := list(islice(parts, _PARTS_A_TRANSACTION)):
            with transaction(connection):
                connection.executemany(
                    "INSERT INTO embedded_parts VALUES(?, ?, ?)", ((file.digest, part, block) for part, block in batch)
                )
            live.keep_log_short()
            pause()
    except FileUnusable:
        connection.execute("DELETE FROM embedded_parts WHERE digest = ?", (file.digest,))
    else:
        connection.execute("INSERT INTO embedded VALUES(?, ?)", (file.digest, file.size))


def add_embedded(connection: apsw.Connection, source: apsw.Connection) -> None:
    """Copy the files that another run file holds whole and this one does not, part by part."""
    if not has_embedded_files(source):
        return
    add_embedded_files(connection)
    for digest, size in raw_rows(source, "SELECT digest, bytes FROM embedded"):
        if connection.execute("SELECT 1 FROM embedded WHERE digest = ?", (digest,)).fetchone():
            continue
        with transaction(connection):
            parts = raw_rows(source, "SELECT digest, part, content FROM embedded_parts WHERE digest = ?", (digest,))
            connection.executemany("INSERT INTO embedded_parts VALUES(?, ?, ?)", parts)
            connection.execute("INSERT INTO embedded VALUES(?, ?)", (digest, size))


def damaged_files(connection: apsw.Connection) -> Iterator[str]:
    """The digests of embedded files whose parts are not those that were written; each part is read."""
    if not has_embedded_files(connection):
        return
    for digest, size in raw_rows(connection, "SELECT digest, bytes FROM embedded"):
        found, length = new_digest(), 0
        sql = "SELECT content FROM embedded_parts WHERE digest = ? ORDER BY part"
        for (content,) in raw_rows(connection, sql, (digest,)):
            if isinstance(content, bytes):
                found.update(content)
                length += len(content)
        if (length, found.hexdigest()) != (size, digest):
            yield str(digest)


def _files_in(value: Any) -> Iterator[FileStore]:
    match value:
        case FileStore():
            yield value
        case dict():
            for item in cast("dict[str, Any]", value).values():
                yield from _files_in(item)
        case list():
            for item in cast("list[Any]", value):
                yield from _files_in(item)
        case _:
            pass


class EmbeddedFiles:
    """The embedded files of one run file, for reading; from any thread, one at a time. Made by `use`: from then on
    until `close`, files are read from here.
    """

    is_elsewhere = False

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    @classmethod
    def use(cls, path: str) -> EmbeddedFiles | None:
        """None where no run file is named, or it embeds nothing."""
        if not path:
            return None
        connection = open_run_file(Path(path))
        if not has_embedded_files(connection):
            connection.close()
            return None
        found = cls(connection)
        add_source(found)
        return found

    def open(self, file: FileReference) -> EmbeddedContent | None:
        size = self.value("SELECT bytes FROM embedded WHERE digest = ?", (file.digest,))
        return None if not isinstance(size, int) else EmbeddedContent(self, file.digest, size)

    def value(self, sql: str, bindings: tuple[str | int, ...]) -> object:
        """The one value that a statement finds; OSError where it cannot be read."""
        try:
            with self._lock:
                found = self._connection.execute(sql, bindings).fetchone()
        except apsw.Error as error:
            raise OSError(0, f"the run file cannot be read ({error})") from None
        return None if found is None else found[0]

    def close(self) -> None:
        remove_source(self)
        with self._lock:
            self._connection.close()


class EmbeddedContent:
    """One embedded file, read from its beginning on."""

    path = None

    def __init__(self, files: EmbeddedFiles, digest: str, size: int) -> None:
        self._files = files
        self._digest = digest
        self._size = size
        self._part = 0

    def size(self) -> int:
        return self._size

    def read(self, most_bytes: int) -> bytes:
        """The next part; parts are as long as the blocks that are asked for."""
        sql = "SELECT content FROM embedded_parts WHERE digest = ? AND part = ? AND length(content) <= ?"
        part = self._files.value(sql, (self._digest, self._part, most_bytes))
        self._part += 1
        return part if isinstance(part, bytes) else b""

    def close(self) -> None:
        pass  # nothing is held open between parts
