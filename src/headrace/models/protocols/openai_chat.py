"""OpenAI's chat completions, which many services and local servers speak too.

Covers: what a request and a reply look like, whole or streamed. Does not cover: sending it
(models.http_client.http_provider).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from headrace.encoding import encode_with
from headrace.models.http_client.decoding import BadReply, decoded, fields, whole_number
from headrace.models.http_client.failures import said_in
from headrace.models.http_client.file_bodies import FileBody, content
from headrace.models.http_client.http_options import (
    HTTP_PARAMETERS,
    HttpOptions,
    flag,
    number,
    stop_texts,
    whole,
    without_none,
)
from headrace.models.http_client.http_provider import Dialect, ErrorInside, HttpProvider, Stream
from headrace.models.http_client.rate_headers import chat_rates
from headrace.models.protocols.structured import AnswerShape, AnswerShapes, strict_form
from headrace.models.provider import Finish, RateHint, Reply, Request, check_parameters
from headrace.survey.files.file_store import FileStore
from headrace.survey.files.file_types import FileKind
from headrace.survey.files.taken import refuse_untaken
from headrace.survey.known_services import SERVICES
from headrace.survey.model import Model
from headrace.survey.questions.base import Schema
from headrace.survey.values import repair_text

_SAMPLING = {
    "temperature": (0.0, 10.0),
    "top_p": (0.0, 1.0),
    "frequency_penalty": (-2.0, 2.0),
    "presence_penalty": (-2.0, 2.0),
}
_PARAMETERS = HTTP_PARAMETERS | _SAMPLING.keys() | {"logprobs", "max_tokens", "seed", "stop"}
_FINISHES = {"length": Finish.LENGTH, "content_filter": Finish.REFUSED}


class _ChatMessage(msgspec.Struct, gc=False):
    role: str
    content: str


class _ChatText(msgspec.Struct, gc=False):
    content: Any = None  # a text, or parts of one
    refusal: str | None = None


class _ChatChoice(msgspec.Struct, gc=False):
    message: _ChatText | None = None
    delta: _ChatText | None = None
    finish_reason: str | None = None


class _Completion(msgspec.Struct, gc=False):
    choices: list[_ChatChoice] | None = None
    usage: Any = None
    error: Any = None


_encode = encode_with(msgspec.json.Encoder())  # a large prompt in a worker at its limit is no crash
_decoder = msgspec.json.Decoder(_Completion)


def openai_chat(model: Model) -> HttpProvider:
    """The provider of a model that is reached by chat completions."""
    check_parameters(model.service_name, model.parameters, _PARAMETERS)
    service = SERVICES[model.service_name]
    options = HttpOptions.of(model.name, service, model.parameters)
    return HttpProvider(model, service, options, ChatCompletions(model, options))


class ChatCompletions(Dialect):
    path = "chat/completions"

    def __init__(self, model: Model, options: HttpOptions) -> None:
        self._service = model.service_name
        self._counts_by_day = model.service_name == "groq"
        self._shapes = AnswerShapes(_response_format)
        self._head = _encode(_constants(model, options))[:-1] + b',"messages":'

    def headers(self, key: str | None) -> dict[str, str]:
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def answer_shape(self, request: Request) -> AnswerShape | None:
        return self._shapes.of(request)

    def body(self, request: Request, in_words: str, shape: AnswerShape | None) -> bytes | FileBody:
        if request.files:
            return self._body_with_files(request, in_words, shape)
        asked = _ChatMessage("user", request.user_prompt + in_words)
        system = request.system_prompt
        messages = [_ChatMessage("system", system), asked] if system else [asked]
        try:
            encoded = _encode(messages)
        except UnicodeEncodeError:
            encoded = _encode([_ChatMessage(each.role, repair_text(each.content)[0]) for each in messages])
        return self._head + encoded + (b"}" if shape is None else shape.enforced)

    def _body_with_files(self, request: Request, in_words: str, shape: AnswerShape | None) -> FileBody:
        system = request.system_prompt
        before = _encode_repaired({"role": "system", "content": system}) + b"," if system else b""
        parts = content(request, in_words, _text_part, partial(_file_part, self._service))
        end = b"}]" + (b"}" if shape is None else shape.enforced)
        return FileBody([self._head + b"[" + before + b'{"role":"user","content":', *parts, end])

    def rates(self, headers: Mapping[str, str]) -> RateHint | None:
        return chat_rates(headers, counts_by_day=self._counts_by_day)

    def reply(self, body: bytes) -> Reply:
        found, repaired = decoded(_decoder, body)
        if not found.choices:
            raise _nothing_in(found)
        choice = found.choices[0]
        said = choice.message or _ChatText()
        return _reply(_text(said.content), said.refusal, choice.finish_reason, found.usage, body, repaired)

    def stream(self) -> Stream:
        return _ChatStream()


class _ChatStream(Stream):
    """Joins the events of one streamed reply."""

    def __init__(self) -> None:
        self._pieces: list[str] = []  # bounded by max_response_bytes
        self._refusals: list[str] = []
        self._finish: str | None = None
        self._usage: Any = None
        self._repaired = self._ended = False

    def take(self, data: bytes) -> bool:
        if data == b"[DONE]":
            self._ended = True
            return True
        if not data:
            return False
        found, repaired = decoded(_decoder, data)
        if found.error is not None:
            raise _nothing_in(found)
        self._repaired |= repaired
        self._usage = found.usage or self._usage
        for choice in (found.choices or ())[:1]:
            said = choice.delta or _ChatText()
            self._pieces.append(_text(said.content))
            self._refusals.append(said.refusal or "")
            self._finish = choice.finish_reason or self._finish
        return False

    def reply(self, body: bytes) -> Reply:
        if not self._ended and self._finish is None:
            raise BadReply("its stream ended in the middle")
        text, refusal = "".join(self._pieces), "".join(self._refusals)
        return _reply(text, refusal, self._finish, self._usage, body, self._repaired)


def _constants(model: Model, options: HttpOptions) -> dict[str, Any]:
    """The part of the body that all requests share."""
    given = model.parameters
    constant: dict[str, Any] = {"model": model.name}
    for name, (least, most) in _SAMPLING.items():
        if name in given:
            constant[name] = number(given, name, least=least, most=most)
    if "max_tokens" in given:
        # OpenAI's newer models know only the long name, which other servers do not know.
        name = "max_completion_tokens" if model.service_name == "openai" else "max_tokens"
        constant[name] = whole(given, "max_tokens", least=1)
    if "seed" in given:
        constant["seed"] = whole(given, "seed", least=-(1 << 63))
    if "stop" in given:
        constant["stop"] = stop_texts(given["stop"])
    constant |= _logprobs(given)
    if options.stream:
        constant |= {"stream": True, "stream_options": {"include_usage": True}}
    return without_none(constant | options.extra_body)


def _logprobs(given: dict[str, Any]) -> dict[str, Any]:
    """`logprobs=True`, or how many alternatives to tell for each token."""
    value = given.get("logprobs", False)
    if not isinstance(value, bool):
        return {"logprobs": True, "top_logprobs": whole(given, "logprobs", least=1)}
    return {"logprobs": True} if flag(given, "logprobs") else {}


def _response_format(envelope: Schema) -> bytes:
    """The end of a body. Strict where strict mode can say the schema, else as it is, for the service to do its best."""
    strict = strict_form(envelope)
    enforced = {"name": "answer", "strict": strict is not None, "schema": strict or envelope}
    return b',"response_format":' + _encode({"type": "json_schema", "json_schema": enforced}) + b"}"


def _encode_repaired(value: dict[str, str]) -> bytes:
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode({name: repair_text(text)[0] for name, text in value.items()})


def _text_part(text: str) -> bytes:
    return _encode_repaired({"type": "text", "text": text})


def _file_part(service: str, file: FileStore) -> tuple[bytes, bytes]:
    """What stands before and behind a file's base64."""
    refuse_untaken(service, file)
    data_url = f"data:{file.mime_type};base64,".encode()
    match file.kind:
        case FileKind.PDF:
            return b'{"type":"file","file":{"filename":' + _encode(file.name) + b',"file_data":"' + data_url, b'"}}'
        case FileKind.AUDIO:
            form = b"mp3" if file.mime_type == "audio/mpeg" else b"wav"
            return b'{"type":"input_audio","input_audio":{"data":"', b'","format":"' + form + b'"}}'
        case _:
            return b'{"type":"image_url","image_url":{"url":"' + data_url, b'"}}'


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list):
        raise BadReply("its reply holds an answer that is no text")
    parts = [fields(part) for part in content]  # pyright: ignore[reportUnknownVariableType]
    return "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


def _reply(text: str, refusal: str | None, finish: str | None, usage: Any, body: bytes, repaired: bool) -> Reply:
    if finish == "error":  # OpenRouter's word for a model that broke down on the way
        raise BadReply("the model broke down in the middle")
    finished = _FINISHES.get(finish or "", Finish.STOP)
    if refusal and not text:
        text, finished = refusal, Finish.REFUSED
    if repaired:
        text = repair_text(text)[0]
    used = fields(usage)
    cached = fields(used.get("prompt_tokens_details")).get("cached_tokens")
    reasoning = fields(used.get("completion_tokens_details")).get("reasoning_tokens")
    return Reply(
        text, body, whole_number(used.get("prompt_tokens")), whole_number(used.get("completion_tokens")),
        repaired, whole_number(cached), whole_number(reasoning), finished,
    )  # fmt: skip


def _nothing_in(found: _Completion) -> BadReply | ErrorInside:
    """Some services send an error with status 200, or in a stream."""
    if found.error is None:
        return BadReply("its reply holds no choice")
    return ErrorInside(said_in({"error": found.error}))
