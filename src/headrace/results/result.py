"""One interview as users see it. Covers: answers in their own types, and the detail, which is read on first use.

Does not cover: many interviews (results), or one value as a column (columns).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import count, repeat
from pathlib import Path
from typing import Any, NamedTuple, cast

from headrace.errors import InvalidInput, nearest
from headrace.limits import Keep
from headrace.results.asked.as_asked import asked_again
from headrace.results.columns.question_parts import PART_GROUPS, PARTS, QuestionPart, cost_of
from headrace.results.columns.result_column import model_value
from headrace.results.failed_questions import FailedQuestion
from headrace.store.contents import decoding
from headrace.store.run_file.bulk.column_pages import ColumnPage
from headrace.store.run_file.bulk.details_ahead import DetailsAhead
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import (
    AGENT,
    AGENT_AT,
    ANSWERS,
    ITERATION,
    MODEL,
    MORE,
    ORDINAL,
    SCENARIO,
    STATUS,
    Fetched,
)
from headrace.store.run_file.rows import BatchRow, Status
from headrace.survey.agent import INSTRUCTION, NAME
from headrace.survey.model import Model
from headrace.survey.people.agent_settings import SETTINGS
from headrace.survey.record import AnswerRecord, AnswerState, Detail, ServiceUsage
from headrace.survey.values import Fields, SqlValue, decode_fields

_PARTS = (
    "ordinal", "iteration", "status", "answer", "agent", "scenario", "model", "prompts", "system_prompt",
    "raw_responses", "comments", "tokens", "costs", "times", "failures", "skipped",
)  # fmt: skip


_STATUS_NAMES = {int(status): status.name.lower() for status in Status}


class Tokens(NamedTuple):
    """The tokens of a question's calls. `cached` is part of the input, `reasoning` part of the output."""

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Times:
    """When an interview started, in seconds since 1970, and how long each question took, by its name."""

    started_at: float
    took_ms: dict[str, int]


class AgentFields(dict[str, Any]):
    """An agent as results have it: its traits by name, and as an Agent has them: `agent.traits["age"]`."""

    def __init__(self, fields: Fields) -> None:
        super().__init__(fields)
        self.settings_number: Any = self.pop(SETTINGS, 0)  # where its list keeps codebooks; no trait

    @property
    def traits(self) -> Fields:
        return {name: value for name, value in self.items() if name not in (NAME, INSTRUCTION)}

    @property
    def name(self) -> Any:
        return self.get(NAME)

    @property
    def instruction(self) -> Any:
        return self.get(INSTRUCTION)

    def __missing__(self, key: str) -> Any:
        if key in ("traits", "name", "instruction"):
            return getattr(self, key)
        raise KeyError(key)


