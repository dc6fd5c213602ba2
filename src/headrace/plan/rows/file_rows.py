"""Rows that refer to files: one for each file of a directory, and columns that hold paths. Covers: finding the files.

What is no file (a socket, a pipe, a device) or leads in a circle is passed over, with a word. Does not cover: what a
file is (survey.files.file_store).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from headrace.display import counted
from headrace.edsl_names import warn_once
from headrace.errors import ListError, Spelled
from headrace.plan.sources.given_paths import given_path, is_directory, is_plain_file
from headrace.survey.files.file_store import FileStore
from headrace.survey.values import Fields

_DEEPEST = 32
_NAMED = 3


def files_of(directory: str | Path, *, recursive: bool | None, glob: str | None) -> Iterator[FileStore]:
    """The files of a directory in the order of their names; those whose names begin with a dot are left out.

    `recursive` looks into the directories in it too; None does not, and says which there are.
    `glob` chooses by name: "*.png". A directory's names are held to sort them, one directory at a time.
    """
    root = given_path(directory)
    if not is_directory(root):
        raise ListError(f"{root} is no directory.", fix="Give the path of a directory that holds the files.")
    passed_over: list[str] = []  # a few, to be named
    found = 0
    for path in _paths(root, recursive, passed_over):
        if glob is None or fnmatch(path.name, glob):
            found += 1
            yield FileStore(path)
    if passed_over:
        shown = ", ".join(passed_over[:_NAMED]) + (", ..." if len(passed_over) > _NAMED else "")
        warn_once(f"{counted(len(passed_over), 'entry')} of {root} passed over: {shown}.")
    if not found:
        which = "files" if glob is None else f"files like {glob}"
        hint = "" if recursive else " recursive=True looks into the directories in it too."
        raise ListError(f"{root} holds no {which}.", fix=f"Check the path.{hint}")


def with_files(rows: Iterable[Fields], name: str, folder: Path) -> Iterator[Fields]:
    """Each row with the file in place of its path, seen from `folder`. A row without one would be asked about nothing,
    and the answer paid: it is refused, as a path that leads nowhere is.
    """
    for number, fields in enumerate(rows, 1):
        path = fields.get(name)
        if path is None or (isinstance(path, str) and not path.strip()):
            raise ListError(f"Row {number:,}, field {name!r}: there is no path.", fix=_without_path(name))
        try:
            yield {**fields, name: _file_at(path, folder)}
        except ListError as error:
            raise ListError(f"Row {number:,}, field {name!r}: {error.message}", fix=error.fix) from None


def _without_path(name: str) -> Spelled:
    return Spelled(
        f'Write one, or leave such rows out: .filter("{name}") before .with_files.',
        command="Write one into the data, or leave such rows out of it.",
    )


def _file_at(path: Any, folder: Path) -> FileStore:
    if isinstance(path, FileStore):
        return path
    if not isinstance(path, str):
        raise ListError(f"{path!r} is no path of a file.", fix="Write paths into that column, or name another one.")
    return FileStore(folder / path.strip())


def _paths(root: Path, recursive: bool | None, passed_over: list[str]) -> Iterator[Path]:
    """All paths of files, depth first. `above` are the directories on the way: a link to one of them is a circle."""
    above: list[tuple[int, int]] = []

    def inside(directory: Path) -> Iterator[Path]:
        try:
            status = directory.stat()
            names = sorted(entry.name for entry in os.scandir(directory) if not entry.name.startswith("."))
        except OSError as error:
            _note(passed_over, directory, error.strerror or str(error))
            return
        here = (status.st_dev, status.st_ino)
        if here in above or len(above) >= _DEEPEST:
            _note(passed_over, directory, "leads in a circle" if here in above else "too deep")
            return
        above.append(here)
        for name in names:
            path = directory / name
            if is_directory(path):
                if recursive:
                    yield from inside(path)
                elif recursive is None:
                    _note(passed_over, path, "a directory: recursive=True looks into it")
            elif is_plain_file(path):
                yield path
            else:
                _note(passed_over, path, "no file, or a link that leads nowhere")
        above.pop()

    return inside(root)


def _note(passed_over: list[str], path: Path, why: str) -> None:
    passed_over.append(f"{path} ({why})" if len(passed_over) < _NAMED else "")
