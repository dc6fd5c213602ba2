"""The values of columns in rows as they are read. Covers: which parts of a row a column needs, and taking its value
out.

Does not cover: which columns there are (catalog), or an interview as a whole (result).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, assert_never

from headrace.expressions import compile_closure
from headrace.results.asked.as_asked import asked_again
from headrace.results.columns.result_column import Group, ResultColumn, model_value
from headrace.store.contents import decoding
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import (
    AGENT,
    AGENT_AT,
    ANSWERS,
    DETAIL,
    ITERATION,
    MODEL,
    MORE,
    ORDINAL,
    SCENARIO,
    SCENARIO_AT,
    STATUS,
    Fetched,
    Projection,
)
from headrace.store.run_file.rows import ANSWER_COLUMNS, DetailPacker, Status
from headrace.survey.agent import NAME, unnamed
from headrace.survey.record import AnswerRecord, Detail
from headrace.survey.values import Fields, decode_fields, decode_value, from_sql

_LIST_AT = {"agent": AGENT_AT, "scenario": SCENARIO_AT, "model": MODEL}
STATUS_TEXTS = {int(status): status.name.lower() for status in Status}


class Record:
    """One row as it was read; its JSON parts are decoded when first needed."""

    __slots__ = ("_agent", "_by_question", "_detail", "_more", "_scenario", "row")

    def __init__(self, row: Fetched) -> None:
        self.row = row
        self._agent: Fields | None = None
        self._scenario: Fields | None = None
        self._more: list[Any] | None = None
        self._detail: Detail | None = None
        self._by_question: dict[int, AnswerRecord] = {}

    @property
    def agent(self) -> Fields:
        if self._agent is None:
            self._agent = decode_fields(self.row[AGENT])
        return self._agent

    @property
    def scenario(self) -> Fields:
        if self._scenario is None:
            self._scenario = decode_fields(self.row[SCENARIO])
        return self._scenario

    @property
    def more(self) -> list[Any]:
        if self._more is None:
            self._more = decode_value(self.row[MORE])
        return self._more or []

    def detail(self, packer: DetailPacker) -> tuple[Detail, dict[int, AnswerRecord]]:
        """The interview's detail, and its records by the position of their question."""
        if self._detail is None:
            self._detail = packer.unpack(self.row[DETAIL])
            self._by_question = {record.question: record for record in self._detail.records}
        return self._detail, self._by_question


Getter: TypeAlias = Callable[[Record], Any]


def projection_of(columns: Iterable[ResultColumn]) -> Projection:
    """The projection that these columns need."""
    sources = [source for column in columns for source in column.sources()]
    groups = {source.group for source in sources}
    parts = [source.part for source in sources if source.part is not None]
    is_as_asked = any(part.is_as_asked for part in parts)
    positions = {source.position for source in sources if source.group is Group.ANSWER}
    return Projection(
        answers=tuple(sorted(position for position in positions if position < ANSWER_COLUMNS)),
        agent=Group.AGENT in groups or is_as_asked,
        scenario=Group.SCENARIO in groups or is_as_asked,
        more=any(position >= ANSWER_COLUMNS for position in positions),
        detail=is_as_asked or any(part.of_record is not None for part in parts),
    )


def getter(column: ResultColumn, projection: Projection, header: RunHeader) -> Getter:
    """A function that takes this column's value out of a record that was read with `projection`."""
    computed, name = column.computed, column.name
    if computed is not None:
        return compile_closure(computed.expression, lambda n: getter(computed.column(n), projection, header))
    match column.group:
        case Group.ANSWER:
            return _answer_getter(column.position, projection, header)
        case Group.AGENT if name == NAME:
            return lambda record: _named(record.agent.get(name), record.row[AGENT_AT])
        case Group.AGENT:
            return lambda record: record.agent.get(name)
        case Group.SCENARIO:
            return lambda record: record.scenario.get(name)
        case Group.MODEL:
            values = [model_value(model, name) for model in header.models]
            return lambda record: values[record.row[MODEL]]
        case Group.ITERATION:
            return lambda record: record.row[ITERATION]
        case Group.INDEX:
            place = _LIST_AT[column.prefix]
            return lambda record: record.row[place]
        case Group.INTERVIEW if name == "ordinal":
            return lambda record: record.row[ORDINAL]
        case Group.INTERVIEW if name == "failed":
            return lambda record: record.row[STATUS] == Status.FAILED
        case Group.INTERVIEW:
            return lambda record: STATUS_TEXTS[record.row[STATUS]]
        case Group.PART:
            return _part_getter(column, header)
        case Group.ABSENT:
            return lambda _record: None
        case Group.SHUFFLED:
            return lambda record: drawn(name, record.row[ORDINAL])
        case _:
            assert_never(column.group)


def drawn(seed: str, ordinal: int) -> int:
    """A number that looks drawn at random: the same for the same seed and interview, on every machine."""
    digest = hashlib.blake2b(f"{seed} {ordinal}".encode("utf-8", "backslashreplace"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def _named(name: Any, place: int) -> Any:
    return unnamed(place) if name is None else name


def _part_getter(column: ResultColumn, header: RunHeader) -> Getter:
    part, position, packer = column.part, column.position, header.packer
    assert part is not None
    if part.is_text:
        header.check_has_texts(column.full_name)
    if part.is_as_asked:
        return _options_getter(position, header)
    if part.of_question is not None:
        value = part.of_question(header.question(position))
        return lambda _record: value

    def get(record: Record) -> Any:
        detail, by_question = record.detail(packer)
        return part.value(by_question.get(position), detail)

    return get


def _options_getter(position: int, header: RunHeader) -> Getter:
    with decoding(header.path, "its survey"):
        again = asked_again(header.survey_row)
    if again.is_fixed(position):
        options = again.options(position, ({}, 0), {}, {}, {}, 0)
        return lambda _record: None if options is None else list(options)

    def get(record: Record) -> Any:
        _, by_question = record.detail(header.packer)
        answers = header.answered(list(record.row[ANSWERS:MORE]), record.row[MORE], by_question)
        agent = record.agent, record.row[AGENT_AT]
        return again.options(position, agent, record.scenario, by_question, answers, record.row[ORDINAL])

    return get


def _answer_getter(position: int, projection: Projection, header: RunHeader) -> Getter:
    if position >= ANSWER_COLUMNS:
        return lambda record: record.more[position - ANSWER_COLUMNS]
    place, held = ANSWERS + projection.answers.index(position), header.holds_bools[position]
    return lambda record: from_sql(record.row[place], as_bool=held)
