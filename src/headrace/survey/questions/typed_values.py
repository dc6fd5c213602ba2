"""The JSON schemas of a dict's or template's values, and turning what a model sent into their types.

Covers: schemas from names of types ("list[int]") and from an example, the repairs that lose nothing ("5" where a number
is wanted, 5 where a text is), and checking. Does not cover: schemas that users give (survey.schemas), and reading JSON
(survey.repair).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions.base import Schema
from headrace.survey.repair.number_texts import plain_number

_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "dict": "object", "list": "array"}
_OTHER_NAMES = {
    "string": "str", "text": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list",
    "object": "dict",
}  # fmt: skip
_MOST_LISTS = 10  # inside each other
_LIST_OF = re.compile(r"list\[(.+)\]")
_PYTHON_TYPES: dict[str, tuple[type[Any], ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "object": (dict,),
    "array": (list,), "null": (type(None),),
}  # fmt: skip
_TRUE_FALSE = {"true": True, "yes": True, "false": False, "no": False}


def type_name(question_name: str, given: object) -> str:
    """The name of a type, written as a text or as the type itself: "int", `int`, "list[str]", `list[str]`."""
    shown = getattr(given, "__name__", None) if isinstance(given, type) and "[" not in repr(given) else None
    name = str(shown or given).replace("typing.", "").strip().lower()
    name = _OTHER_NAMES.get(name, name)
    inner = _LIST_OF.fullmatch(name) if name.count("[") <= _MOST_LISTS else None
    if inner is not None:
        return f"list[{type_name(question_name, inner[1])}]"
    if name not in _TYPES and name not in ("any", "none"):
        raise SurveyError(
            f"Question {question_name!r} has {str(given)[:100]!r} for a type.",
            fix=f"Give one of {', '.join(_TYPES)}, or a list of these like list[str].",
        )
    return name


def schema_of_type(name: str) -> Schema:
    """The JSON schema of a type by its name, None included: a model may not know a value."""
    inner = _LIST_OF.fullmatch(name)
    if inner is not None:
        return {"type": ["array", "null"], "items": schema_of_type(inner[1])}
    return {"type": [_TYPES[name], "null"]} if name in _TYPES else {}


def schema_of_example(example: Any) -> Schema:
    """The JSON schema of values like this one, None included."""
    match example:
        case bool():
            return {"type": ["boolean", "null"]}
        case int():
            return {"type": ["integer", "null"]}
        case float():
            return {"type": ["number", "null"]}
        case str():
            return {"type": ["string", "null"]}
        case list() | tuple():
            items = cast("list[Any]", example)
            return {"type": ["array", "null"], "items": schema_of_example(items[0]) if items else {}}
        case Mapping():
            return {**object_schema(cast("Mapping[str, Any]", example)), "type": ["object", "null"]}
        case _:
            return {}


def object_schema(template: Mapping[str, Any]) -> Schema:
    """The JSON schema of objects with the keys of this one and values like its own."""
    return closed_object({key: schema_of_example(value) for key, value in template.items()})


def closed_object(properties: dict[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def fitted(value: Any, schema: Any) -> Any:
    """The value in the schema's type where nothing is lost by that, else as it is. Unknown keys are dropped."""
    if not isinstance(schema, dict):
        return value
    known = cast(Schema, schema)
    types = cast("list[str]", known["type"]) if isinstance(known.get("type"), list) else [known.get("type")]
    match value:
        case dict() if "object" in types and "properties" in known:
            return _fitted_object(cast("dict[str, Any]", value), known)
        case list():
            return [fitted(item, known.get("items")) for item in cast("list[Any]", value)]
        case str() if "string" not in types:
            return _from_text(value, types)
        case bool() | dict():
            return cast(Any, value)
        case int() | float() if "string" in types and "number" not in types and "integer" not in types:
            return str(value)
        case float() if "integer" in types and "number" not in types and value.is_integer():
            return int(value)
        case _:
            return value


def check_types(value: Any, schema: Schema, where: str = "the answer") -> None:
    """InvalidAnswer where a value does not follow a schema that was made here; others need survey.schemas."""
    types = cast("list[str]", schema["type"]) if isinstance(schema.get("type"), list) else [schema.get("type")]
    if types != [None] and not any(_is_of_type(value, str(name)) for name in types):
        wanted = next(name for name in types if name != "null")
        raise InvalidAnswer(f"{where}: {str(value)[:200]!r} is not of type {wanted}")
    if isinstance(value, list):
        for place, item in enumerate(cast("list[Any]", value)):
            check_types(item, schema.get("items", {}), f"{where}[{place}]")
    elif isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        for key in schema.get("required", ()):
            if key not in held:
                raise InvalidAnswer(f"{where} has nothing for {key!r}")
        for key, inner in schema.get("properties", {}).items():
            check_types(held.get(key), inner, f"{key!r}")


def _is_of_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _PYTHON_TYPES[name])


def _fitted_object(value: dict[str, Any], schema: Schema) -> dict[str, Any]:
    properties = cast("dict[str, Any]", schema["properties"])
    is_closed = schema.get("additionalProperties") is False
    kept = {key: item for key, item in value.items() if key in properties or not is_closed}
    return {key: fitted(item, properties.get(key)) for key, item in kept.items()}


def _from_text(text: str, types: list[Any]) -> Any:
    said = text.strip()
    if "null" in types and said.lower() in ("null", "none"):
        return None
    if "boolean" in types and said.lower() in _TRUE_FALSE:
        return _TRUE_FALSE[said.lower()]
    number = plain_number(said) if "integer" in types or "number" in types else None
    if isinstance(number, float) and "number" not in types:
        number = int(number) if number.is_integer() else None
    return text if number is None else number
