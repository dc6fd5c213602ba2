"""What a model server does on a bad day, each by a name. Every behaviour speaks both protocols."""

import asyncio
import gzip
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

import msgspec

ANSWER = "Good"
_PIECE = b"x" * 65_536


@dataclass(slots=True)
class Call:
    """One request as the server sees it."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    answer: str | None

    @property
    def is_messages(self) -> bool:
        return self.path.endswith("/messages")

    @property
    def prompt(self) -> str:
        """The text of the prompt; of one with files, its texts joined."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part["text"] for part in self.content if part["type"] == "text")

    @property
    def content(self) -> Any:
        """The prompt as it was sent: a text, or a list of parts."""
        return self.body["messages"][-1]["content"]

    @property
    def is_structured(self) -> bool:
        return "response_format" in self.body or "tools" in self.body

    @property
    def is_streamed(self) -> bool:
        return bool(self.body.get("stream"))


@dataclass(slots=True)
class Connection:
    transport: Any
    _writable: asyncio.Event

    def send(self, data: bytes) -> None:
        if self.transport.is_closing():
            raise ConnectionError
        self.transport.write(data)

    async def send_slowly(self, data: bytes) -> None:
        """As fast as the other side reads."""
        self.send(data)
        await self._writable.wait()

    def close(self) -> None:
        self.transport.close()

    def reset(self) -> None:
        self.transport.abort()


Behaviour = Callable[[Call, Connection], Coroutine[Any, Any, None]]
BEHAVIOURS: dict[str, Behaviour] = {}


def http(status: int, body: bytes, *headers: str, length: int | None = None, streamed: bool = False) -> bytes:
    kind = "text/event-stream" if streamed else "application/json"
    length = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {length}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def completion(call: Call, text: str | None = None, finish: str = "stop", **changes: Any) -> bytes:
    """A whole reply; `changes` replace its top-level fields."""
    text = call.answer or ANSWER if text is None else text
    if call.is_structured:
        text = f'{{"answer":{msgspec.json.encode(text).decode()}}}'
    if call.is_streamed:
        return _events(call, text, finish)
    return msgspec.json.encode((_message(call, text, finish) if call.is_messages else _chat(text, finish)) | changes)


def _chat(text: str, finish: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": 11, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
    usage["completion_tokens_details"] = {"reasoning_tokens": 2}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}


_STOPS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


def _message(call: Call, text: str, finish: str) -> dict[str, Any]:
    block = {"type": "text", "text": text}
    if call.is_structured:
        block = {"type": "tool_use", "id": "t", "name": "answer", "input": msgspec.json.decode(text)}
    usage = {"input_tokens": 7, "cache_read_input_tokens": 4, "output_tokens": 3}
    return {"type": "message", "content": [block], "stop_reason": _STOPS[finish], "usage": usage}


