"""One value as JSON. Does not cover: rows as JSON lines (text_export)."""

from __future__ import annotations

import json
import math
from typing import Any, cast

import msgspec

from headrace.survey.files.file_store import path_of

_encoder = msgspec.json.Encoder(enc_hook=path_of)


def to_json(value: Any) -> bytes:
    """The value as JSON: integers of any size as numbers, other scripts as they are, NaN and infinities as null."""
    try:
        return _encoder.encode(value)
    except OverflowError:  # an integer beyond 64 bits
        return json.dumps(_without_nan(value), ensure_ascii=False, separators=(",", ":"), default=path_of).encode()


def _without_nan(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case list():
            return [_without_nan(item) for item in cast("list[Any]", value)]
        case dict():
            return {key: _without_nan(item) for key, item in cast("dict[str, Any]", value).items()}
        case _:
            return value
