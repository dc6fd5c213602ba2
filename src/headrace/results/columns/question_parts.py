"""The columns that each question has beside its answer, by EDSL's names: `comment.mood_comment`,
`prompt.mood_user_prompt`.

Their values are in the interview's detail, which is unpacked only for columns that somebody names, or in the survey.
Does not cover: finding a column by its name (columns), or reading details (stages).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from headrace.results.columns.raw_responses import decoded_response, generated_text, reasoning_text
from headrace.survey.questions import Question
from headrace.survey.record import AnswerRecord, AnswerState, Detail, ServiceUsage

_OfRecord: TypeAlias = Callable[[AnswerRecord, Detail], Any]
_OfQuestion: TypeAlias = Callable[[Question], Any]


class QuestionPart(msgspec.Struct, frozen=True):
    """A column of each question: `group` stands before the dot, `suffix` behind the question's name.

    One of the functions gives its value: of the question's record in an interview, or of the question itself. With
    `is_as_asked` it is filled with the interview's data (results.asked.as_asked).
    """

    group: str
    suffix: str
    of_record: _OfRecord | None = None
    of_question: _OfQuestion | None = None
    is_as_asked: bool = False
    is_text: bool = False  # of a prompt or a raw response, which a file with keep="answers" does not have
    unreached: bool | None = None  # its value where the question was not reached

    def value(self, record: AnswerRecord | None, detail: Detail) -> Any:
        """The value in one interview."""
        return self.unreached if record is None or self.of_record is None else self.of_record(record, detail)


def cost_of(record: AnswerRecord) -> float | None:
    """The cost of all attempts at a question, in US dollars; None without a known price."""
    service = record.service or ServiceUsage()
    return None if service.unpriced else service.cost


def _asked(value: _OfRecord) -> _OfRecord:
    """The value of a question that a model was asked; None for one that was skipped or derived."""
    return lambda record, detail: value(record, detail) if record.attempts else None


def _one_usd_buys(record: AnswerRecord, _detail: Detail) -> float | None:
    cost = cost_of(record)
    return 1 / cost if cost else None


def _cache_used(record: AnswerRecord, _detail: Detail) -> bool:
    return record.service is not None and record.service.cache_hits > 0


_RAW = "raw_model_response"
# SQL knows it too: a file has a table of the questions that failed.
FAILED_PART = QuestionPart("failed", "_failed", lambda record, _: record.state is AnswerState.FAILED, unreached=False)
PARTS = (
    QuestionPart("comment", "_comment", lambda record, _: record.comment),
    QuestionPart("prompt", "_user_prompt", _asked(lambda record, _: record.prompt), is_text=True),
    QuestionPart(
        "prompt", "_system_prompt", _asked(lambda record, detail: record.system or detail.system), is_text=True
    ),
    QuestionPart(_RAW, "_raw_model_response", _asked(lambda record, _: decoded_response(record.raw)), is_text=True),
    QuestionPart(_RAW, "_input_tokens", _asked(lambda record, _: record.input_tokens)),
    QuestionPart(_RAW, "_output_tokens", _asked(lambda record, _: record.output_tokens)),
    QuestionPart(_RAW, "_thinking_tokens", _asked(lambda r, _: r.service.reasoning_tokens if r.service else None)),
    QuestionPart(_RAW, "_cost", _asked(lambda record, _: cost_of(record))),
    QuestionPart(_RAW, "_one_usd_buys", _asked(_one_usd_buys)),
    QuestionPart(
        "generated_tokens", "_generated_tokens", _asked(lambda record, _: generated_text(record.raw)), is_text=True
    ),
    QuestionPart("cache_used", "_cache_used", _asked(_cache_used)),
    QuestionPart("validated", "_validated", lambda record, _: record.state is AnswerState.ANSWERED),
    FAILED_PART,
    QuestionPart(
        "reasoning_summary", "_reasoning_summary", _asked(lambda record, _: reasoning_text(record.raw)), is_text=True
    ),
    QuestionPart("question_text", "_question_text", of_question=lambda question: question.question_text),
    QuestionPart("question_options", "_question_options", is_as_asked=True),
    QuestionPart("question_type", "_question_type", of_question=lambda question: question.kind),
)
PART_GROUPS = frozenset(part.group for part in PARTS)


def parts_called(name: str) -> Iterator[tuple[QuestionPart, str]]:
    """The parts whose names end like this one, each with the question that it would belong to."""
    return ((part, name.removesuffix(part.suffix)) for part in PARTS if name.endswith(part.suffix))


def question_first(name: str) -> tuple[str, QuestionPart] | None:
    """A name in the spelling of templates, `mood.comment`: its question and part; None where it is none."""
    question, dot, rest = name.rpartition(".")
    if not dot:
        return None
    return next(((question, part) for part in PARTS if part.suffix == f"_{rest}"), None)
