"""States the shape of an answer to a service: enforced where the service can, in words where it cannot.

Covers: JSON schemas for services, made once for each schema. Does not cover: checking answers (survey.questions).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from headrace.models.provider import Request, answer_envelope
from headrace.survey.questions.base import Schema

_MOST_KEPT = 256
_KEPT_WORDS = frozenset({"type", "enum", "const", "description", "properties", "required", "items", "anyOf", "$ref"})
# Without these a small model fills a list until it is cut off. A service that refuses them gets the schema in words.
_KEPT_BOUNDS = frozenset({"minItems", "maxItems"})
# What strict mode refuses, on one endpoint or another, and the question checks anyway.
_BOUNDS = frozenset(
    {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
        "format", "uniqueItems", "default", "examples", "title", "$schema", "$id",
    }
)  # fmt: skip
_TYPES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class AnswerShape(msgspec.Struct, frozen=True):
    """One shape: `enforced` is the part of a request that demands it, `in_words` the sentence that a prompt gets."""

    enforced: bytes
    in_words: str


class AnswerShapes:
    """Makes the shape of each schema once. Most surveys have one schema per question, the same object each time."""

    def __init__(self, enforce: Callable[[Schema], bytes]) -> None:
        self._enforce = enforce
        # By identity, with the schema itself: while it is kept, no other object can have its id.
        self._made: dict[tuple[int, bool], tuple[Schema, AnswerShape | None]] = {}

    def of(self, request: Request) -> AnswerShape | None:
        """None where the answer is plain text."""
        schema, key = request.schema, (id(request.schema), request.has_comment)
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= _MOST_KEPT:
                self._made.clear()  # schemas that differ from interview to interview are never met again
            made = self._made[key] = schema, self._make(answer_envelope(schema, has_comment=request.has_comment))
        return made[1]

    def _make(self, envelope: Schema | None) -> AnswerShape | None:
        if envelope is None:
            return None
        shown = msgspec.json.encode(envelope).decode()
        in_words = f"\n\nAnswer with one JSON object and nothing else. It must follow this JSON schema: {shown}"
        return AnswerShape(self._enforce(envelope), in_words)


def strict_form(schema: Schema) -> Schema | None:
    """The schema as strict modes take it, None where it cannot be said without changing which answers there are.

    Bounds are left out, but for the length of a list: a question checks them anyway, and a service that does not know
    one refuses the whole call.
    """
    kept: Schema = {}
    for word, value in schema.items():
        if word in {"$defs", "properties"}:
            inner = {name: strict_form(each) for name, each in value.items()}
            kept[word] = inner if all(each is not None for each in inner.values()) else None
        elif word == "anyOf":
            choices = [strict_form(each) for each in value]
            kept[word] = choices if all(choice is not None for choice in choices) else None
        elif word == "items":
            kept[word] = strict_form(value) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownArgumentType]
        elif word in _KEPT_WORDS or word in _KEPT_BOUNDS:
            kept[word] = value
        elif word not in _BOUNDS and not (word == "additionalProperties" and value is False):
            return None
    if "enum" in kept and "type" not in kept:
        kept["type"] = _type_of(kept["enum"])
    return _closed(kept) if all(value is not None for value in kept.values()) else None


def _closed(schema: Schema) -> Schema | None:
    """Strict modes want objects with nothing optional and nothing further, and a type for everything else."""
    if schema.get("type") != "object":
        has_type = any(word in schema for word in ("type", "anyOf", "$ref", "const"))
        return schema if has_type and (schema.get("type") != "array" or "items" in schema) else None
    properties = cast("dict[str, Any]", schema.get("properties", {}))
    if not properties or set(schema.get("required", ())) != set(properties):
        return None
    return {**schema, "additionalProperties": False}


def _type_of(values: list[Any]) -> str | list[str] | None:
    types = list(dict.fromkeys(_TYPES.get(type(value)) for value in values))
    if None in types:
        return None
    return cast("list[str]", types) if len(types) > 1 else types[0]
