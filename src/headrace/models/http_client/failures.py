"""Turns a service's refusal, its status and its message, into one of the kinds of ProviderError.

Covers: statuses, error bodies of all protocols, Retry-After.
Does not cover: what is done about it (models.limiter, interviews.interview).
"""

from __future__ import annotations

import functools
import json
import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from headrace.errors import (
    ModelUnusable,
    ProviderBusy,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
    closest,
)
from headrace.models.http_client.decoding import fields
from headrace.survey.known_services import WELL_KNOWN_MODELS
from headrace.survey.values import repair_text

_LONGEST_WORDS = 300
_ABOUT_THE_PROMPT = re.compile(
    r"context[_ ]length|context window|maximum context|string_above_max_length|content[_ ]filter|content_policy"
    r"|invalid_prompt|prompt is too long|too many tokens|input is too long|moderation|flagged|safety",
    re.IGNORECASE,
)
_ABOUT_THE_SCHEMA = re.compile(
    r"response[_ ]?format|schema|json[_ ]?mode|structured|guided|grammar|\bstrict\b|tool_choice|\btools?\b",
    re.IGNORECASE,
)
_QUOTA_MARKS = re.compile(r"insufficient_quota|insufficient_balance|billing_hard_limit_reached|billing_not_active")
_ABOUT_THE_QUOTA = re.compile(r"quota|credit|balance|billing", re.IGNORECASE)
_ONE_REPLY = "json_validate_failed"  # this reply did not follow the schema; others may
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
# Errors inside a stream, or a body with status 200, have a word where the status would be.
_STATUSES = {
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "overloaded_error": 529,
    "invalid_request_error": 400,
    "timeout_error": 504,
}


class SchemaNotTaken(ModelUnusable):
    """The service does not take the schema that was sent; `is_lasting` where it will not take the next one either."""

    def __init__(self, message: str, *, fix: str, is_lasting: bool) -> None:
        super().__init__(message, fix=fix)
        self.is_lasting = is_lasting


class Said(msgspec.Struct, frozen=True):
    """What an error body says: `marks` are its code and type, `words` its message."""

    marks: str
    words: str
    status: int = 500


class About(msgspec.Struct, frozen=True):
    """What an error message names: the model, its address, and where the key came from."""

    model: str
    address: str
    key_origin: str

    def message(self, status: int, words: str) -> str:
        return f"{self.model} at {self.address} answered {status}: {words or 'no reason given'}"


def failure(about: About, status: int, headers: Mapping[str, str], said: Said, *, sent_schema: bool) -> ProviderError:
    """The error that a reply with this status stands for."""
    message, wait_s = about.message(status, said.words), retry_after_s(headers)
    everything = f"{said.marks} {said.words}"
    match status:
        case 408:
            return ProviderTimeout(message, retry_after_s=wait_s)
        case 429 if not _QUOTA_MARKS.search(said.marks):  # not by its words: a mere limit speaks of billing too
            return ProviderBusy(message, retry_after_s=wait_s)
        case 529:
            return ProviderBusy(message, retry_after_s=wait_s)
        case 503 if wait_s is not None:
            return ProviderBusy(message, retry_after_s=wait_s)
        case 413:
            return ProviderRefused(message)
        case 400 | 404 | 422 | 500 | 501 if sent_schema and _is_about_schema(said):
            is_lasting = _ONE_REPLY not in said.marks
            return SchemaNotTaken(message, fix="", is_lasting=is_lasting)
        case 400 | 403 | 422 if _ABOUT_THE_PROMPT.search(everything):
            return ProviderRefused(message)
        case _ if status >= 500 or status in {409, 425}:
            return ProviderUnavailable(message, retry_after_s=wait_s)
        case _:
            fix = _fix(about, status, headers, everything)
            return ModelUnusable(f"{message}.", fix=fix, key_advice=fix if fix == _check_key(about) else "")


def said_by(body: bytes) -> Said:
    """Finds code and message in an error body of any of the usual forms."""
    text = body.decode("utf-8", "replace")
    try:
        return said_in(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        title = _TITLE.search(text[:4096])
        return Said("", _short(title[1] if title else text[:4096]))


def said_in(found: Any) -> Said:
    """Finds code and message in an error: {"error": {...}}, {"error": "..."}, {"message": ...} or {"detail": ...}."""
    held = fields(found)
    inner = held.get("error", held)
    error = fields(inner)
    words = error.get("message") or held.get("message") or held.get("detail") or inner or "no reason given"
    named = [error.get(name) for name in ("code", "type", "param")]
    marks = " ".join(str(mark) for mark in named if mark and isinstance(mark, (str, int)))
    code = error.get("code")
    known = [_STATUSES[mark] for mark in marks.split() if mark in _STATUSES]
    status = code if isinstance(code, int) and 400 <= code <= 599 else (known or [500])[0]
    return Said(marks, _short(words if isinstance(words, str) else _as_json(words)), status)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the service asks to wait: seconds, milliseconds, or a date by the service's own clock."""
    wait_s = _plain_number(headers.get("retry-after-ms"))
    if wait_s is not None:
        return wait_s / 1000
    asked = headers.get("Retry-After")
    wait_s = _plain_number(asked)
    if wait_s is not None or asked is None:
        return wait_s
    until_s = _date_s(asked)
    return None if until_s is None else max(0.0, until_s - service_time_s(headers))


def service_time_s(headers: Mapping[str, str]) -> float:
    """The time by the service's own clock, to which its dates refer; ours may be wrong by a day."""
    return _date_s(headers.get("Date")) or time.time()


def _is_about_schema(said: Said) -> bool:
    everything = f"{said.marks} {said.words}"
    return bool(_ABOUT_THE_SCHEMA.search(everything)) and not _ABOUT_THE_PROMPT.search(said.marks)


def _fix(about: About, status: int, headers: Mapping[str, str], everything: str) -> str:
    if status in {402, 429} or _ABOUT_THE_QUOTA.search(everything):
        return "Its quota is used up: add credit or use another key, then run again."
    match status:
        case 401 | 403:
            return _check_key(about)
        case 404 | 405:
            return f"Check the model's name and base_url.{_meant(about.model)}"
        case _ if 300 <= status < 400:
            place = _short(headers.get("Location", "").partition("?")[0])
            return f"It points elsewhere ({place}): give that as base_url, without its last part."
        case _:
            return "Check the model's name and parameters."


def _meant(model: str) -> str:
    """A well-known name that a mistyped one is close to, as a question: its service may have been implied by the
    beginning of the name alone.
    """
    close = None if model in WELL_KNOWN_MODELS else closest(model, WELL_KNOWN_MODELS)
    return "" if close is None else f" Did you mean {close!r}?"


def _check_key(about: About) -> str:
    return f"Check the key ({about.key_origin})."


def _short(words: str) -> str:
    text = repair_text(" ".join(words.split()))[0].rstrip(".")
    return text if len(text) <= _LONGEST_WORDS else f"{text[: _LONGEST_WORDS - 3]}..."


def _as_json(found: Any) -> str:
    try:
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))  # msgspec refuses halves of surrogate pairs
    except (ValueError, RecursionError):
        return ""


def _plain_number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


@functools.lru_cache(16)  # the header is the same for a second
def _date_s(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
