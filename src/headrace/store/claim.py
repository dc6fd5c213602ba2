"""A claim is a note in the file itself of the process that writes it. The lock beside the file is not enough: it may be
deleted under a live run, stay behind when the file is moved, or have no effect on a network file system.

Covers: refusing a file that a live process of this host writes, and fencing: after another process has claimed the
file, no transaction of the earlier one commits. Does not cover: the lock (lock).
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import apsw
import msgspec

from headrace.errors import RunFileBusy
from headrace.store.lock import busy

_KEY = "writer"
_READ = f"SELECT value FROM meta WHERE key = '{_KEY}'"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PROCESSES = Path("/proc/self/ns/pid")
_ours: set[str] = set()  # the claims that this process has made and not given back


class _WriterNote(msgspec.Struct, frozen=True):
    """The process that wrote the claim. `host` is the machine's boot and pid namespace, `started` tells the process
    from a later one with its pid, and `file` tells the file it writes from a copy of that file.
    """

    token: str
    pid: int
    started: str
    host: str
    file: str


class Claim:
    """This process's claim on one file: `take` writes it, `check` compares it inside every transaction."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self._path = path
        self._connection = connection
        self._text = msgspec.json.encode(
            _WriterNote(secrets.token_hex(8), os.getpid(), _start_of(os.getpid()), _host(), _file(path))
        ).decode()

    def take(self) -> None:
        """Write the claim, inside the caller's transaction, which holds the database's write lock."""
        refuse_live_writer(self._connection, self._path)
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (_KEY, self._text))
        _ours.add(self._text)

    def check(self) -> None:
        """Raise RunFileBusy, and so roll back, where another process has claimed the file."""
        if self._connection.execute(_READ).get != self._text:
            raise RunFileBusy(
                f"{self._path} was taken over by another process while this one was writing it.",
                path=self._path,
                fix="Everything journaled is in the file and the other process goes on with it; run one at a time.",
            )

    def remove(self) -> None:
        """Delete the claim, inside the caller's transaction."""
        self._connection.execute(f"DELETE FROM meta WHERE key = '{_KEY}'")

    def forget(self) -> None:
        """Note that this process writes the file no more: a claim left in it counts as stale."""
        _ours.discard(self._text)


def refuse_live_writer(connection: apsw.Connection, path: Path) -> None:
    """Raise RunFileBusy where a live process of this host has claimed the file. A claim from another host is ignored:
    the process may be long gone, and if it is not, its next transaction is refused.
    """
    text = connection.execute(_READ).get
    writer = _decoded(text)
    if writer is None or writer.host != _host() or writer.file != _file(path):
        return
    if text in _ours if writer.pid == os.getpid() else _start_of(writer.pid) == writer.started != "":
        raise busy(path, writer.pid)


def _decoded(text: object) -> _WriterNote | None:
    """Decode a claim; None where there is none, or one that this version cannot read."""
    try:
        return msgspec.json.decode(text, type=_WriterNote) if isinstance(text, str) else None
    except msgspec.DecodeError:
        return None


def _host() -> str:
    try:
        return f"{_BOOT.read_text('ascii').strip()} {_PROCESSES.stat().st_ino}"
    except OSError:
        return ""  # not Linux: no process is told live from dead, and the lock has to do


def _file(path: Path) -> str:
    found = path.stat()
    return f"{found.st_dev}:{found.st_ino}"


def _start_of(pid: int) -> str:
    """Return when a process started, in the kernel's clock ticks; empty where it has ended. A zombie has ended: in a
    container without an init, a killed writer stays a zombie for good.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        is_zombie = fields[0] in "ZX" and int(fields[17]) <= 1  # with more threads than the first, it is still ending
        return "" if is_zombie else fields[19]
    except (OSError, IndexError):
        return ""