def _events(call: Call, text: str, finish: str) -> bytes:
    middle = len(text) // 2
    if not call.is_messages:
        events: list[Any] = [{"choices": [{"delta": {"content": each}}]} for each in (text[:middle], text[middle:])]
        events.append({"choices": [{"delta": {}, "finish_reason": finish}]})
        events.append({"choices": [], "usage": _chat("", "")["usage"]})
        return b"".join(map(_event, events)) + b"data: [DONE]\n\n"
    kind, key = ("input_json_delta", "partial_json") if call.is_structured else ("text_delta", "text")
    block = {"type": "tool_use" if call.is_structured else "text", "text": ""}
    usage = {"input_tokens": 7, "cache_read_input_tokens": 4, "output_tokens": 1}
    deltas = [
        {"type": "content_block_delta", "delta": {"type": kind, key: each}} for each in (text[:middle], text[middle:])
    ]
    events = [
        {"type": "message_start", "message": {"usage": usage}},
        {"type": "content_block_start", "content_block": block},
        {"type": "ping"},
        *deltas,
        {"type": "message_delta", "delta": {"stop_reason": _STOPS[finish]}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    return b"".join(map(_event, events))


def _event(found: Any) -> bytes:
    return b"data: " + msgspec.json.encode(found) + b"\r\n\r\n"


def error(message: str, code: str | None = None, kind: str = "some_error") -> bytes:
    return msgspec.json.encode({"type": "error", "error": {"message": message, "type": kind, "code": code}})


def behaviour(name: str) -> Callable[[Behaviour], Behaviour]:
    def register(function: Behaviour) -> Behaviour:
        BEHAVIOURS[name] = function
        return function

    return register


def says(name: str, status: int, body: bytes | Callable[[Call], bytes], *headers: str) -> None:
    """A behaviour that is one plain response."""

    async def respond(call: Call, out: Connection) -> None:
        made = body(call) if callable(body) else body
        out.send(http(status, made, *headers, streamed=call.is_streamed and status == 200))

    BEHAVIOURS[name] = respond


def _sent_key(call: Call) -> str:
    return call.headers.get("authorization") or call.headers.get("x-api-key") or "no key"


# Refusals.
says("400", 400, error("temperature must not be hot"))
says("401", 401, error("Incorrect API key provided", "invalid_api_key"))
says("echo-key", 401, lambda call: error(f"Bad {_sent_key(call)}"))
says("echo-key-200", 200, lambda call: completion(call, _sent_key(call)))
says("402", 402, error("Payment required"))
says("403", 403, error("Not for you"))
says("404", 404, error("The model does not exist", "model_not_found"))
says("408", 408, error("Request time-out"))
says("413", 413, error("Too large", kind="request_too_large"))
says("429", 429, error("Slow down", "rate_limit_exceeded"))
says("429-seconds", 429, error("Slow down"), "Retry-After: 1.5")
says("429-milliseconds", 429, error("Slow down"), "retry-after-ms: 250", "Retry-After: 1")
says("429-odd", 429, error("Slow down"), "Retry-After: soon")
says("429-billing", 429, error("Rate limit reached. Add a payment method at /account/billing", "rate_limit_exceeded"))
says("quota", 429, error("You exceeded your current quota", "insufficient_quota"), "Retry-After: 1")
says("credit", 400, error("Your credit balance is too low to access the API", kind="invalid_request_error"))
says("500", 500, error("Internal error"))
says("500-seconds", 500, error("Internal error"), "Retry-After: 2")
says("502-html", 502, b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>")
says("503", 503, error("Unavailable"))
says("503-seconds", 503, error("Unavailable"), "Retry-After: 3")
says("529", 529, error("Overloaded", kind="overloaded_error"))
says("context", 400, error("This model's maximum context length is 8192 tokens", "context_length_exceeded"))
says("too-long", 400, error("prompt is too long: 210000 tokens > 200000 maximum", kind="invalid_request_error"))
says("filtered-prompt", 400, error("The prompt was filtered", "content_filter"))
says("redirect", 307, b"", "Location: http://127.0.0.1:1/elsewhere?token=secret")
says("detail", 422, b'{"detail":[{"loc":["body"],"msg":"field required"}]}')

# Replies that are none, or not quite.
says("empty-body", 200, b"")
says("truncated-json", 200, lambda call: completion(call)[:-20])
says("wrong-shape", 200, b'{"choices": "many", "content": "much"}')
says("wrong-shape-list", 200, b"[1, 2, 3]")
says("html", 200, b"<!doctype html><html><body>Please log in</body></html>")
says("deep", 200, b'{"choices":' + b"[" * 100_000)
says("no-choices", 200, b'{"choices": [], "type": "message"}')
says("error-inside", 200, b'{"error": {"message": "Provider overloaded", "code": 429, "type": "overloaded_error"}}')
says("no-usage", 200, lambda call: completion(call, usage=None))
says("odd-usage", 200, lambda call: completion(call, usage={"prompt_tokens": "many", "input_tokens": -5}))
says("empty", 200, lambda call: completion(call, ""))
says("cut-off", 200, lambda call: completion(call, "Goo", "length"))
says("filtered", 200, lambda call: completion(call, "", "content_filter"))
says("bom", 200, lambda call: b"\xef\xbb\xbf" + completion(call))
says("surrogates", 200, lambda call: completion(call, "SURROGATE").replace(b"SURROGATE", b"a\\ud800b"))
says("bad-utf8", 200, lambda call: completion(call, "BYTES").replace(b"BYTES", b"a\xffb"))
says("nul", 200, lambda call: completion(call, "a\0b"))
says("emoji", 200, lambda call: completion(call, "🎈").replace("🎈".encode(), b"\\ud83c\\udf88"))
says("gzip", 200, lambda call: gzip.compress(completion(call)), "Content-Encoding: gzip")
says("bad-gzip", 200, completion, "Content-Encoding: gzip")
says(
    "rates",
    200,
    completion,
    "x-ratelimit-limit-requests: 500",
    "x-ratelimit-limit-tokens: 30000",
    "x-ratelimit-remaining-requests: 499",
    "x-ratelimit-remaining-tokens: 29000",
    "x-ratelimit-reset-requests: 120ms",
    "x-ratelimit-reset-tokens: 6m1.5s",
    "anthropic-ratelimit-requests-limit: 500",
    "anthropic-ratelimit-tokens-limit: 30000",
    "anthropic-ratelimit-requests-remaining: 499",
    "anthropic-ratelimit-tokens-remaining: 29000",
    "anthropic-ratelimit-requests-reset: 2030-01-01T00:00:00Z",
)


def _two_choices(call: Call) -> bytes:
    if call.is_messages or call.is_streamed:
        return completion(call)
    return completion(call, choices=[_chat(text, "stop")["choices"][0] for text in (call.answer or ANSWER, "Bad")])


def _refusal(call: Call) -> bytes:
    if call.is_messages or call.is_streamed:
        return completion(call, "I would rather not", "content_filter")
    message = {"role": "assistant", "content": None, "refusal": "I would rather not"}
    return completion(call, choices=[{"message": message, "finish_reason": "stop"}])


says("two-choices", 200, _two_choices)
says("refusal", 200, _refusal)


@behaviour("429-date")
async def _429_date(call: Call, out: Connection) -> None:
    now_s = time.time()
    dates = (f"Date: {formatdate(now_s, usegmt=True)}", f"Retry-After: {formatdate(now_s + 20, usegmt=True)}")
    out.send(http(429, error("Slow down"), *dates))


@behaviour("no-schema")
async def _no_schema(call: Call, out: Connection) -> None:
    if call.is_structured:
        out.send(http(400, error("This model does not support response format `json_schema` or tools")))
    else:
        out.send(http(200, completion(call, '{"answer":"Good"}'), streamed=call.is_streamed))


@behaviour("no-schema-then-401")
async def _no_schema_then_401(call: Call, out: Connection) -> None:
    out.send(http(400, error("bad schema")) if call.is_structured else http(401, error("who are you")))


# Connections.
@behaviour("reset")
async def _reset(call: Call, out: Connection) -> None:
    out.reset()


@behaviour("hang-up")
async def _hang_up(call: Call, out: Connection) -> None:
    out.close()


@behaviour("reset-mid-body")
async def _reset_mid_body(call: Call, out: Connection) -> None:
    out.send(http(200, completion(call), streamed=call.is_streamed)[:-10])
    await asyncio.sleep(0.02)
    out.reset()


@behaviour("garbage")
async def _garbage(call: Call, out: Connection) -> None:
    out.send(b"\x16\x03\x01 this is not HTTP\r\n\r\n")


@behaviour("short-length")
async def _short_length(call: Call, out: Connection) -> None:
    """Promises more than it sends."""
    body = completion(call)
    out.send(http(200, body, length=len(body) + 100, streamed=call.is_streamed))
    out.close()


@behaviour("long-length")
async def _long_length(call: Call, out: Connection) -> None:
    """Sends more than it promised."""
    body = completion(call)
    out.send(http(200, body + b"and more", length=len(body), streamed=call.is_streamed))


@behaviour("hang")
async def _hang(call: Call, out: Connection) -> None:
    await asyncio.Event().wait()


@behaviour("drip")
async def _drip(call: Call, out: Connection) -> None:
    for byte in http(200, completion(call), streamed=call.is_streamed):
        out.send(bytes([byte]))
        await asyncio.sleep(0.05)


_CHUNKED = b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@behaviour("chunked")
async def _chunked(call: Call, out: Connection) -> None:
    body = completion(call)
    kind = b"text/event-stream" if call.is_streamed else b"application/json"
    out.send(_CHUNKED.replace(b"application/json", kind))
    for at in range(0, len(body), 7):
        out.send(_chunk(body[at : at + 7]))
    out.send(b"0\r\n\r\n")


@behaviour("large")
async def _large(call: Call, out: Connection) -> None:
    """Three megabytes, most of them of no interest."""
    out.send(_CHUNKED)
    whole = completion(call, logprobs="x" * 3_000_000)
    for at in range(0, len(whole), 65_536):
        await out.send_slowly(_chunk(whole[at : at + 65_536]))
    out.send(b"0\r\n\r\n")


@behaviour("200MB")
async def _200mb(call: Call, out: Connection) -> None:
    out.send(_CHUNKED + _chunk(b'{"choices":"'))
    for _ in range(200_000_000 // len(_PIECE)):
        await out.send_slowly(_chunk(_PIECE))
    out.send(_chunk(b'"}') + b"0\r\n\r\n")


@behaviour("200MB-announced")
async def _200mb_announced(call: Call, out: Connection) -> None:
    out.send(http(200, _PIECE, length=200_000_000))


@behaviour("endless")
async def _endless(call: Call, out: Connection) -> None:
    out.send(_CHUNKED)
    while True:
        await out.send_slowly(_chunk(b" " * 1000))
        await asyncio.sleep(0.01)


_BOMB = gzip.compress(b" " * 50_000_000, 1)


@behaviour("gzip-bomb")
async def _gzip_bomb(call: Call, out: Connection) -> None:
    out.send(http(200, _BOMB, "Content-Encoding: gzip"))


# Streams.
_STREAM = b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@behaviour("stream-cut")
async def _stream_cut(call: Call, out: Connection) -> None:
    events = _events(call, "Good", "stop").split(b"\r\n\r\n")
    out.send(_STREAM + b"\r\n\r\n".join(events[:2]) + b"\r\n\r\n")
    out.close()


@behaviour("stream-error")
async def _stream_error(call: Call, out: Connection) -> None:
    out.send(_STREAM + b"event: error\ndata: " + error("Overloaded", kind="overloaded_error") + b"\n\n")
    out.close()


@behaviour("stream-long-line")
async def _stream_long_line(call: Call, out: Connection) -> None:
    out.send(_STREAM + b"data: ")
    while True:
        await out.send_slowly(_PIECE)


@behaviour("stream-left-open")
async def _stream_left_open(call: Call, out: Connection) -> None:
    """All is said, and the connection stays."""
    out.send(_STREAM + _events(call, call.answer or ANSWER, "stop"))


@behaviour("stream-ignored")
async def _stream_ignored(call: Call, out: Connection) -> None:
    whole = Call(call.number, call.path, call.headers, {**call.body, "stream": False}, call.answer)
    out.send(http(200, completion(whole)))
