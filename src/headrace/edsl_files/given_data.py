"""What users give to `from_edsl`, in one form: the members of a JSON object, its long lists as streams.

Covers: objects of EDSL (by their `to_dict()`), dicts, JSON text, `.json`, `.json.gz`, `.jsonl` and `.ep` files, and
which class of EDSL they hold. Does not cover: what the members mean (survey_reading and its like).
"""

from __future__ import annotations

import io
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

from headrace.edsl_files.carried_files import folder_beside
from headrace.edsl_files.carried_over import CarriedOver
from headrace.edsl_files.ep_packages import SUFFIX, open_package
from headrace.edsl_files.json_lines import line_members
from headrace.edsl_files.json_stream import JsonStream
from headrace.edsl_files.objects_of_edsl import note_functions
from headrace.errors import EdslFileError, Spelled

# Long where a study is large: read item by item.
_LISTS = frozenset({"agent_list", "agents", "scenarios", "models", "data"})
_NEVER_READ = frozenset({"cache", "task_history"})  # of results: long, and of no use here
# The first of these among an object's names says of which class it is.
_SIGNS = {
    "agent_list": "AgentList",
    "agents": "Jobs",
    "survey": "Jobs",
    "data": "Results",
    "created_columns": "Results",
    "questions": "Survey",
    "rule_collection": "Survey",
    "scenarios": "ScenarioList",
    "models": "ModelList",
    "traits": "Agent",
    "question_name": "QuestionBase",
    "question_type": "QuestionBase",
    "inference_service": "LanguageModel",
}
_PICKLE = b"\x80"  # how every pickle since protocol 2 begins; no JSON and no gzip does
Members = Iterator[tuple[str, Any]]


class EdslData:
    """One object of EDSL's. Its members can be read once; `notes` gathers what is not carried over.

    `path` is the file that it was read from, where it was one; `allowed` are the addresses and key variables of its
    models that the user allows; `files` is the folder for files in its scenarios.
    """

    def __init__(self, members: Members, notes: CarriedOver, path: Path | None) -> None:
        self._members = members
        self.notes = notes
        self.path = path
        self.allowed: frozenset[str] = frozenset()
        self.files = None if path is None else folder_beside(path)

    @property
    def place(self) -> str:
        return self.notes.place

    def members(self) -> Members:
        """Names and values; a long list is an iterator, which is read to its end before the next name."""
        for name, value in self._members:
            if name == "edsl_version":
                self.notes.see_version(value)
            else:
                yield name, value


@contextmanager
def opened(given: Any) -> Generator[EdslData]:
    """Open what a user gave."""
    if isinstance(given, str | os.PathLike) and not _is_json(cast(object, given)):
        path = Path(cast("str | os.PathLike[str]", given))
        with _opened_file(path) as data:
            yield data
        return
    if isinstance(given, str):
        notes = CarriedOver("The JSON text")
        yield EdslData(_streamed(JsonStream(io.BytesIO(given.encode("utf-8", "replace")), notes.place)), notes, None)
    elif isinstance(given, Mapping):
        held = cast("Mapping[str, Any]", given)
        notes = CarriedOver("The dict")
        yield EdslData(_of_mapping(held), notes, None)
    else:
        yield _of_object(cast(object, given))


@contextmanager
def _opened_file(path: Path) -> Generator[EdslData]:
    path = _found(path)
    notes = CarriedOver(str(path))
    name = path.name.lower()
    if name.endswith(SUFFIX):
        with open_package(path) as package:
            yield EdslData(package.members(), notes, path)
        return
    with _bytes_of(path) as file:
        is_lines = name.endswith((".jsonl", ".jsonl.gz"))
        members = line_members(file, notes.place) if is_lines else _streamed(JsonStream(file, notes.place))
        yield EdslData(members, notes, path)


def class_of(given: Any) -> str:
    """The class of EDSL that a file, a text or a dict holds, by its first names."""
    with opened(given) as data:
        for name, value in data.members():
            if name == "edsl_class_name" and isinstance(value, str):
                return value
            if name in _SIGNS:
                return _SIGNS[name]
        raise EdslFileError(
            f"{data.place} is nothing that EDSL writes.",
            fix="Give what save() or to_dict() of a Survey, an AgentList, a ScenarioList, a ModelList, a Jobs or a"
            " Results wrote.",
        )


