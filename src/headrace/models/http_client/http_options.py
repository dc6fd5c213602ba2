"""The options of models reached over HTTP: addresses, time-outs, caps. They are checked before anything runs."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from headrace.errors import ListError
from headrace.survey.known_services import Service
from headrace.survey.model import address_file_of

HTTP_PARAMETERS = frozenset(
    {
        "affinity",
        "api_key",
        "api_key_env",
        "base_url",
        "connect_timeout_s",
        "extra_body",
        "extra_headers",
        "max_file_bytes",
        "max_response_bytes",
        "read_timeout_s",
        "stream",
        "timeout_s",
    }
)
_LONGEST_S = 86_400.0


class Affinity(Enum):
    """Which calls go to the same one of several addresses."""

    PREFIX = "prefix"  # those whose prompts begin alike: a server that keeps what it has read need not read it again


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`read_timeout_s` is the longest silence, `timeout_s` the longest call from beginning to end. `base_urls` are
    those written into the model: none where it names an address file.
    """

    base_urls: tuple[str, ...]
    affinity: Affinity | None = None
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 300.0
    timeout_s: float = 600.0
    max_response_bytes: int = 16 << 20
    max_file_bytes: int | None = None
    stream: bool = False
    extra_headers: dict[str, str]
    extra_body: dict[str, Any]

    @classmethod
    def of(cls, model: str, service: Service, parameters: dict[str, Any]) -> HttpOptions:
        given: dict[str, Any] = {
            name: number(parameters, name, least=0.001, most=_LONGEST_S)
            for name in ("connect_timeout_s", "read_timeout_s", "timeout_s")
            if name in parameters
        }
        if "max_response_bytes" in parameters:
            given["max_response_bytes"] = whole(parameters, "max_response_bytes", least=1024)
        if "max_file_bytes" in parameters:
            given["max_file_bytes"] = whole(parameters, "max_file_bytes", least=1024)
        return cls(
            base_urls=_addresses(model, parameters, service),
            affinity=_affinity(model, parameters),
            stream=flag(parameters, "stream"),
            extra_headers=_headers(parameters),
            extra_body=_body(parameters),
            **given,
        )


def usual_key(service: Service, base_urls: tuple[str, ...]) -> str | None:
    """The variable of a service's own key, where all addresses are the service's own: it goes nowhere else."""
    if service.key_env is None or service.base_url is None or not base_urls:
        return None  # an address file may name any address, at any time
    own = ".".join((urlsplit(service.base_url).hostname or "").split(".")[-2:])
    hosts = [urlsplit(url) for url in base_urls]
    is_own = all(
        host.scheme == "https" and f".{host.hostname}".endswith(f".{own}") and ":" not in (host.hostname or "")
        for host in hosts  # an IPv6 address may end in any text, its zone: [::1%25.openai.com]
    )
    return service.key_env if is_own else None


def number(parameters: dict[str, Any], name: str, *, least: float, most: float) -> float:
    value = parameters[name]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not least <= value <= most:
        raise ListError(f"{name}={value!r} must be a number from {least:g} to {most:g}.")
    return value


def whole(parameters: dict[str, Any], name: str, *, least: int) -> int:
    value = parameters[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 63:
        raise ListError(f"{name}={value!r} must be a whole number of at least {least}.")
    return value


def flag(parameters: dict[str, Any], name: str) -> bool:
    value = parameters.get(name, False)
    if not isinstance(value, bool):
        raise ListError(f"{name}={value!r} must be True or False.")
    return value


def stop_texts(given: Any) -> list[str]:
    texts: list[Any] = [given] if isinstance(given, str) else list(given) if isinstance(given, (list, tuple)) else []  # pyright: ignore[reportUnknownArgumentType]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ListError(f"stop={given!r} must be a text or a list of texts.")
    return texts


def without_none(constant: dict[str, Any]) -> dict[str, Any]:
    """Removes the fields that extra_body sets to None, for a server that does not know them."""
    return {name: value for name, value in constant.items() if value is not None}


def _addresses(model: str, parameters: dict[str, Any], service: Service) -> tuple[str, ...]:
    """The addresses, in the order given and each once; none where they are in a file."""
    if (file := address_file_of(parameters)) is not None:
        if not file.strip():
            raise ListError(f"Model {model!r}: base_url='@' names no file.", fix="Write it like @endpoints.txt.")
        return ()
    given = parameters.get("base_url", service.base_url)
    listed = cast("list[Any]", list(given)) if isinstance(given, (list, tuple)) else [given]  # pyright: ignore[reportUnknownArgumentType]
    fix = (
        "Give where its paths begin, like base_url=http://localhost:8000/v1, a list of these, or @ and the name of a"
        " file with one in each line."
    )
    if given is None or not listed:
        raise ListError(f"Model {model!r} needs a base_url.", fix=fix)
    for url in listed:
        if not isinstance(url, str) or not is_address(url):
            raise ListError(f"Model {model!r}: base_url={url!r} is not an address.", fix=fix)
    return tuple(dict.fromkeys(url.rstrip("/") for url in listed))


def is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and url.isascii()
            and url.isprintable() and " " not in url and not parts.fragment
        )  # fmt: skip
    except ValueError:
        return False


def _affinity(model: str, parameters: dict[str, Any]) -> Affinity | None:
    given = parameters.get("affinity")
    try:
        return None if given is None else Affinity(given)
    except ValueError:
        raise ListError(
            f"Model {model!r}: affinity={given!r} is not known.", fix='Give affinity="prefix", or leave it out.'
        ) from None


def _headers(parameters: dict[str, Any]) -> dict[str, str]:
    given = cast("dict[Any, Any]", parameters.get("extra_headers", {}))
    if not isinstance(given, dict) or not all(_is_header(*each) for each in given.items()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ListError("extra_headers must be a dict of texts.", fix='Like extra_headers={"X-Project": "a"}.')
    return given


def _is_header(name: Any, value: Any) -> bool:
    is_text = isinstance(name, str) and isinstance(value, str)
    return is_text and bool(name) and name.isascii() and f"{name}{value}".isprintable()


def _body(parameters: dict[str, Any]) -> dict[str, Any]:
    given = parameters.get("extra_body", {})
    if not isinstance(given, dict) or "messages" in given:
        raise ListError("extra_body must be a dict of further fields of a request, without 'messages'.")
    return cast("dict[str, Any]", given)
