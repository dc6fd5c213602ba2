"""A file of addresses, `base_url="@endpoints.txt"`: one address a line; blank lines and what follows a # are left out.

Covers: reading it, and noticing that it has changed. Does not cover: when to look, and who hears of it
(models.address_list), or whether this user lets it be read (interviews.permissions).
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TypeAlias

from headrace.errors import ListError
from headrace.models.http_client.http_options import is_address
from headrace.survey.model import Model, address_file_of
from headrace.survey.secrecy import refuse_in_url

_MOST_BYTES = 1 << 20
_MOST_ADDRESSES = 1_000  # each call looks at all of them
_MOST_UNSETTLED = 3  # looks in a row
_COMMENT = re.compile(r"(^|\s)#.*")
_FIX = "Write one address a line, like http://localhost:8000/v1; what follows a # is left out."

_Signature: TypeAlias = tuple[int, int, int, int]


def resolved_file(written: str) -> Path:
    """The file that a model means, found from the current directory now: a later chdir changes nothing."""
    return Path(written).expanduser().resolve()


class AddressFile:
    """The address file of one model. `look` is for one thread at a time."""

    def __init__(self, model: str, written: str) -> None:
        self._model = model
        self.path = resolved_file(written)
        self._read: _Signature | None = None  # what the file was when it was last read
        self._seen: _Signature | None = None  # what it was at the last look
        self._unsettled = 0

    @classmethod
    def of(cls, model: Model) -> AddressFile | None:
        """The model's address file; None where its addresses are written into the model."""
        written = address_file_of(model.parameters)
        return None if written is None else cls(model.name, written)

    def read(self) -> tuple[str, ...]:
        """Return the addresses, each once; ListError says what is wrong, and in which line."""
        self._read = self._seen = None  # where it cannot be read, the next look tries again
        try:
            signature, held = self._content()
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror}") from None
        self._read = self._seen = signature
        if len(held) > _MOST_BYTES:
            raise self._unusable(f"is larger than {_MOST_BYTES:,} bytes")
        return self._addresses(held)

    def look(self) -> tuple[str, ...] | None:
        """Read the addresses again where the file has changed since; else None. ListError as for `read`.

        A file that is just being written is left until two looks find it the same, since half an address may be one
        too; but not for long, since some programs replace their file all the time.
        """
        signature = self._signature()
        if signature is not None and signature == self._read:
            self._seen, self._unsettled = signature, 0
            return None
        if signature != self._seen and self._unsettled + 1 < _MOST_UNSETTLED:
            self._seen, self._unsettled = signature, self._unsettled + 1
            return None
        self._unsettled = 0
        return self.read()

    def _addresses(self, held: bytes) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for number, line in enumerate(held.decode("utf-8-sig", "replace").split("\n"), 1):
            if address := _COMMENT.sub("", line).strip():
                self._check(address, number)
                found[address.rstrip("/")] = None
        if not found:
            raise self._unusable("has no address")
        if len(found) > _MOST_ADDRESSES:
            raise self._unusable(f"has {len(found):,} addresses; {_MOST_ADDRESSES:,} are the most")
        return tuple(found)

    def _check(self, address: str, line: int) -> None:
        if not is_address(address):  # not quoted: whatever it is, it may be secret
            raise self._unusable(f"has no address in line {line}")
        try:
            refuse_in_url(self._model, address)
        except ListError as error:
            raise ListError(f"{self.path}, line {line}: {error.message}", fix=error.fix) from None

    def _signature(self) -> _Signature | None:
        try:
            return _signature_of(self.path.stat())
        except OSError:
            return None

    def _content(self) -> tuple[_Signature, bytes]:
        # Not blocking: a pipe of that name would have to be written to before it opens.
        descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise self._unusable("is no file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return _signature_of(found), file.read(_MOST_BYTES + 1)
        finally:
            os.close(descriptor)

    def _unusable(self, what: str) -> ListError:
        return ListError(f"Model {self._model!r}: its address file {self.path} {what}.", fix=_FIX)


def _signature_of(found: os.stat_result) -> _Signature:
    """What changes when a file is written, replaced, or made readable."""
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns
