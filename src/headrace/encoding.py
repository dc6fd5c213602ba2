"""Encoding that meets a memory limit as a MemoryError.

msgspec's `encode` crashes the process when its buffer cannot grow; `encode_into` raises, as everything else does.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

_FIRST_BYTES = 64  # a buffer that is empty at first costs half a microsecond


def encode_with(encoder: msgspec.json.Encoder | msgspec.msgpack.Encoder) -> Callable[[object], bytes]:
    """Encodes as `encoder.encode` does, but raises MemoryError at a memory limit: for large values in a worker."""
    encode_into = encoder.encode_into

    def encode(value: object) -> bytes:
        buffer = bytearray(_FIRST_BYTES)
        encode_into(value, buffer)
        return bytes(buffer)

    return encode
