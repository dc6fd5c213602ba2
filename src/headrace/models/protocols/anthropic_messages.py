"""Anthropic's messages.

Covers: what a request and a reply look like, whole or streamed. Does not cover: sending it
(models.http_client.http_provider). The shape of an answer is enforced by a tool that the model must call: every model
and every proxy knows tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from headrace.encoding import encode_with
from headrace.models.http_client.decoding import BadReply, decoded, fields, whole_number
from headrace.models.http_client.failures import said_in, service_time_s
from headrace.models.http_client.file_bodies import FileBody, content
from headrace.models.http_client.http_options import (
    HTTP_PARAMETERS,
    HttpOptions,
    number,
    stop_texts,
    whole,
    without_none,
)
from headrace.models.http_client.http_provider import Dialect, ErrorInside, HttpProvider, Stream
from headrace.models.http_client.rate_headers import anthropic_rates
from headrace.models.protocols.structured import AnswerShape, AnswerShapes
from headrace.models.provider import Finish, RateHint, Reply, Request, check_parameters
from headrace.survey.files.file_store import FileStore
from headrace.survey.files.file_types import FileKind
from headrace.survey.files.taken import refuse_untaken
from headrace.survey.known_services import SERVICES
from headrace.survey.model import Model
from headrace.survey.questions.base import Schema
from headrace.survey.values import repair_text

_SAMPLING = {"temperature": (0.0, 1.0), "top_p": (0.0, 1.0)}
_PARAMETERS = HTTP_PARAMETERS | _SAMPLING.keys() | {"max_tokens", "stop", "top_k"}
_MAX_TOKENS = 4096  # the service wants a number
_VERSION = "2023-06-01"
_TOOL = "answer"
_FINISHES = {
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "pause_turn": Finish.LENGTH,
    "refusal": Finish.REFUSED,
}


class _MessageTurn(msgspec.Struct, gc=False):
    role: str
    content: str


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    input: Any = None
    partial_json: str | None = None


class _Answer(msgspec.Struct, gc=False):
    """A whole message, or the part of one that an event of a stream holds."""

    type: str = ""
    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: Any = None
    error: Any = None
    message: Any = None
    content_block: _Block | None = None
    delta: Any = None


_encode = encode_with(msgspec.json.Encoder())  # a large prompt in a worker at its limit is no crash
_decoder = msgspec.json.Decoder(_Answer)


def anthropic_messages(model: Model) -> HttpProvider:
    """The provider of a model that is reached by messages."""
    check_parameters(model.service_name, model.parameters, _PARAMETERS)
    service = SERVICES[model.service_name]
    options = HttpOptions.of(model.name, service, model.parameters)
    return HttpProvider(model, service, options, Messages(model, options))


class Messages(Dialect):
    path = "messages"

    def __init__(self, model: Model, options: HttpOptions) -> None:
        self._service = model.service_name
        self._shapes = AnswerShapes(_forced_tool)
        self._head = _encode(_constants(model, options))[:-1] + b',"messages":'

    def headers(self, key: str | None) -> dict[str, str]:
        version = {"anthropic-version": _VERSION}
        return version if key is None else {**version, "x-api-key": key}

    def answer_shape(self, request: Request) -> AnswerShape | None:
        return self._shapes.of(request)

    def body(self, request: Request, in_words: str, shape: AnswerShape | None) -> bytes | FileBody:
        if request.files:
            return self._body_with_files(request, in_words, shape)
        system, asked = request.system_prompt, request.user_prompt + in_words
        try:
            encoded = _written(system, asked)
        except UnicodeEncodeError:
            encoded = _written(repair_text(system)[0], repair_text(asked)[0])
        return self._head + encoded + (b"}" if shape is None else shape.enforced)

    def _body_with_files(self, request: Request, in_words: str, shape: AnswerShape | None) -> FileBody:
        parts = content(request, in_words, _text_part, partial(_file_part, self._service))
        system = b',"system":' + _encode(repair_text(request.system_prompt)[0]) if request.system_prompt else b""
        end = b"}]" + system + (b"}" if shape is None else shape.enforced)
        return FileBody([self._head + b'[{"role":"user","content":', *parts, end])

    def rates(self, headers: Mapping[str, str]) -> RateHint | None:
        return anthropic_rates(headers, service_time_s(headers))

    def reply(self, body: bytes) -> Reply:
        found, repaired = decoded(_decoder, body)
        if found.error is not None:
            raise ErrorInside(said_in({"error": found.error}))
        if found.content is None:
            raise BadReply("its reply holds no content")
        texts = [block.text or "" for block in found.content if block.type == "text"]
        called = [block.input for block in found.content if block.type == "tool_use"]
        text = _as_json(called[0]) if called else "".join(texts)
        return _reply(text, found.stop_reason, fields(found.usage), body, repaired)

    def stream(self) -> Stream:
        return _MessageStream()


class _MessageStream(Stream):
    """Joins the events of one streamed reply."""

    def __init__(self) -> None:
        self._texts: list[str] = []  # bounded by max_response_bytes
        self._arguments: list[str] = []
        self._tools = 0
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}
        self._repaired = self._ended = False

    def take(self, data: bytes) -> bool:
        if not data:
            return False
        found, repaired = decoded(_decoder, data)
        self._repaired |= repaired
        match found.type:
            case "error":
                raise ErrorInside(said_in({"error": found.error}))
            case "message_start":
                self._usage |= fields(fields(found.message).get("usage"))
            case "content_block_start":
                self._tools += found.content_block is not None and found.content_block.type == "tool_use"
            case "content_block_delta":
                self._take_piece(fields(found.delta))
            case "message_delta":
                self._take_finish(fields(found.delta).get("stop_reason"))
                self._usage |= fields(found.usage)
            case "message_stop":
                self._ended = True
            case _:
                pass  # pings, and kinds that are yet to come
        return self._ended

    def reply(self, body: bytes) -> Reply:
        if not self._ended and self._finish is None:
            raise BadReply("its stream ended in the middle")
        text = "".join(self._arguments or self._texts)
        return _reply(text, self._finish, self._usage, body, self._repaired)

    def _take_finish(self, given: object) -> None:
        if not given:
            return
        if not isinstance(given, str):
            raise BadReply("its reply has a stop_reason that is no text")
        self._finish = given

    def _take_piece(self, delta: dict[str, Any]) -> None:
        if isinstance(delta.get("text"), str):
            self._texts.append(delta["text"])
        elif isinstance(delta.get("partial_json"), str) and self._tools == 1:
            self._arguments.append(delta["partial_json"])


def _constants(model: Model, options: HttpOptions) -> dict[str, Any]:
    """The part of the body that all requests share."""
    given = model.parameters
    most_tokens = whole(given, "max_tokens", least=1) if "max_tokens" in given else _MAX_TOKENS
    constant: dict[str, Any] = {"model": model.name, "max_tokens": most_tokens}
    for name, (least, most) in _SAMPLING.items():
        if name in given:
            constant[name] = number(given, name, least=least, most=most)
    if "top_k" in given:
        constant["top_k"] = whole(given, "top_k", least=1)
    if "stop" in given:
        constant["stop_sequences"] = stop_texts(given["stop"])
    if options.stream:
        constant["stream"] = True
    return without_none(constant | options.extra_body)


def _written(system: str, asked: str) -> bytes:
    messages = _encode([_MessageTurn("user", asked)])
    return messages + b',"system":' + _encode(system) if system else messages


def _text_part(text: str) -> bytes:
    return _encode({"type": "text", "text": repair_text(text)[0]})


def _file_part(service: str, file: FileStore) -> tuple[bytes, bytes]:
    """What stands before and behind a file's base64."""
    refuse_untaken(service, file)
    block = b"document" if file.kind is FileKind.PDF else b"image"
    source = b'{"type":"base64","media_type":' + _encode(file.mime_type) + b',"data":"'
    return b'{"type":"' + block + b'","source":' + source, b'"}}'


def _forced_tool(envelope: Schema) -> bytes:
    """The end of a body."""
    tool = {"name": _TOOL, "description": "Give the answer.", "input_schema": envelope}
    choice = {"type": "tool", "name": _TOOL}
    return b',"tools":' + _encode([tool]) + b',"tool_choice":' + _encode(choice) + b"}"


def _as_json(value: Any) -> str:
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        raise BadReply("its reply holds an answer that is no text") from None


def _reply(text: str, finish: str | None, usage: dict[str, Any], body: bytes, repaired: bool) -> Reply:
    if repaired:
        text = repair_text(text)[0]
    cached = whole_number(usage.get("cache_read_input_tokens"))
    written = whole_number(usage.get("cache_creation_input_tokens"))
    # The service counts what it had in its cache apart.
    input_tokens = whole_number(usage.get("input_tokens")) + cached + written
    finished = _FINISHES.get(finish or "", Finish.STOP)
    return Reply(text, body, input_tokens, whole_number(usage.get("output_tokens")), repaired, cached, 0, finished)
