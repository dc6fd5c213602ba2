"""One interview as a conversation: each question with its prompt, response, answer, and what it took.

Texts are cut so that a reply stays below some hundred kilobytes, and a model's own words are left out unless they were
asked for. Does not cover: its neighbours and twins (web.api.one_interview).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from headrace.limits import Keep
from headrace.results.columns.question_parts import cost_of
from headrace.results.columns.result_column import model_value
from headrace.results.reading.file_view import FileView
from headrace.results.result import Result
from headrace.store.contents import decoding
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.details import stored_detail
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.model_counts import told_apart
from headrace.survey.record import AnswerRecord, AnswerState, ServiceUsage
from headrace.web.cells import ShownTexts, cut_text, cut_value
from headrace.web.operations import READ_TIMEOUT_S

MOST_TURNS = 500
_MOST_LETTERS, _LONGEST, _SHORTEST = 400_000, 20_000, 200
_TEXTS_A_TURN = 5
STATE_TEXTS = {
    AnswerState.ANSWERED: "answered",
    AnswerState.SKIPPED: "skipped",
    AnswerState.FAILED: "failed",
    AnswerState.NOT_ASKED: "not asked",
}
NOT_REACHED = "not reached"


class ConversationTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One question. `prompt`, `system_prompt` (where it is not the interview's), `raw_response`, `comment` and
    `message` are null where there are none, where the file does not keep them, and where texts were not asked for.
    `cost` is in US dollars, null without a known price. `why` says why it was skipped or not asked.
    """

    name: str
    question: str
    state: str
    answer: Any = None
    prompt: str | None = None
    system_prompt: str | None = None
    raw_response: str | None = None
    comment: str | None = None
    cause: str | None = None
    message: str | None = None
    why: str | None = None
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    from_cache: bool = False
    started_ms: int = 0
    took_ms: int = 0
    truncated: bool = False


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """`model` has its number behind its name where several are called so. `started_at` is in seconds since 1970.
    `withheld` where texts were left out because they were not asked for; `has_texts` is false where the file keeps
    neither prompts nor raw responses.
    """

    ordinal: int
    iteration: int
    status: str
    model: str
    service: str
    parameters: dict[str, Any]
    started_at: float
    system_prompt: str | None
    turns: list[ConversationTurn]
    has_texts: bool
    withheld: bool
    truncated: bool


class _WrittenQuestion(msgspec.Struct, frozen=True):
    question_name: str
    question_text: str = ""


class _WrittenSurvey(msgspec.Struct, frozen=True):
    """What is shown of a survey's stored form."""

    questions: list[_WrittenQuestion]
    skip: dict[str, str] = {}


def conversation_of(view: FileView, result: Result, *, with_text: bool) -> Conversation:
    """The conversation of an interview that was read from the view's file."""
    file, ordinal = view.file, result.ordinal
    with file.reader.snapshot(QueryClock(READ_TIMEOUT_S)) as connection:
        detail = stored_detail(connection, file.header.packer, ordinal, file.reader.path)
    with decoding(file.reader.path, "its survey"):
        survey = msgspec.json.decode(file.header.survey_row, type=_WrittenSurvey)
    writing = _Writing(file.header, survey, with_text=with_text)
    records = {record.question: record for record in detail.records}
    answers = list(result.answer.items())[:MOST_TURNS]
    turns = [writing.turn(place, name, value, records.get(place)) for place, (name, value) in enumerate(answers)]
    system, is_cut = writing.text(detail.system)
    return Conversation(
        ordinal=ordinal,
        iteration=result.iteration,
        status=result.status,
        model=model_label(file.header, next(n for n, each in enumerate(file.header.models) if each is result.model)),
        service=cut_text(result.model.service_name, _SHORTEST).value,
        parameters={name: _parameter(result, name) for name in result.model.parameters},
        started_at=detail.started_at,
        system_prompt=system,
        turns=turns,
        has_texts=file.header.keeping.keep is not Keep.ANSWERS,
        withheld=not with_text,
        truncated=is_cut or len(result.answer) > MOST_TURNS,
    )


def model_label(header: RunHeader, place: int) -> str:
    """A model's name; models that differ in their parameters alone are told apart by their number."""
    name = header.models[place].name
    shared = Counter({cut_text(name, _SHORTEST).value: sum(each.name == name for each in header.models)})
    return told_apart(cut_text(name, _SHORTEST).value, place, shared)


class _Writing:
    """Writes turns, with texts of a length that leaves room for all of them."""

    def __init__(self, header: RunHeader, survey: _WrittenSurvey, *, with_text: bool) -> None:
        self._survey = survey
        self._with_text = with_text
        self._texts = ShownTexts(header, with_text=with_text)
        turns = min(MOST_TURNS, len(header.question_names))
        self._longest = min(_LONGEST, max(_SHORTEST, _MOST_LETTERS // (_TEXTS_A_TURN * turns + 1)))

    def text(self, text: str | None) -> tuple[str | None, bool]:
        """A text that a service read or wrote; None where it is empty or was not asked for."""
        if not text or not self._with_text:
            return None, False
        cut = cut_text(text, self._longest)
        return cut.value, cut.truncated

    def turn(self, place: int, name: str, answer: Any, record: AnswerRecord | None) -> ConversationTurn:
        shown = self._texts.cut_answer(answer, place, self._longest)
        question = cut_text(self._survey.questions[place].question_text, self._longest).value
        if record is None:
            return ConversationTurn(name=name, question=question, state=NOT_REACHED, answer=shown.value)
        service = record.service or ServiceUsage()
        failure = record.failure
        texts = {
            "prompt": record.prompt,
            "system_prompt": record.system,
            "raw_response": record.raw.decode(errors="replace"),
            "comment": record.comment,
            "message": None if failure is None else failure.message,
        }
        cut = {each: self.text(text) for each, text in texts.items()}
        return ConversationTurn(
            name=name,
            question=question,
            state=STATE_TEXTS[record.state],
            answer=shown.value,
            **{each: text for each, (text, _) in cut.items()},
            cause=None if failure is None else failure.cause.value,
            why=self._why(name, record.state),
            attempts=record.attempts,
            input_tokens=record.input_tokens,
            output_tokens=record.output_tokens,
            cached_tokens=service.cached_tokens,
            reasoning_tokens=service.reasoning_tokens,
            cost=cost_of(record),
            from_cache=service.cache_hits > 0,
            started_ms=record.started_ms,
            took_ms=record.took_ms,
            truncated=shown.truncated or any(is_cut for _, is_cut in cut.values()),
        )

    def _why(self, name: str, state: AnswerState) -> str | None:
        match state:
            case AnswerState.SKIPPED if name in self._survey.skip:
                return f"Its skip rule holds: {self._survey.skip[name][: self._longest]}"
            case AnswerState.SKIPPED:
                return "A rule of the survey jumped over it."
            case AnswerState.NOT_ASKED:
                return "It needs the answer of a question that failed."
            case AnswerState.ANSWERED | AnswerState.FAILED:
                return None


def _parameter(result: Result, name: str) -> Any:
    value = model_value(result.model, name)
    try:
        return cut_value(value, _SHORTEST).value
    except TypeError:  # a function of this process: it has no JSON
        return cut_text(str(value), _SHORTEST).value
