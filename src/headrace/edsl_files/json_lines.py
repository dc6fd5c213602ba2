"""EDSL's JSON lines, which `to_jsonl` writes and an `.ep` file holds: a header, counts, and a line for each item.

    {"__header__": true, "edsl_class_name": "Results", ...}
    {"n_survey_lines": 7, "n_task_history_lines": 5, ...}
    the lines of the survey, the first of them its own header
    the lines of the task history, which says what failed and is not read
    a line for each result

A list has its header and a line for each agent or scenario; a job its header and one line.

Does not cover: what a survey and a result hold (survey_reading, result_rows).
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any, cast

from headrace.edsl_files.json_stream import LARGEST_VALUE
from headrace.errors import EdslFileError, Spelled
from headrace.plan.sources.text_files import BlankLines

_MOST_LINES = 100_000  # of a survey
_FORMAT_VERSION = 2
_LISTS = {"AgentList": "agent_list", "ScenarioList": "scenarios"}


def line_members(file: IO[bytes], place: str) -> Iterator[tuple[str, Any]]:
    """The members of the object that these lines are: a survey, results, a list or a job."""
    lines = _Lines(file, place)
    header = lines.next()
    if header.get("__header__") is not True:
        raise EdslFileError(
            f"{place} is no file of EDSL's: its first line is no header.",
            fix=Spelled(
                "Rows are read with from_jsonl; a study is a .yaml or .json file.",
                command="Rows are given with --agents, --scenarios or --data; a study is a .yaml or .json file.",
            ),
        )
    yield "edsl_class_name", header.get("edsl_class_name")
    yield "edsl_version", header.get("edsl_version")
    if header.get("edsl_class_name") == "Survey":
        yield from _survey(header, lines).items()
        return
    if header.get("edsl_class_name") in _LISTS:
        yield _LISTS[header["edsl_class_name"]], iter(lines)
        return
    if header.get("edsl_class_name") == "Jobs":
        yield from lines.next().items()
        return
    if header.get("edsl_class_name") != "Results":
        raise lines.wrong("its lines are neither a survey, results, a list nor a job")
    if header.get("format_version", 1) not in range(1, _FORMAT_VERSION + 1):
        raise lines.wrong(f"its format {str(header['format_version'])[:20]} is newer than {_FORMAT_VERSION}")
    counts = lines.next()
    surveyed, told = lines.count(counts, "n_survey_lines"), lines.count(counts, "n_task_history_lines")
    yield "created_columns", counts.get("created_columns")
    yield "name", counts.get("name")
    yield "survey", _survey(lines.next(), lines.some(surveyed - 1))
    for _ in lines.some(told):
        pass
    yield "data", iter(lines)


def _survey(header: dict[str, Any], questions: Iterator[dict[str, Any]]) -> dict[str, Any]:
    unneeded = ("__header__", "n_questions")
    held = {name: value for name, value in header.items() if name not in unneeded}
    return {**held, "questions": list(islice(questions, _MOST_LINES))}


class _Lines:
    """The objects in the lines, one at a time; blank lines are passed over."""

    def __init__(self, file: IO[bytes], place: str) -> None:
        self._file, self._place = file, place

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> dict[str, Any]:
        blanks = BlankLines()
        while line := self._line():
            if line.strip():
                return self._decoded(line)
            if blanks.are_too_many(len(line)):
                raise self.wrong(blanks.told)
        raise StopIteration

    def next(self) -> dict[str, Any]:
        if (found := next(self, None)) is None:
            raise self.wrong("it ends too early")
        return found

    def some(self, count: int) -> Iterator[dict[str, Any]]:
        for _ in range(count):
            yield self.next()

    def count(self, counts: dict[str, Any], name: str) -> int:
        number = counts.get(name, 0)
        if type(number) is not int or number < 0:
            raise self.wrong(f"{name} is no number of lines")
        return number

    def _line(self) -> bytes:
        try:
            line = self._file.readline(LARGEST_VALUE + 1)
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
            raise self.wrong(str(error) or "it is cut off") from None
        if len(line) > LARGEST_VALUE:
            raise self.wrong(f"a line in it has more than {LARGEST_VALUE:,} bytes")
        return line

    def _decoded(self, line: bytes) -> dict[str, Any]:
        try:
            held = json.loads(line)
        except (ValueError, RecursionError):
            raise self.wrong("a line in it is not valid JSON") from None
        if not isinstance(held, dict):
            raise self.wrong("a line in it is no JSON object")
        return cast("dict[str, Any]", held)

    def wrong(self, what: str) -> EdslFileError:
        return EdslFileError(f"{self._place} cannot be read: {what}.", fix="Save it again in EDSL.")