class Result:
    """One interview. `result.answer["mood"]` and `result["answer"]["mood"]` are the same."""

    __slots__ = (
        "_agent",
        "_agent_at",
        "_answer",
        "_detail",
        "_header",
        "_scenario",
        "_stored_answers",
        "iteration",
        "model",
        "ordinal",
        "status",
    )  # fmt: skip

    def __init__(
        self,
        *,
        place: tuple[int, int, int, int, int],
        answers: tuple[Sequence[SqlValue], str | None],
        fields: tuple[bytes | str, bytes | str],
        header: RunHeader,
        detail: Callable[[], Detail],
    ) -> None:
        self.ordinal, self.iteration, self._agent_at, model, status = place
        self.status = _STATUS_NAMES[status]
        self.model: Model = header.models[model]
        self._agent: bytes | str | AgentFields = fields[0]
        self._scenario: bytes | str | Fields = fields[1]
        self._stored_answers: tuple[Sequence[SqlValue], str | None] | None = answers
        self._answer: dict[str, Any] = {}
        self._header = header
        self._detail: Detail | Callable[[], Detail] = detail  # unpacked when first asked for

    @classmethod
    def from_row(cls, row: BatchRow, agent: bytes, scenario: bytes, header: RunHeader) -> Result:
        """An interview that was just committed; `agent` and `scenario` are their rows as stored."""
        return cls(
            place=(row.ordinal, row.iteration, row.agent, row.model, row.status),
            answers=(row.answers, row.more),
            fields=(agent, scenario),
            header=header,
            detail=partial(header.packer.unpack, row.detail),
        )

    @classmethod
    def from_fetched(cls, row: Fetched, header: RunHeader, detail: Callable[[], Detail]) -> Result:
        """An interview read from the file with all its answers (interview_queries.everything_of)."""
        return cls(
            place=(row[ORDINAL], row[ITERATION], row[AGENT_AT], row[MODEL], row[STATUS]),
            answers=(list(row[ANSWERS:MORE]), row[MORE]),
            fields=(row[AGENT], row[SCENARIO]),
            header=header,
            detail=detail,
        )

    @property
    def path(self) -> Path:
        """The run file that it was read from."""
        return self._header.path

    @property
    def answer(self) -> dict[str, Any]:
        """The answers by question name; None where a question was skipped or has failed."""
        if self._stored_answers is not None:
            with self._decoding():
                self._answer = self._header.answers(*self._stored_answers)
            self._stored_answers = None
        return self._answer

    @property
    def agent(self) -> AgentFields:
        """The agent's traits; its name, where it has one, is `agent_name`."""
        if not isinstance(self._agent, AgentFields):
            with self._decoding():
                self._agent = AgentFields(decode_fields(self._agent))
        return self._agent

    @property
    def scenario(self) -> Fields:
        if not isinstance(self._scenario, dict):
            with self._decoding():
                self._scenario = decode_fields(self._scenario)
        return self._scenario

    @property
    def prompts(self) -> dict[str, str]:
        """The last prompt of each question, by question name; questions that were not asked are left out."""
        self._header.check_has_texts("prompts")
        return {name: record.prompt for name, record in self._records() if record.prompt}

    @property
    def system_prompt(self) -> str:
        self._header.check_has_texts("system prompts")
        return self._unpacked().system

    @property
    def raw_responses(self) -> dict[str, str]:
        """The last response of the model to each question, as text, by question name."""
        self._header.check_has_texts("raw responses")
        return {name: record.raw.decode(errors="replace") for name, record in self._records() if record.attempts}

    @property
    def comments(self) -> dict[str, str]:
        """What the model said beside its answers, by question name."""
        return {name: record.comment for name, record in self._records() if record.comment is not None}

    @property
    def tokens(self) -> dict[str, Tokens]:
        """The tokens of all attempts at each question, by question name."""
        return {name: _tokens(record) for name, record in self._records() if record.attempts}

    @property
    def costs(self) -> dict[str, float | None]:
        """The cost of all attempts at each question, in US dollars, by question name; None without a known price."""
        return {name: cost_of(record) for name, record in self._records() if record.attempts}

    @property
    def times(self) -> Times:
        took_ms = {name: record.took_ms for name, record in self._records() if record.attempts}
        return Times(self._unpacked().started_at, took_ms)

    @property
    def failures(self) -> list[FailedQuestion]:
        """The questions that have no answer, and why."""
        if self.status == Status.DONE.name.lower():
            return []  # without reading the detail
        failed = [(name, record.failure) for name, record in self._records() if record.failure is not None]
        return [FailedQuestion(self.ordinal, name, failure.cause.value, failure.message) for name, failure in failed]

    @property
    def skipped(self) -> list[str]:
        """The questions that a rule skipped."""
        return [name for name, record in self._records() if record.state is AnswerState.SKIPPED]

    def __getitem__(self, part: str) -> Any:
        """A part by name; also what each question has, by EDSL's names: `result["comment"]["mood_comment"]`."""
        if part in PART_GROUPS:
            return self._question_parts(part)
        if part not in _PARTS:
            raise InvalidInput(f"A result has no part {part!r}.", fix=nearest(part, (*_PARTS, *PART_GROUPS)))
        return getattr(self, part)

    def get_answer(self, question_name: str) -> Any:
        return _of(self.answer, question_name, "answer")

    def get_value(self, data_type: str, key: str) -> Any:
        """One value: `get_value("answer", "mood")`, `get_value("prompt", "mood_user_prompt")`."""
        held = self[data_type]
        if isinstance(held, Model):
            return model_value(held, key)
        return _of(cast("dict[str, Any]", held), key, data_type) if isinstance(held, dict) else held

    def __iter__(self) -> Iterator[str]:
        return iter(_PARTS)

    def keys(self) -> tuple[str, ...]:
        return _PARTS

    def __repr__(self) -> str:
        shown = repr(self.answer)
        shown = shown if len(shown) <= 200 else shown[:197] + "..."
        return f"Result({self.ordinal}, {self.status}, answer={shown})"

    def _question_parts(self, group: str) -> dict[str, Any]:
        detail, records, names = self._unpacked(), dict(self._records()), self._header.question_names
        return {
            f"{name}{part.suffix}": self._part(part, position, records.get(name), detail)
            for position, name in enumerate(names)
            for part in PARTS
            if part.group == group
        }

    def _part(self, part: QuestionPart, position: int, record: AnswerRecord | None, detail: Detail) -> Any:
        if part.is_as_asked:
            with decoding(self._header.path, "its survey"):
                again = asked_again(self._header.survey_row)
            by_question = {each.question: each for each in detail.records}
            answers = dict(enumerate(self.answer.values()))
            return again.options(
                position, (self.agent, self._agent_at), self.scenario, by_question, answers, self.ordinal
            )
        if part.of_question is not None:
            return part.of_question(self._header.question(position))
        if part.is_text and self._header.keeping.keep is Keep.ANSWERS:
            return None  # beside tokens and costs, which there are
        return part.value(record, detail)

    def _records(self) -> list[tuple[str, AnswerRecord]]:
        names, records = self._header.question_names, self._unpacked().records
        with self._decoding():
            return [(names[record.question], record) for record in records]

    def _decoding(self) -> AbstractContextManager[None]:
        return decoding(self._header.path, f"interview {self.ordinal}")

    def _unpacked(self) -> Detail:
        if callable(self._detail):
            self._detail = self._detail()
        return self._detail


def _tokens(record: AnswerRecord) -> Tokens:
    service = record.service or ServiceUsage()
    return Tokens(record.input_tokens, record.output_tokens, service.cached_tokens, service.reasoning_tokens)


def _of(held: dict[str, Any], key: str, what: str) -> Any:
    if key not in held:
        raise InvalidInput(f"There is no {key!r} in {what!r} of this result.", fix=nearest(key, held))
    return held[key]


def results_of(page: ColumnPage, header: RunHeader, details: DetailsAhead) -> Iterator[Result]:
    """The interviews of a page that was read with all their answers, agents and scenarios."""
    ordinals = page.ordinals
    places = zip(ordinals, page.iterations, page.agents_at, page.models, page.statuses, strict=True)
    answers = zip(*page.answers, strict=True) if page.answers else repeat(())
    rows = zip(places, answers, page.more, page.agents.spread(), page.scenarios.spread(), count(), strict=False)
    for place, stored, more, agent, scenario, number in rows:
        yield Result(
            place=place,
            answers=(stored, more),
            fields=(agent, scenario),
            header=header,
            detail=partial(details.detail, ordinals, number),
        )
