"""The OpenTelemetry convention for generative AI that exports follow, in its pinned version.

Covers: names and values of attributes. Does not cover: making spans (otel_export).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from headrace.survey.known_services import SERVICES
from headrace.survey.model import Model

CONVENTION = "1.41.0"
SCHEMA_URL = f"https://opentelemetry.io/schemas/{CONVENTION}"
CAPTURE_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURES = frozenset({"true", "span_only", "span_and_event"})
# What the convention calls services whose names here differ from its own.
_PROVIDERS = {"google": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}
_REQUEST_NUMBERS = ("temperature", "top_p", "max_tokens", "seed", "frequency_penalty", "presence_penalty")
_PORTS = {"http": 80, "https": 443}
# The bucket boundaries that the convention asks for.
DURATION_BUCKETS_S = [0.01 * 2**power for power in range(14)]
TOKEN_BUCKETS = [4**power for power in range(14)]

Attributes: TypeAlias = dict[str, str | int | float]


def captures_content(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether prompts and answers are exported: off unless the convention's own variable says so."""
    return environment.get(CAPTURE_VARIABLE, "").strip().lower() in _CAPTURES


def model_attributes(model: Model) -> Attributes:
    """What metrics know of a model: never a key, and of its address the host and the port."""
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(model.service_name, model.service_name),
        "gen_ai.request.model": model.name,
    }
    return attributes | _server(model)


def request_attributes(model: Model) -> Attributes:
    """What spans know beside that: the numbers with which the model was asked."""
    given: dict[str, Any] = {name: model.parameters.get(name) for name in _REQUEST_NUMBERS}
    return {f"gen_ai.request.{name}": number for name, number in given.items() if type(number) in (int, float)}


def messages(role: str, text: str, **more: str) -> str:
    """One message in the convention's JSON."""
    return msgspec.json.encode([{"role": role, "parts": [_text(text)], **more}]).decode()


def instructions(text: str) -> str:
    """A system prompt in the convention's JSON."""
    return msgspec.json.encode([_text(text)]).decode()


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "content": text}


def _server(model: Model) -> Attributes:
    service = SERVICES.get(model.service_name)
    address: Any = model.parameters.get("base_url") or (service.base_url if service is not None else None)
    if not isinstance(address, str):  # none, or several
        return {}
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:  # no address: the call says so
        return {}
    if host is None or port is None:
        return {}
    return {"server.address": host, "server.port": port}
