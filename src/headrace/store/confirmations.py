"""Confirmations: which addresses, keys, budgets and sizes this user has confirmed for each plan.

    <data directory>/confirmed/<plan's digest>      a few hundred bytes of JSON, mode 0600

They are kept outside the run files, because a run file may come from somebody else. A record that cannot be read, or
belongs to another user, counts as not confirmed; where the directory cannot be written, the user is asked again. Does
not cover: what needs to be confirmed (interviews.permissions).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from headrace.plain_files.side_files import open_side_file
from headrace.store.home import home
from headrace.store.private import make_directory, open_file

try:
    import fcntl
except ImportError:  # Windows has no flock
    fcntl = None

_MOST_BYTES = 1_000_000
_MOST_MEMORIES = 16
_LOCK = ".lock"
_Limit = TypeVar("_Limit", int, float)
_Pair: TypeAlias = tuple[str, str | None]


class Confirmed(msgspec.Struct, frozen=True, kw_only=True):
    """The most that was ever confirmed for a plan.

    `contacts` are addresses, each with the environment variable of its key. `prices` are those given with models: a
    limit of cost is worth what its prices are. `max_cost` and `max_tokens_total` are None where a run without that
    limit was confirmed.
    """

    contacts: tuple[_Pair, ...] = ()
    prices: tuple[str, ...] = ()
    interviews: int = 0
    max_cost: float | None = None
    max_tokens_total: int | None = None
    memory: tuple[str | int, ...] = ()
    workers: int = 0

    def joined(self, more: Confirmed) -> Confirmed:
        memories = dict.fromkeys((*self.memory, *more.memory))
        return Confirmed(
            contacts=tuple(dict.fromkeys((*self.contacts, *more.contacts))),
            prices=tuple(dict.fromkeys((*self.prices, *more.prices))),
            interviews=max(self.interviews, more.interviews),
            max_cost=_looser(self.max_cost, more.max_cost),
            max_tokens_total=_looser(self.max_tokens_total, more.max_tokens_total),
            memory=tuple(memories)[-_MOST_MEMORIES:],
            workers=max(self.workers, more.workers),
        )


def read_confirmed(plan: str) -> Confirmed | None:
    """Read this user's confirmations for a plan; None where there are none, or they cannot be trusted."""
    try:
        descriptor = open_side_file(_directory() / plan)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
            return None  # another user may have written it
        try:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=Confirmed)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None


def remember(plan: str, confirmed: Confirmed) -> None:
    """Add to the confirmations for a plan. Two processes may do so at once; each reader sees a whole file."""
    if read_confirmed(plan) == confirmed:
        return
    with suppress(OSError), _locked(_directory()):
        before = read_confirmed(plan)
        joined = confirmed if before is None else before.joined(confirmed)
        if joined != before:
            _replace(_directory() / plan, msgspec.json.encode(joined))


def _directory() -> Path:
    return home() / "confirmed"


def is_within(found: float | None, confirmed: float | None) -> bool:
    """Whether a limit is at least as tight as the confirmed one; None means no limit."""
    return confirmed is None or (found is not None and found <= confirmed)


def _looser(one: _Limit | None, other: _Limit | None) -> _Limit | None:
    return None if one is None or other is None else max(one, other)


@contextmanager
def _locked(directory: Path) -> Generator[None]:
    make_directory(directory)
    if fcntl is None:
        yield
        return
    descriptor = open_file(directory / _LOCK)
    try:
        with suppress(OSError):  # a file system without locks: the last writer wins
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
