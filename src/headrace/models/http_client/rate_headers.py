"""Reads the headers in which a service states its limits. Does not cover: keeping to them (models.endpoint.rates)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from headrace.models.provider import RateHint

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_UNITS_S = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)


def chat_rates(headers: Mapping[str, str], *, counts_by_day: bool) -> RateHint | None:
    """The headers OpenAI began with. Groq's limit of requests, unlike the rest, is that of a day."""
    if "x-ratelimit-remaining-requests" not in headers and "x-ratelimit-remaining-tokens" not in headers:
        return None
    get = headers.get
    return RateHint(
        None if counts_by_day else _number(get("x-ratelimit-limit-requests")),
        _number(get("x-ratelimit-limit-tokens")),
        _number(get("x-ratelimit-remaining-requests")),
        _number(get("x-ratelimit-remaining-tokens")),
        duration_s(get("x-ratelimit-reset-requests")),
        duration_s(get("x-ratelimit-reset-tokens")),
    )


def anthropic_rates(headers: Mapping[str, str], now_s: float) -> RateHint | None:
    if "anthropic-ratelimit-requests-remaining" not in headers:
        return None
    get = headers.get
    return RateHint(
        _number(get("anthropic-ratelimit-requests-limit")),
        _number(get("anthropic-ratelimit-tokens-limit")),
        _number(get("anthropic-ratelimit-requests-remaining")),
        _number(get("anthropic-ratelimit-tokens-remaining")),
        _until_s(get("anthropic-ratelimit-requests-reset"), now_s),
        _until_s(get("anthropic-ratelimit-tokens-reset"), now_s),
    )


def duration_s(text: str | None) -> float | None:
    """`6m0s`, `1.5s`, `20ms`, or plain seconds."""
    if not text:
        return None
    plain = _number(text)
    if plain is not None:
        return plain
    found = _DURATION.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        return None
    return sum(float(part) * unit_s for part, unit_s in zip(found.groups(), _UNITS_S, strict=True) if part)


def _number(text: str | None) -> float | None:
    # No inf, nan or underscores, which float() would take.
    return float(text) if text and re.fullmatch(r"\d{1,15}(\.\d{1,9})?", text) else None


def _until_s(text: str | None, now_s: float) -> float | None:
    try:
        moment = datetime.fromisoformat(text or "")
        return max(0.0, moment.timestamp() - now_s) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
