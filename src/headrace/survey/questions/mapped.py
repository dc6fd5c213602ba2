"""The questions of `Job.map`: one text per row, sent exactly as written, and the parts of its answer as columns.

Covers: a prompt with the row's own names in it (`{{ text }}`), a reply checked against a JSON schema, and its
properties. Does not cover: making a job of them (plan.mapping).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import msgspec

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions.base import Derivation, Question, Schema
from headrace.survey.repair.bounded_json import TooManyValues, decode_bounded
from headrace.survey.repair.json_texts import json_in
from headrace.survey.replies import NoAnswer, read_reply, unfenced, without_thoughts
from headrace.survey.schemas import SchemaCheck

_PLAIN_TEXT: Schema = {"type": "string", "minLength": 1}


@dataclass(frozen=True, kw_only=True)
class MappedPrompt(Question):
    """Its text names the row's columns directly; nothing is added to it."""

    kind = "map"
    is_made_by_jobs = True
    literal_settings = frozenset({"output_schema"})

    output_schema: Schema | None = None

    @property
    def names_row(self) -> bool:
        return True

    @property
    def holds_bools(self) -> bool:
        return self.output_schema is not None and self.output_schema.get("type") == "boolean"

    def instructions(self) -> str:
        return ""

    def schema(self) -> Schema:
        return self.output_schema or _PLAIN_TEXT

    def read(self, text: str) -> tuple[Any, str | None]:
        if self.output_schema is None:
            if not (text := without_thoughts(text)):
                raise NoAnswer("the model gave no answer")
            return text, None
        if self.output_schema.get("type") == "object":
            return _object_in(text, has_answer="answer" in dict(properties(self.output_schema))), None
        try:
            given, comment = read_reply(text)
        except NoAnswer:
            # `{"answer": null}` says that there is none, where the schema has room for that.
            if '"answer"' in text and self._fits(None):
                return None, None
            raise
        return self._in_its_type(given), comment

    def accept(self, given: Any) -> Any:
        return given if self.output_schema is None else self._check.accept(given)

    @cached_property
    def _check(self) -> SchemaCheck:
        return SchemaCheck(cast(Schema, self.output_schema), "schema")

    def _in_its_type(self, given: Any) -> Any:
        """A text that is JSON stands for the value, unless the schema wants the text."""
        is_meant = not isinstance(given, str) or self._fits(given)
        return given if is_meant else _decoded_or_text(unfenced(given))

    def _fits(self, given: Any) -> bool:
        try:
            self._check.accept(given)
        except InvalidAnswer:
            return False
        return True


@dataclass(frozen=True, kw_only=True)
class MappedProperty(Question):
    """One property of a mapped answer as a column of its own. It is taken from that answer, never asked for."""

    kind = "property"
    is_made_by_jobs = True
    literal_settings = frozenset({"question_name", "of", "value_type"})

    of: str
    value_type: str | None = None

    @classmethod
    def taken_from(cls, whole: str, name: str, schema: Any) -> MappedProperty:
        held = cast(Schema, schema).get("type") if isinstance(schema, dict) else None
        text = f"{{{{ {whole}.answer }}}}"
        return cls(question_name=name, question_text=text, of=whole, value_type=held if isinstance(held, str) else None)

    @property
    def holds_bools(self) -> bool:
        return self.value_type == "boolean"

    def check_name(self) -> None:
        # A schema's property may be called anything: it is a column here, and never named in a text.
        if not self.question_name or "\0" in self.question_name:
            raise SurveyError(f"A property cannot be called {self.question_name!r}.", fix="Rename it in the schema.")

    def derive(self, given: Derivation) -> Any:
        answer = given.context[self.of]["answer"]
        return cast("dict[str, Any]", answer).get(self.question_name) if isinstance(answer, dict) else None

    def instructions(self) -> str:
        return ""

    def schema(self) -> Schema:
        return {}

    def accept(self, given: Any) -> Any:
        return given


def properties(schema: Schema | None) -> Iterator[tuple[str, Any]]:
    """The properties that an object's schema names."""
    held = (schema or {}).get("properties")
    if isinstance(held, dict) and (schema or {}).get("type") == "object":
        yield from cast("dict[str, Any]", held).items()


def _object_in(text: str, *, has_answer: bool) -> Any:
    """The object in a reply. One that has a property "answer" is no envelope around the answer."""
    try:
        return _decoded(unfenced(text))
    except InvalidAnswer:
        found = json_in(without_thoughts(text), dict, unwrap=not has_answer)
        if found is None:
            raise
        return found.value


def _decoded(text: str) -> Any:
    if not text:
        raise NoAnswer("the model gave no answer")
    try:
        return decode_bounded(text)
    except TooManyValues as error:
        raise InvalidAnswer(f"the reply cannot be read: {error}") from None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidAnswer(f"the reply is not JSON ({error})") from None


def _decoded_or_text(text: str) -> Any:
    try:
        return decode_bounded(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
