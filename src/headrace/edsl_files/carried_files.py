"""Files in EDSL's scenarios: EDSL holds their contents as text, here they are files of their own, one for each content.

They are written for their owner alone, under the names that EDSL knew, each in a folder that is named by the digest of
its content. Without a folder, and where
EDSL left the content out, the field holds the path as text: a path that a file claims is never opened. Does not cover:
sending files to models (survey.files).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from headrace.edsl_files.carried_over import CarriedOver
from headrace.errors import EdslFileError, HeadraceError
from headrace.store.private import make_directory, make_file
from headrace.survey.files.file_store import FileStore

CONTENT = "content"  # of a file in an `.ep` package, as bytes
_SUFFIX = re.compile(r"[A-Za-z0-9]{1,10}")
_PLAIN_NAME = re.compile(r"\w[\w .()+-]{0,80}")
_DIGEST_BYTES = 16


def is_file(value: Any) -> bool:
    """Whether a value is a file as EDSL writes it, or as `ep_packages` gives it."""
    if not isinstance(value, Mapping):
        return False
    held = cast("Mapping[str, Any]", value)
    return "path" in held and ("base64_string" in held or CONTENT in held)


def folder_beside(path: Path) -> Path:
    """The folder for the files of a study: `pets.files` beside `pets.json.gz`."""
    return path.with_name(f"{path.name.partition('.')[0] or path.stem}.files")


def with_files(fields: dict[str, Any], folder: Path | None, notes: CarriedOver) -> dict[str, Any]:
    """A scenario's fields with files in place of what EDSL wrote of them."""
    if not any(map(_may_hold_file, fields.values())):
        return fields
    return {name: _carried(value, name, folder, notes) for name, value in fields.items()}


def _may_hold_file(value: Any) -> bool:
    return isinstance(value, (Mapping, list))


def _carried(value: Any, name: str, folder: Path | None, notes: CarriedOver) -> Any:
    if is_file(value):
        return _file(cast("Mapping[str, Any]", value), name, folder, notes)
    if isinstance(value, list):
        return [_carried(item, name, folder, notes) for item in cast("list[Any]", value)]
    return value


def _file(held: Mapping[str, Any], name: str, folder: Path | None, notes: CarriedOver) -> Any:
    path, content = str(held["path"])[:1_000], _content(held)
    if content is None:
        notes.note(
            f"the file in the scenarios' field {name[:60]!r}, whose content EDSL left out: the field has its path"
        )
        return path
    if folder is None:
        notes.note(
            f"the file in the scenarios' field {name[:60]!r}, for which there is no folder: the field has its path"
        )
        return path
    try:
        return FileStore(_written(content, _name(path, held.get("suffix")), folder))
    except HeadraceError as error:
        notes.note(f"a file in the scenarios' field {name[:60]!r}: {error.message[:200]} The field has its path")
        return path


def _content(held: Mapping[str, Any]) -> bytes | None:
    if isinstance(given := held.get(CONTENT), bytes):
        return given
    text = held.get("base64_string")
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) and text != "offloaded" else None
    except (binascii.Error, ValueError):
        return None


def _name(path: str, suffix: Any) -> str:
    """The name of a file as a study claims it, where it is a plain one and says what the file is."""
    ending = f".{suffix.lower()}" if isinstance(suffix, str) and _SUFFIX.fullmatch(suffix) else ""
    name = re.split(r"[/\\]", path)[-1]
    return name if _PLAIN_NAME.fullmatch(name) and name.lower().endswith(ending) else f"file{ending}"


def _written(content: bytes, name: str, folder: Path) -> Path:
    """The file with this content: one that is there already, or a new one, whole under its name."""
    place = folder / hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()
    path, unfinished = place / name, place / f".{secrets.token_hex(8)}.part"
    try:
        make_directory(folder)
        make_directory(place)
        if not path.exists():
            make_file(unfinished)
            unfinished.write_bytes(content)
            unfinished.replace(path)
    except OSError as error:
        raise EdslFileError(
            f"A file of the study cannot be written into {folder}: {error.strerror}.", fix="Check the folder."
        ) from None
    finally:
        unfinished.unlink(missing_ok=True)
    return path
