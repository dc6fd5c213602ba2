"""The text that a model generated, found in a response as its service sent it.

Covers: OpenAI's chat completions and Anthropic's messages, whole and streamed; Google's own form and that of EDSL's
test model, which imported results have. Any other response is the text itself.
Does not cover: reading an answer out of that text (survey.replies). Nothing here fails: a response is anybody's bytes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

import msgspec

from headrace.models.http_client.envelope import envelope
from headrace.models.http_client.nearly_json import read_repaired
from headrace.survey.repair.bounded_json import TooManyValues, check_values

_Fields: TypeAlias = dict[str, Any]
_EVENT_MARK = b"data:"
_EVENT = re.compile(rb"(?:\A|[\r\n])data:([^\r\n]*)")


def decoded_response(raw: bytes) -> Any:
    """The response as Python values where it is a JSON object that does not take too much memory, else as text."""
    try:
        check_values(raw)
        found = _object(msgspec.json.decode, raw)
    except TooManyValues:
        found = None
    return raw.decode(errors="replace") if found is None else found


def generated_text(raw: bytes) -> str:
    """The text of a response without what its service wrote around it."""
    found = "".join(_pieces(raw, "content", "text", "partial_json"))
    return found or raw.decode(errors="replace")


def reasoning_text(raw: bytes) -> str | None:
    """What a model that reasons says of its thoughts; None where it says nothing."""
    return "".join(_pieces(raw, "reasoning_content", "reasoning", "thinking")) or None


def _pieces(raw: bytes, *names: str) -> Iterator[str]:
    """The texts under these names in a whole response, or in the events of a streamed one."""
    for response in _responses(raw):
        for message in _messages(response):
            for name in names:
                yield from _texts(message.get(name), names)
            if "input" in message and message.get("type") == "tool_use" and message["input"] and "text" in names:
                yield msgspec.json.encode(message["input"]).decode()


def _responses(raw: bytes) -> Iterator[_Fields]:
    """The whole response, or the events of a streamed one: one at a time, since each may take what a response may."""
    if raw.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"{":
        parts = iter([raw])
    elif _EVENT_MARK in raw[:1_000]:
        parts = (event[1] for event in _EVENT.finditer(raw))
    else:
        return
    for part in parts:
        if (found := _object(_fields, part)) is not None:
            yield found


def _messages(response: _Fields) -> Iterator[_Fields]:
    """Where protocols put texts: the message or delta of the first choice, blocks of content, a delta."""
    for choice in _objects(response.get("choices"))[:1]:
        yield from _objects([choice.get("message"), choice.get("delta")])
    yield from _objects(response.get("content"))
    yield from _objects(response.get("message"))
    for candidate in _objects(response.get("candidates"))[:1]:
        for content in _objects([candidate.get("content")]):
            yield from _objects(content.get("parts"))
    yield from _objects([response.get("delta")])


def _texts(value: Any, names: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in _objects(value):
        yield from (part[name] for name in names if isinstance(part.get(name), str))


def _objects(value: Any) -> list[_Fields]:
    """The objects of a list; nothing where it is no list."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("_Fields", item) for item in items if isinstance(item, dict)]


def _fields(response: bytes) -> Any:
    """The fields that texts are in, also of a response that would take too much memory as a whole."""
    return msgspec.json.decode(envelope(response))


def _object(read: Callable[[bytes], Any], text: bytes) -> _Fields | None:
    try:
        found, _ = read_repaired(read, text)
    except (ValueError, RecursionError):  # no JSON, or texts that are not UTF-8
        return None
    return cast("_Fields", found) if isinstance(found, dict) else None
