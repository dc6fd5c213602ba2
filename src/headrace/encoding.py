"""Encoding that meets a memory limit as a MemoryError, and encoding of large values into a buffer that is used again.

msgspec's `encode` crashes the process when its buffer cannot grow; `encode_into` raises, as everything else does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

LARGE_BYTES = 256_000  # from here on the C library maps each block anew
_FIRST_BYTES = 64  # a buffer that is empty at first costs half a microsecond
_MOST_KEPT_BYTES = 4_000_000
_of_thread = threading.local()


def encode_with(encoder: msgspec.json.Encoder | msgspec.msgpack.Encoder) -> Callable[[object], bytes]:
    """Encodes as `encoder.encode` does, but raises MemoryError at a memory limit: for large values in a worker."""
    encode_into = encoder.encode_into

    def encode(value: object) -> bytes:
        buffer = bytearray(_FIRST_BYTES)
        encode_into(value, buffer)
        return bytes(buffer)

    return encode


def encode_large(encoder: msgspec.msgpack.Encoder, value: object, about_bytes: int) -> bytearray:
    """Encode into the buffer of this thread, for whoever compresses the value at once: the next call overwrites it.

    The kernel clears each page of a new block first, which takes longer than encoding into it and compressing that.
    """
    buffer: bytearray | None = _of_thread.__dict__.pop("buffer", None)
    if buffer is None or about_bytes > _MOST_KEPT_BYTES:
        buffer = bytearray(about_bytes)
    encoder.encode_into(value, buffer)
    if len(buffer) <= _MOST_KEPT_BYTES:
        _of_thread.buffer = buffer
    return buffer
