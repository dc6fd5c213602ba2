"""The failures of a run, grouped by cause and by a message in which what differs from case to case is left out.

Messages are of one group where they are the same after `normalised`: quoted texts become "...", addresses, ids and
numbers become words. Failures are read in the order of the plan, for at most a second; `truncated` says that there are
more. Does not cover: asking again (web.api.run_steering).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache

import msgspec

from headrace.display import cell_text
from headrace.plan.product import Plan
from headrace.results.plots.kept_charts import failed_filter
from headrace.store.contents import decoding
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.details import FailureRow, failures_after, read_counters
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.stored_job.stored_plan import read_plan
from headrace.web.api.conversation import model_label
from headrace.web.operations import READ_TIMEOUT_S, PageOperation
from headrace.web.shown_files import ShownFiles

_PAGE = 2_000
_MOST_HELD, _MOST_GROUPS = 1_000, 50
_MOST_NAMED, _MOST_EXAMPLES = 8, 5
_LONGEST_MESSAGE = 300
_READ_WITHIN_S = 0.8 * READ_TIMEOUT_S
_OTHER = "other messages"
_RULES = (
    (re.compile(r"https?://\S+"), "<address>"),
    (re.compile(r"(?<!\w)(?:'[^']*'|\"[^\"]*\"|“[^”]*”|`[^`]*`)(?!\w)"), "“…”"),
    (re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{12,}\b"), "<id>"),
    (re.compile(r"(?<![\w.])(?![45]\d\d(?![\w.]))\d[\d.,]*(?:e[+-]?\d+)?"), "N"),
    (re.compile(r"\s+"), " "),
)


class FailuresAsked(msgspec.Struct, frozen=True):
    """`text` asks for messages, which may quote what a model or a service wrote."""

    run: str
    text: bool = False


class NamedCount(msgspec.Struct, frozen=True):
    """`count` questions that failed; `filter` chooses their interviews, empty where it cannot be said."""

    name: str
    count: int
    filter: str = ""


class FailureExample(msgspec.Struct, frozen=True):
    ordinal: int
    question: str
    message: str


class FailureGroup(msgspec.Struct, frozen=True):
    """Questions that failed alike. `message` has what differs from case to case left out."""

    cause: str
    message: str
    count: int
    questions: list[NamedCount]
    models: list[NamedCount]
    examples: list[FailureExample]


class FailureGroups(msgspec.Struct, frozen=True):
    """The most frequent first. `failed` interviews of the file; `read` questions that failed were looked at, and there
    are more where `truncated`. Models have their number behind their name where several are called so.
    """

    failed: int
    read: int
    truncated: bool
    questions: list[NamedCount]
    models: list[NamedCount]
    groups: list[FailureGroup]


@lru_cache(256)
def normalised(message: str) -> str:
    """What messages of one group have in common. Statuses of HTTP, from 400 to 599, stay."""
    for pattern, stands_for in _RULES:
        message = pattern.sub(stands_for, message[:2_000])
    return cell_text(message.strip(), 160)


class _AlikeFailures:
    __slots__ = ("count", "examples", "models", "questions")

    def __init__(self) -> None:
        self.count = 0
        self.questions, self.models = Counter[int](), Counter[int]()
        self.examples: list[FailureRow] = []

    def add(self, failure: FailureRow, model: int) -> None:
        self.count += 1
        self.questions[failure[1]] += 1
        self.models[model] += 1
        if len(self.examples) < _MOST_EXAMPLES:
            self.examples.append(failure)


class _GroupedFailures:
    """Groups by cause and message, at most `_MOST_HELD`; the rest of a cause is one group."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.groups: dict[tuple[str, str], _AlikeFailures] = {}
        self.every = _AlikeFailures()

    def add(self, page: list[FailureRow]) -> None:
        for failure in page:
            ordinal, _, cause, message = failure
            model = self._plan.coordinates(ordinal).model
            key = cause, normalised(message)
            if key not in self.groups and len(self.groups) >= _MOST_HELD:
                key = cause, _OTHER
            self.groups.setdefault(key, _AlikeFailures()).add(failure, model)
            self.every.add(failure, model)


def _failure_groups(files: ShownFiles, asked: FailuresAsked) -> FailureGroups:
    reader = Reader(files.one(asked.run).path)
    try:
        return _grouped(reader, with_text=asked.text)
    finally:
        reader.close()


def _grouped(reader: Reader, *, with_text: bool) -> FailureGroups:
    until = time.monotonic() + _READ_WITHIN_S
    clock = QueryClock(READ_TIMEOUT_S)
    with reader.snapshot(clock) as connection:
        header = RunHeader.load(connection, reader.path)
        found = _GroupedFailures(read_plan(connection, reader.path))
        failed = int(read_counters(connection, reader.path)["failed"])
    last, is_cut = (-1, -1), True
    while is_cut and time.monotonic() < until:
        with reader.snapshot(clock) as connection, decoding(reader.path, "its failures"):
            page = failures_after(connection, *last, _PAGE, "1")
            found.add(page)
        is_cut = len(page) == _PAGE
        last = (page[-1][0], page[-1][1]) if page else last
    return _reply(found, header, failed, is_cut=is_cut, with_text=with_text)


def _reply(found: _GroupedFailures, header: RunHeader, failed: int, *, is_cut: bool, with_text: bool) -> FailureGroups:
    largest = sorted(found.groups.items(), key=lambda item: -item[1].count)
    names = header.question_names

    def by_question(group: _AlikeFailures) -> list[NamedCount]:
        return _named(group.questions, lambda place: (names[place], ""))

    def by_model(group: _AlikeFailures) -> list[NamedCount]:
        return _named(group.models, lambda place: (model_label(header, place), ""))

    return FailureGroups(
        failed=failed,
        read=found.every.count,
        truncated=is_cut or len(largest) > _MOST_GROUPS,
        questions=_named(found.every.questions, lambda place: (names[place], failed_filter(names[place], place))),
        models=_named(
            found.every.models,
            lambda place: (model_label(header, place), f"interview.failed and model.model_index == {place}"),
        ),
        groups=[
            FailureGroup(
                cause=cause,
                message=message if with_text else "",
                count=group.count,
                questions=by_question(group),
                models=by_model(group),
                examples=[
                    FailureExample(at, names[question], cell_text(text, _LONGEST_MESSAGE) if with_text else "")
                    for at, question, _, text in group.examples
                ],
            )
            for (cause, message), group in largest[:_MOST_GROUPS]
        ],
    )


def _named(counts: Counter[int], name_of: Callable[[int], tuple[str, str]]) -> list[NamedCount]:
    """The most frequent with their names and filters; the others are one count without a name of their own."""
    first = ((name_of(place), count) for place, count in counts.most_common(_MOST_NAMED))
    shown = [NamedCount(name[:_LONGEST_MESSAGE], count, condition) for (name, condition), count in first]
    rest = sum(counts.values()) - sum(each.count for each in shown)
    return [*shown, NamedCount("others", rest)] if rest else shown


FAILURE_GROUPS = PageOperation(
    name="failures",
    summary="The failures of a run, grouped by cause.",
    path="/runs/{run}/failures",
    parameters=FailuresAsked,
    reply=FailureGroups,
    call=_failure_groups,
)
