"""JSON schemas that users give for what a model should return. Covers: reading one, and checking values against it.

Does not cover: the schemas of survey questions, which each kind makes itself (survey.questions).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.written_files import read_written

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError
    from jsonschema_rs import Validator as RustValidator

Schema = dict[str, Any]
_LONGEST_MESSAGE = 300
_MOST_NODES = 1_000_000
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_BESIDE_A_REFERENCE = frozenset({"$ref", "$defs", "definitions", "$schema", "$id", "title", "description"})


def as_schema(given: Any) -> Schema:
    """A schema from a dict, a JSON file's path, or a type: a TypedDict, a dataclass, a Literal, a pydantic model."""
    if isinstance(given, (str, Path)):
        return _checked(_read(Path(given)), str(given))
    if isinstance(given, dict):
        return _checked(cast(Schema, given), "schema")
    if hasattr(given, "model_json_schema"):
        return _checked(given.model_json_schema(), "schema")
    try:
        return _checked(msgspec.json.schema(given), "schema")
    except TypeError:
        raise SurveyError(
            f"schema={given!r} is not a schema.",
            fix="Give a dict, the path of a JSON file, or a type like a TypedDict.",
        ) from None


class SchemaCheck:
    """One schema, compiled. Nothing is fetched: a reference must point into the schema itself."""

    def __init__(self, schema: Schema, where: str) -> None:
        import jsonschema_rs  # 30 ms and 8 MB that only a job with a schema should cost

        try:
            self._validator: RustValidator = jsonschema_rs.validator_for(schema, retriever=_refuse_fetching)
        except (ValueError, TypeError) as error:
            what = str(error).splitlines()[0]
            raise SurveyError(f"{where} is not a valid JSON schema: {what}.", fix="Mend the schema.") from None
        _check_size(schema, where)

    def accept(self, value: Any) -> Any:
        """The value, or InvalidAnswer with the first thing that is wrong with it, in words a model can act on."""
        try:
            wrong = next(iter(self._validator.iter_errors(value)), None)
        except (UnicodeEncodeError, ValueError) as error:  # half of a surrogate pair, or nested beyond its limit
            raise InvalidAnswer(f"the answer cannot be checked: {str(error)[:_LONGEST_MESSAGE]}") from None
        if wrong is None:
            return value
        raise InvalidAnswer(f"{_place(wrong)}{wrong.message[:_LONGEST_MESSAGE]}")


def _place(wrong: ValidationError) -> str:
    path = ".".join(str(part) for part in wrong.instance_path)
    return f"{path}: " if path else ""


def _read(path: Path) -> Schema:
    text = read_written(path, fix="Check the path of the schema.")
    try:
        held = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise SurveyError(f"{path} is not valid JSON: {reason}.", fix="Mend the schema.") from None
    if not isinstance(held, dict):
        raise SurveyError(f"{path} is not a JSON schema.", fix='Write an object like {"enum": ["good", "bad"]}.')
    return cast(Schema, held)


def _checked(schema: Schema, where: str) -> Schema:
    SchemaCheck(schema, where)
    return _said_openly(_resolved(schema))


def _check_size(schema: Schema, where: str) -> None:
    """Refuses a schema that is too large with its references written out: 30 that each name the next twice are 10^9."""
    try:
        nodes = _Expanded(schema).nodes()
    except RecursionError:
        nodes = _MOST_NODES + 1
    if nodes > _MOST_NODES:
        raise SurveyError(f"{where} is too large with its references written out.", fix="Name each of them less often.")


class _Expanded:
    """How large a schema is with every reference written out; one that leads back to itself counts as one there."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._named: dict[str, Any] = {"#": schema}
        self._sizes: dict[str, int] = {}
        self._find_names(schema)

    def nodes(self) -> int:
        return self._size(self._schema)

    def _find_names(self, node: Any) -> None:
        for word, value in _members(node):
            if word in ("$anchor", "$dynamicAnchor", "$id") and isinstance(value, str):
                self._named[value if word == "$id" else f"#{value}"] = node
            self._find_names(value)

    def _size(self, node: Any) -> int:
        total = 1
        for word, value in _members(node):
            is_reference = word in _REFERENCES and isinstance(value, str)
            total += self._size_of_reference(value) if is_reference else self._size(value)
        return total

    def _size_of_reference(self, reference: str) -> int:
        if reference not in self._sizes:
            self._sizes[reference] = 1
            self._sizes[reference] = self._size(self._target(reference))
        return self._sizes[reference]

    def _target(self, reference: str) -> Any:
        if reference in self._named:
            return self._named[reference]
        from urllib.parse import unquote  # 2 ms that only such a schema should cost

        place, _, pointer = reference.partition("#")
        node = self._named.get(place, self._schema)
        for part in unquote(pointer).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            node = next((value for word, value in _members(node) if str(word) == name), None)
        return node


def _members(node: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(node, dict):
        yield from cast("dict[str, Any]", node).items()
    elif isinstance(node, list):
        yield from enumerate(cast("list[Any]", node))


def _resolved(schema: Schema) -> Schema:
    """The definition that a schema refers to as a whole: model services want to see an object."""
    for place in ("$defs", "definitions"):
        definitions: dict[str, Schema] = schema.get(place, {})
        found = definitions.get(str(schema.get("$ref", "")).removeprefix(f"#/{place}/"))
        # Another rule beside the reference holds too, and could not be kept.
        if isinstance(found, dict) and schema.keys() <= _BESIDE_A_REFERENCE:
            return {**{word: held for word, held in schema.items() if word != "$ref"}, **found}
    return schema


def _said_openly(schema: Schema) -> Schema:
    """A schema with its type: one that has properties and no type means an object."""
    return {"type": "object", **schema} if "properties" in schema and "type" not in schema else schema


def _refuse_fetching(uri: str) -> Any:
    raise ValueError(f"it refers to {uri}, outside itself")
