"""`.ep` files: a zip of the work tree of a git repository, in which EDSL keeps one object and its history.

    manifest.json            the class, its format and version, the order of its items
    questions/000001.json    a file an item: of a survey; agents/, scenarios/, models/ of the lists
    metadata/*.json          rules, memory and groups of a survey
    files/sha256/ab/cdef...  the contents of files that scenarios refer to
    survey/ agents/ ...      of a job: each is such a tree again; job.json has the rest
    results, as JSON lines   of results: json_lines
    .git/                    earlier versions, which are not looked at

Files are read out of the zip as they are needed: nothing is unpacked, and git is never called. Does not cover: what the
files hold (survey_reading and its like).
"""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from headrace.edsl_files.carried_files import CONTENT
from headrace.edsl_files.json_lines import line_members
from headrace.edsl_files.json_stream import LARGEST_VALUE
from headrace.errors import EdslFileError

SUFFIX = ".ep"
_FORMAT, _FORMAT_VERSION = "edsl.{}.git_package", 1
_END, _END_BYTES = b"PK\x05\x06", 22
_LARGEST_DIRECTORY = 64_000_000  # bytes of names: Python holds all of them, ten times as large
_UNREADABLE = (zipfile.BadZipFile, OSError, EOFError, zlib.error, ValueError, RuntimeError, NotImplementedError)
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # Python unpacks what is packed in other ways without a bound
# For each kind of package: the class, the name of its items in EDSL's dicts, their folder, and the order of their ids.
_LISTS = {
    "survey": ("Survey", "questions", "question_order"),
    "agent_list": ("AgentList", "agents", "agent_order"),
    "scenario_list": ("ScenarioList", "scenarios", "scenario_order"),
    "model_list": ("ModelList", "models", "model_order"),
}
_OF_A_SURVEY = ("memory_plan", "rule_collection", "question_groups", "name", "questions_to_randomize", "options_to_pin")
_OF_ALL_AGENTS = ("codebook", "instruction", "traits_presentation_template")


@contextmanager
def open_package(path: Path) -> Generator[EpPackage]:
    """Open an `.ep` file."""
    try:
        _check_directory(path)
        archive = zipfile.ZipFile(path)
    except _UNREADABLE as error:
        reason = getattr(error, "strerror", None) or "it is no .ep file of EDSL's"
        raise EdslFileError(f"{path} cannot be read: {reason}.", fix="Save it again in EDSL.") from None
    with archive:
        yield EpPackage(archive, path)


