"""A description holds no secret: models are stored in run files, shown and compared. Refuses parameters that do."""

from __future__ import annotations

import re
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from headrace.errors import ListError

_FIX = (
    'Name the environment variable that holds the key, api_key_env="MY_KEY", or give a function, api_key=my_function.'
)
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|passw|credential", re.IGNORECASE)
_SECRET_FIELD = re.compile(
    r"(api|access|secret|subscription)?[-_]?(key|token|secret|password|signature|sig)", re.IGNORECASE
)
_ENVIRONMENT_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")


def refuse_secrets(model: str, parameters: dict[str, Any]) -> None:
    """Raise ListError, without quoting the secret, where a parameter holds one."""
    if "api_key" in parameters and not callable(parameters["api_key"]):
        raise ListError(f"Model {model!r}: api_key is text, which a run file would keep.", fix=_FIX)
    named = parameters.get("api_key_env", "X")
    if not isinstance(named, str) or not _ENVIRONMENT_NAME.fullmatch(named):
        # Not quoted: it may be the key itself.
        fix = "Use capitals, digits and underscores, as in OPENAI_API_KEY."
        raise ListError(f"Model {model!r}: api_key_env is not the name of an environment variable.", fix=fix)
    for url in _texts(parameters.get("base_url")):
        _refuse_in_url(model, url)
    for header in _names(parameters.get("extra_headers")):
        if _SECRET_HEADER.search(header):
            raise ListError(f"Model {model!r}: the header {header!r} is for secrets.", fix=_FIX)
    for field in _names(parameters.get("extra_body")):
        if _SECRET_FIELD.fullmatch(field):
            raise ListError(f"Model {model!r}: {field!r} in extra_body is for a secret.", fix=_FIX)


def _refuse_in_url(model: str, url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return  # no address at all: whoever needs one says so
    if "@" in parts.netloc:
        raise ListError(f"Model {model!r}: base_url holds a user or password.", fix=_FIX)
    for field, _ in parse_qsl(parts.query):
        if _SECRET_FIELD.fullmatch(field):
            raise ListError(f"Model {model!r}: base_url holds a secret ({field}=...).", fix=_FIX)


def _texts(given: Any) -> list[str]:
    if isinstance(given, str):
        return [given]
    return [url for url in cast("list[Any]", given) if isinstance(url, str)] if isinstance(given, (list, tuple)) else []


def _names(given: Any) -> list[str]:
    return [name for name in cast("dict[Any, Any]", given) if isinstance(name, str)] if isinstance(given, dict) else []
