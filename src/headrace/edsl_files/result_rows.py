"""One result of EDSL's as a row of a run file: answers, and for each question its prompts, response and comment.

EDSL does not say whether a question without an answer was skipped or failed: one that has a prompt was asked, so it has
failed, and its comment says why; one without was skipped. Does not cover: which agent it belongs to (placed_results),
or writing the file (results_import).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from headrace.edsl_files.carried_over import CarriedOver
from headrace.errors import EdslFileError
from headrace.plan.product import Coordinates
from headrace.results.columns.raw_responses import generated_text
from headrace.store.run_file.rows import ANSWER_COLUMNS, DetailPacker, Row, Status
from headrace.survey.record import (
    AnswerRecord,
    AnswerState,
    Cause,
    Detail,
    Failure,
    ServiceUsage,
    Usage,
    encode_detail,
)
from headrace.survey.survey import Survey
from headrace.survey.values import UnusableValue, encode_value, repair_text, to_sql

_KNOWN = frozenset(
    {
        "agent", "scenario", "model", "iteration", "answer", "prompt", "raw_model_response", "question_to_attributes",
        "generated_tokens", "comments_dict", "reasoning_summaries_dict", "cache_used_dict", "cache_keys",
        "validated_dict", "indices", "interview_hash", "order", "edsl_version", "edsl_class_name",
    }
)  # fmt: skip
_MOST_TOKENS = 2**53
_UNKNOWN_START = 0.0  # EDSL does not say when an interview began


class ResultRows:
    """Makes rows of results, for one survey."""

    def __init__(self, survey: Survey, dictionary: bytes, notes: CarriedOver) -> None:
        self._questions = [(question.question_name, question.holds_bools) for question in survey]
        self._names = frozenset(survey.question_names)
        self._pack = DetailPacker(dictionary).compress
        self._notes = notes

    def row(self, result: Mapping[str, Any], ordinal: int, at: Coordinates) -> Row:
        self._note_unknown(result)
        held = _Parts(result)
        try:
            records = [self._record(place, name, held) for place, (name, _) in enumerate(self._questions)]
        except UnusableValue as error:
            raise EdslFileError(
                f"{self._notes.place}: an answer of result {ordinal}: {error.message}", fix=error.fix
            ) from None
        failures = [record.failure for record in records if record.failure is not None]
        system = next((record.system for record in records if record.system), "")
        usage = Usage()
        for record in records:
            usage.add(record)
            record.system = "" if record.system == system else record.system
        detail = self._pack(encode_detail(Detail(system, _UNKNOWN_START, records)))
        answers, more = self._columns(records, held)
        status = Status.FAILED if failures else Status.DONE
        return Row(ordinal, *at, status, answers, more, detail, failures, usage, True)

    def _record(self, place: int, name: str, held: _Parts) -> AnswerRecord:
        answer, prompt = held.answers.get(name), held.text("prompt", f"{name}_user_prompt")
        comment = held.text("comments_dict", f"{name}_comment")
        record = AnswerRecord(place, AnswerState.ANSWERED, self._stored(place, answer))
        if prompt is None and not held.was_asked(name):
            record.state = AnswerState.ANSWERED if answer is not None else AnswerState.SKIPPED
            record.comment = comment
            return record
        record.attempts, record.prompt = 1, prompt or ""
        record.system = held.text("prompt", f"{name}_system_prompt") or ""
        record.raw = held.raw(name)
        record.input_tokens = held.count("raw_model_response", f"{name}_input_tokens")
        record.output_tokens = held.count("raw_model_response", f"{name}_output_tokens")
        record.service = held.service(name)
        if answer is None and held.part("validated_dict").get(f"{name}_validated") is not True:
            record.state = AnswerState.FAILED
            cause = Cause.INVALID if record.raw else Cause.UNAVAILABLE
            record.failure = Failure(place, cause, (comment or "EDSL has no answer to it")[:2_000])
        else:
            record.comment = comment
        return record

    def _stored(self, place: int, answer: Any) -> Any:
        value = to_sql(answer, as_bool=self._questions[place][1])
        return repair_text(value)[0] if isinstance(value, str) else value

    def _columns(self, records: list[AnswerRecord], held: _Parts) -> tuple[list[Any], str | None]:
        """The answers that have a column each, and the rest as one JSON list."""
        values = [record.value for record in records]
        if len(values) <= ANSWER_COLUMNS:
            return values, None
        rest = [held.answers.get(name) for name, _ in self._questions[ANSWER_COLUMNS:]]
        return values[:ANSWER_COLUMNS], encode_value(rest).decode()

    def _note_unknown(self, result: Mapping[str, Any]) -> None:
        for name in result.keys() - _KNOWN:
            if result[name]:
                self._notes.note(f"the results' part {str(name)[:60]!r}")
        answers: Any = result.get("answer")
        extra = cast("Mapping[str, Any]", answers).keys() - self._names if isinstance(answers, Mapping) else ()
        for name in cast("Iterable[str]", extra):
            self._notes.note(f"the column {str(name)[:60]!r}, which is no question's: mutate(...) computes it again")


class _Parts:
    """The parts of one result, by EDSL's names; what is not as EDSL writes it counts as not there."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self._result = result
        self.answers = self.part("answer")

    def part(self, name: str) -> Mapping[str, Any]:
        held = self._result.get(name)
        return cast("Mapping[str, Any]", held) if isinstance(held, Mapping) else {}

    def text(self, part: str, name: str) -> str | None:
        held = self.part(part).get(name)
        if isinstance(held, Mapping):  # a prompt
            held = cast("Mapping[str, Any]", held).get("text")
        return repair_text(held)[0] if isinstance(held, str) else None

    def count(self, part: str, name: str) -> int:
        held = self.part(part).get(name)
        return int(held) if isinstance(held, (int, float)) and 0 <= held < _MOST_TOKENS else 0

    def was_asked(self, name: str) -> bool:
        """Whether there is a response, or a count of its tokens, in results without prompts."""
        held = self.part("raw_model_response")
        return any(held.get(f"{name}_{each}") is not None for each in ("raw_model_response", "input_tokens"))

    def raw(self, name: str) -> bytes:
        """The response; where our readers would not find the generated text in it, that text alone."""
        generated = self.text("generated_tokens", f"{name}_generated_tokens")
        held = self.part("raw_model_response").get(f"{name}_raw_model_response")
        if held is None:
            return (generated or "").encode()
        raw = held.encode(errors="replace") if isinstance(held, str) else json.dumps(held).encode()
        return raw if generated is None or generated_text(raw) == generated else generated.encode()

    def service(self, name: str) -> ServiceUsage:
        cost: Any = self.part("raw_model_response").get(f"{name}_cost")
        is_priced = isinstance(cost, (int, float)) and 0 <= cost < 1e12
        is_cached = self.part("cache_used_dict").get(name) is True
        return ServiceUsage(
            reasoning_tokens=self.count("raw_model_response", f"{name}_thinking_tokens"),
            cost=float(cast(float, cost)) if is_priced and not is_cached else 0.0,
            unpriced=0 if is_priced or is_cached else 1,
            cache_hits=int(is_cached),
        )
