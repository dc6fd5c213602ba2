"""The OpenAPI document of the page's API, made from the same declarations as its routes.

Does not cover: the HTML pages, which are for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any, TypeAlias

import msgspec

from headrace.web.api import OPERATIONS
from headrace.web.live.streams import STREAMS, EventStream
from headrace.web.operations import AnyOperation, ErrorReply, Method

Json: TypeAlias = dict[str, Any]

_REF = "#/components/schemas/{name}"
_FORM = "application/x-www-form-urlencoded"
_ERRORS = {
    400: "The request cannot be read.",
    401: "The token is missing.",
    403: "The request comes from another page, or calls the server by another name.",
    404: "There is no such file here, or nothing of this name.",
    409: "No process runs the file, or it cannot be asked.",
    413: "The request is too large.",
    422: "The file cannot be read.",
    503: "Too many requests at once, or reading took too long.",
}


def openapi_document(api: str, *, can_steer: bool) -> bytes:
    """The document as JSON; `api` is where the paths begin. Without steering, what steers is left out."""
    operations = [each for each in OPERATIONS if can_steer or each.method is Method.GET]
    types = {ErrorReply, *(each.reply for each in operations), *(each.event for each in STREAMS)}
    # In one order, so that the document is the same each time.
    _, schemas = msgspec.json.schema_components(sorted(types, key=lambda each: each.__name__), ref_template=_REF)
    paths: dict[str, Json] = {}
    for operation in operations:
        paths.setdefault(api + operation.path, {})[operation.method.value.lower()] = _operation(operation)
    for stream in STREAMS:
        paths.setdefault(api + stream.path, {})["get"] = _stream(stream)
    document: Json = {
        "openapi": "3.1.0",
        "info": {
            "title": "Headrace",
            "version": version("headrace"),
            "description": "Run files and engine files, read and steered. Replies are bounded; what was cut says so.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token in the address that `headrace view` prints.",
                }
            },
        },
    }
    return msgspec.json.encode(document)


def _operation(operation: AnyOperation) -> Json:
    described: Json = {"operationId": _id_of(operation), "summary": operation.summary}
    parameters = _parameters(operation.parameters, operation.path)
    if operation.method is Method.POST:
        fields = [each for each in parameters if each["in"] == "query"]
        parameters = [each for each in parameters if each["in"] == "path"]
        if fields:
            described["requestBody"] = _form(fields)
    reply = {"schema": _ref(operation.reply)}
    return described | {"parameters": parameters, "responses": _responses({"application/json": reply})}


def _stream(stream: EventStream) -> Json:
    parameters = _parameters(stream.parameters, stream.path)
    last_id = {
        "name": "Last-Event-ID",
        "in": "header",
        "required": False,
        "schema": {"type": "string"},
        "description": "The id of the last event that was seen: only what has changed since is told.",
    }
    told = f"Server-sent events named `{stream.name}`; the data of each is JSON: see {stream.event.__name__}."
    return {
        "operationId": f"follow_{stream.name}",
        "summary": stream.summary,
        "description": told,
        "parameters": [*parameters, last_id],
        "responses": _responses({"text/event-stream": {"schema": {"type": "string"}}}),
        "x-event": _ref(stream.event),
    }


def _id_of(operation: AnyOperation) -> str:
    return f"{operation.method.value.lower()}_{re.sub(r'[^a-z0-9]+', '_', operation.name.lower())}"


def _parameters(type_: type[msgspec.Struct], path: str) -> list[Json]:
    """The fields of a struct of parameters: those in the path, and those behind it."""
    _, made = msgspec.json.schema_components([type_], ref_template=_REF)
    schema = made[type_.__name__]
    required = set(schema.get("required", ()))
    in_path = set(re.findall(r"{(\w+)}", path))
    return [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in required,
            "schema": _inlined(field, made),
        }
        for name, field in schema["properties"].items()
    ]


def _inlined(schema: Json, made: dict[str, Json]) -> Json:
    """A parameter's schema without references: enums are short."""
    name = schema.get("$ref", "").rpartition("/")[2]
    return made[name] if name else schema


def _form(fields: Iterable[Json]) -> Json:
    properties = {each["name"]: each["schema"] for each in fields}
    required = [each["name"] for each in fields if each["required"]]
    schema = {"type": "object", "properties": properties, "required": required}
    return {"required": bool(required), "content": {kind: {"schema": schema} for kind in (_FORM, "application/json")}}


def _responses(content: Json) -> Json:
    failed = {"application/json": {"schema": _ref(ErrorReply)}}
    errors = {str(status): {"description": said, "content": failed} for status, said in _ERRORS.items()}
    return {"200": {"description": "As asked.", "content": content}} | errors


def _ref(type_: type[msgspec.Struct]) -> Json:
    return {"$ref": _REF.format(name=type_.__name__)}
