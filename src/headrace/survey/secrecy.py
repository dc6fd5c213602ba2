"""Refuses model parameters that hold a secret: descriptions of models are stored in run files, shown and compared."""

from __future__ import annotations

import re
from typing import Any, cast
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from headrace.errors import ListError, Spelled

_NAME_IT = "Name the environment variable that holds the key,"
_ELSEWHERE = "A service that wants it elsewhere can be asked by Model.from_function"
_FIX = Spelled(
    f'{_NAME_IT} api_key_env="MY_KEY", or give a function, api_key=my_function. {_ELSEWHERE}.',
    command=f"{_NAME_IT} --model NAME,api_key_env=MY_KEY. {_ELSEWHERE}, in a program.",
)
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|passw|credential|signature", re.IGNORECASE)
_SECRET_FIELD = re.compile(
    r"(api|access|secret|subscription|auth|bearer|client|private)?[-_]?"
    r"(key|token|secret|password|passwd|pwd|signature|sig|code|auth|authorization|credentials?|jwt)",
    re.IGNORECASE,
)
_LEAST_KEY = 12
_ENVIRONMENT_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
# How keys of known services begin, and what an Authorization header holds.
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk|gsk|hf|r8|ghp|gho|glpat|xai|fw|nvapi|pplx|tgp|csk|key|token|secret)[-_]"
    r"(?=[\w-]*\d)[\w-]{12,}|AIza[\w-]{30,}|AKIA[A-Z0-9]{12,}|eyJ[\w-]{10,}\.[\w-]+|(?:Bearer|Basic|Token)\s+\S{6,})"
)
_WORD = re.compile(r"[A-Za-z0-9+/_=~-]{24,}")
# Names, not secrets: identities of accounts and projects, in addresses (Cloudflare's) and in headers (OpenAI's).
_IDENTITY = re.compile(r"(?:(?:org|proj|acc|asst|user|team|req)[-_][A-Za-z0-9]+|[0-9a-fA-F]{32}|[0-9a-fA-F-]{36})")
_SHORT_PIECE = re.compile(
    r"[0-9a-f]{16}|[0-9a-f]{32}|[A-Za-z]+|[0-9]+|[A-Za-z]{1,12}[0-9]{1,4}[A-Za-z]{0,3}|[vV]?[0-9]{1,4}[A-Za-z]{0,3}"
)


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
        refuse_in_url(model, url)
    for header, value in _items(parameters.get("extra_headers")):
        if _SECRET_HEADER.search(header):
            raise ListError(f"Model {model!r}: the header {header!r} is for secrets.", fix=_FIX)
        if isinstance(value, str) and looks_secret(value):
            raise ListError(f"Model {model!r}: the header {header!r} holds a secret.", fix=_FIX)
    _refuse_in_body(model, parameters.get("extra_body"))


def refuse_value(model: str, parameters: dict[str, Any], key: str) -> None:
    """Raise ListError where the key itself, known by now, is written into the model."""
    for name in ("base_url", "extra_headers", "extra_body"):
        held = repr(parameters.get(name, ""))
        if len(key) >= _LEAST_KEY and (key in held or quote(key, safe="") in held):
            raise ListError(f"Model {model!r}: {name} holds its key, which a run file would keep.", fix=_FIX)


def looks_secret(text: str) -> bool:
    """Whether a text is a key of a known kind, or a long mix of letters and digits that is no name, date or version."""
    return _KEY.search(text) is not None or any(_is_random(word) for word in _WORD.findall(text))


def _is_random(word: str) -> bool:
    if _IDENTITY.fullmatch(word):
        return False
    pieces = [piece for piece in re.split(r"[-_/=+~]", word) if piece]
    odd = [piece for piece in pieces if not _SHORT_PIECE.fullmatch(piece)]
    return sum(map(len, odd)) >= _LEAST_KEY


def refuse_in_url(model: str, url: str) -> None:
    """Raise ListError, without quoting the secret, where an address holds one."""
    if url.startswith("@"):
        return  # the name of an address file, whose lines are checked when they are read
    try:
        parts = urlsplit(url)
    except ValueError:
        return  # no address at all: HttpOptions refuses it
    if "@" in parts.netloc:
        raise ListError(f"Model {model!r}: base_url holds a user or password.", fix=_FIX)
    for field, value in parse_qsl(parts.query):
        if _SECRET_FIELD.fullmatch(field) or looks_secret(value):
            raise ListError(f"Model {model!r}: base_url holds a secret ({field}=...).", fix=_FIX)
    if any(looks_secret(piece) for piece in unquote(parts.path).split("/")) or looks_secret(parts.fragment):
        raise ListError(f"Model {model!r}: base_url holds a secret in its path.", fix=_FIX)


def _refuse_in_body(model: str, body: Any) -> None:
    """Looks for secrets in extra_body at any depth: a gateway's own fields often stand under one name."""
    left: list[tuple[str, Any]] = list(_items(body))
    while left:
        field, value = left.pop()
        if _SECRET_FIELD.fullmatch(field) and isinstance(value, str):
            raise ListError(f"Model {model!r}: {field!r} in extra_body is for a secret.", fix=_FIX)
        if isinstance(value, str) and _KEY.search(value):
            raise ListError(f"Model {model!r}: {field!r} in extra_body holds a secret.", fix=_FIX)
        left += _items(value)
        if isinstance(value, (list, tuple)):
            left += [(field, one) for one in cast("list[Any]", value)]


def _texts(given: Any) -> list[str]:
    if isinstance(given, str):
        return [given]
    return [url for url in cast("list[Any]", given) if isinstance(url, str)] if isinstance(given, (list, tuple)) else []


def _items(given: Any) -> list[tuple[str, Any]]:
    if not isinstance(given, dict):
        return []
    return [(name, value) for name, value in cast("dict[Any, Any]", given).items() if isinstance(name, str)]