class EpPackage:
    """One package; the methods give its parts in the form of EDSL's dicts."""

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive, self._path = archive, path
        self._names = frozenset(archive.namelist())

    def members(self) -> Iterator[tuple[str, Any]]:
        """The members of the object, as its `to_dict()` has them."""
        manifest = self._json("manifest.json")
        kind = self._kind(manifest)
        yield "edsl_version", manifest.get("edsl_version")
        if kind == "results":
            with self._file("results.jsonl") as file:
                yield from line_members(file, str(self._path))
        elif kind == "jobs":
            yield "edsl_class_name", "Jobs"
            yield from self._job()
        else:
            yield "edsl_class_name", _LISTS[kind][0]
            yield from self._listed(kind, "", manifest)

    def _kind(self, manifest: dict[str, Any]) -> str:
        kinds = {_FORMAT.format(kind): kind for kind in (*_LISTS, "jobs", "results")}
        written, version = manifest.get("format"), manifest.get("format_version")
        if not isinstance(written, str) or written not in kinds:
            raise self._wrong(f"its format is {str(written)[:60]!r}, which is not known here")
        if version != _FORMAT_VERSION:
            raise self._wrong(f"its format has version {str(version)[:20]}, and 1 is known here")
        return kinds[written]

    def _job(self) -> Iterator[tuple[str, Any]]:
        about = self._json("job.json")
        for name, kind in (("agents", "agent_list"), ("scenarios", "scenario_list"), ("models", "model_list")):
            manifest = self._json(f"{name}/manifest.json")
            self._check_same(kind, manifest)
            for part, value in self._listed(kind, f"{name}/", manifest):
                yield (name, value) if part in ("agent_list", name) else (f"{name}.{part}", value)
        manifest = self._json("survey/manifest.json")
        self._check_same("survey", manifest)
        yield (
            "survey",
            {
                part: list(value) if part == "questions" else value
                for part, value in self._listed("survey", "survey/", manifest)
            },
        )
        for name, value in about.items():
            if name == "dependencies":
                yield "_depends_on", value or None
            elif name == "_include_expression":
                yield "include_expression", value
            else:
                yield name, value

    def _check_same(self, kind: str, manifest: dict[str, Any]) -> None:
        if self._kind(manifest) != kind:
            raise self._wrong("its parts do not belong together")

    def _listed(self, kind: str, folder: str, manifest: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        _, items, order = _LISTS[kind]
        ids = manifest.get(order)
        if not isinstance(ids, list):
            raise self._wrong(f"its manifest has no {order}")
        held = (self._json(f"{folder}{items}/{each}.json") for each in cast("list[Any]", ids))
        if kind == "survey":
            yield "questions", held
            for part in _OF_A_SURVEY:
                if (name := f"{folder}metadata/{part}.json") in self._names:
                    yield part, self._any_json(name)
        elif kind == "agent_list":
            shared = {part: manifest[part] for part in _OF_ALL_AGENTS if manifest.get(part)}
            yield "agent_list", ({**agent, **shared} for agent in held)
        else:
            yield items, (self._with_contents(item, folder) for item in held)
            if (name := f"{folder}codebook.json") in self._names:
                yield "codebook", self._any_json(name)

    def _with_contents(self, item: Any, folder: str) -> Any:
        """A scenario with the contents of the files that it refers to."""
        if isinstance(item, list):
            return [self._with_contents(each, folder) for each in cast("list[Any]", item)]
        if not isinstance(item, dict):
            return item
        held = cast("dict[str, Any]", item)
        if held.get("edsl_type") != "FileStoreRef":
            return {name: self._with_contents(each, folder) for name, each in held.items()}
        digest = str(held.get("sha256"))
        content = self._bytes(f"{folder}files/sha256/{digest[:2]}/{digest[2:]}")
        if hashlib.sha256(content).hexdigest() != digest:
            raise self._wrong(f"the file {digest[:12]} in it is not as it was saved")
        return {"path": str(held.get("path")), "suffix": held.get("suffix"), CONTENT: content}

    def _json(self, name: str) -> dict[str, Any]:
        held = self._any_json(name)
        if not isinstance(held, dict):
            raise self._wrong(f"{name} in it is no JSON object")
        return cast("dict[str, Any]", held)

    def _bytes(self, name: str) -> bytes:
        with self._file(name) as file:
            content = file.read(LARGEST_VALUE + 1)
        if len(content) > LARGEST_VALUE:
            raise self._wrong(f"{name} in it has more than {LARGEST_VALUE:,} bytes")
        return content

    def _any_json(self, name: str) -> Any:
        try:
            return json.loads(self._bytes(name))
        except (ValueError, RecursionError):
            raise self._wrong(f"{name} in it is not valid JSON") from None

    @contextmanager
    def _file(self, name: str) -> Generator[IO[bytes]]:
        if name not in self._names:
            raise self._wrong(f"{name} is not in it")
        if self._archive.getinfo(name).compress_type not in _BOUNDED:
            raise self._wrong(f"{name} in it is packed in a way that EDSL does not use")
        try:
            with self._archive.open(name) as file:
                yield file
        except _UNREADABLE as error:
            raise self._wrong(f"{name} in it is damaged: {error}") from None

    def _wrong(self, what: str) -> EdslFileError:
        return EdslFileError(f"{self._path} cannot be read: {what}.", fix="Save it again in EDSL 1.0.9.")


def _check_directory(path: Path) -> None:
    """Refuse a zip whose list of names is beyond all bounds, before Python reads that list."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END_BYTES - 65_535))
        tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        raise zipfile.BadZipFile("no end of a zip")
    (directory_bytes,) = struct.unpack_from("<I", tail, at + 12)
    if directory_bytes > _LARGEST_DIRECTORY:
        raise zipfile.BadZipFile("too many files")