def wrong_class(data: EdslData, wanted: str, found: str) -> EdslFileError:
    """The error for a file that holds something else."""
    ways = {
        "Survey": "Survey.from_edsl",
        "QuestionBase": "Survey.from_edsl",
        "AgentList": "AgentList.from_edsl",
        "Agent": "Agent.from_edsl",
        "ScenarioList": "ScenarioList.from_edsl",
        "Scenario": "Scenario.from_edsl",
        "ModelList": "ModelList.from_edsl",
        "LanguageModel": "Model.from_edsl",
        "Jobs": "Job.from_edsl",
        "Results": "Results.from_edsl",
    }
    fix = f"Give a {wanted}."
    if found in ways:
        command = f"Make a file of Headrace's of it: headrace import {data.place}"
        fix = Spelled(f"Read it with {ways[found]}.", command=command)
    return EdslFileError(f"{data.place} holds EDSL's {found[:60]}, not its {wanted}.", fix=fix)


def refuse_other_class(data: EdslData, wanted: tuple[str, ...], name: str, value: Any) -> None:
    """Refuse a member that only objects of another class have, or that says so."""
    found = value if name == "edsl_class_name" else _SIGNS.get(name)
    if isinstance(found, str) and found not in wanted:
        raise wrong_class(data, wanted[0], found)


def _is_json(given: object) -> bool:
    return isinstance(given, str) and given.lstrip()[:1] in ("{", "[")


def _found(path: Path) -> Path:
    """EDSL's programs write save("pets") and load("pets")."""
    if path.suffix or path.exists():
        return path
    beside = (path.with_name(f"{path.name}{suffix}") for suffix in (SUFFIX, ".json.gz", ".json"))
    return next((each for each in beside if each.exists()), path)


@contextmanager
def _bytes_of(path: Path) -> Generator[IO[bytes]]:
    import gzip

    with ExitStack() as stack:
        try:
            file: IO[bytes] = stack.enter_context(path.open("rb"))
        except OSError as error:
            raise EdslFileError(f"{path} cannot be read: {error.strerror or error}.", fix="Check the path.") from None
        if file.read(2)[:1] == _PICKLE:
            raise EdslFileError(
                f"{path} is a pickle: a program that would run when it is read. It is not read.",
                fix='Save it in EDSL as JSON: save("study.json.gz").',
            )
        file.seek(0)
        yield cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if path.suffix.lower() == ".gz" else file


def _streamed(stream: JsonStream) -> Members:
    for name in stream.members():
        if name in _LISTS and stream.is_at_array():
            items = stream.items()
            yield name, items
            for _ in items:  # what its reader left
                pass
        elif name in _NEVER_READ:
            stream.skip()
        else:
            yield name, stream.value()
    stream.end()


def _of_mapping(held: Mapping[str, Any]) -> Members:
    for name, value in held.items():
        yield name, iter(cast("list[Any]", value)) if name in _LISTS and isinstance(value, (list, tuple)) else value


def _of_object(given: object) -> EdslData:
    kind = type(given)
    to_dict = getattr(given, "to_dict", None)
    if kind.__module__.partition(".")[0] == "headrace":
        raise EdslFileError(f"The {kind.__name__} is Headrace's own already.", fix="Use it as it is.")
    if not callable(to_dict):
        raise EdslFileError(
            f"{given!r} is nothing of EDSL's.", fix="Give an object of EDSL, its to_dict(), JSON text, or a path."
        )
    notes = CarriedOver(f"EDSL's {kind.__name__}")
    held = to_dict()
    if not isinstance(held, Mapping):
        raise EdslFileError(f"to_dict() of {kind.__name__} gave no dict.", fix="Give an object of EDSL.")
    note_functions(given, notes)
    return EdslData(_of_mapping(cast("Mapping[str, Any]", held)), notes, None)
