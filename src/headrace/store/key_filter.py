"""Tells at once, and without the disk, that a key is new. Covers: a filter of fixed size that may err only one way."""

from __future__ import annotations

from collections.abc import Iterable

_BITS = 23  # 1 MB: a million keys make one look-up in fifty needless


class KeyFilter:
    """Keys are digests, so their bytes are as good as chance."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        self._bits = bytearray(1 << (_BITS - 3))
        for key in keys:
            self.add(key)

    def add(self, key: bytes) -> None:
        for place in _places(key):
            self._bits[place >> 3] |= 1 << (place & 7)

    def may_have(self, key: bytes) -> bool:
        return all(self._bits[place >> 3] & (1 << (place & 7)) for place in _places(key))


def _places(key: bytes) -> tuple[int, int, int]:
    number = int.from_bytes(key[:12])
    mask = (1 << _BITS) - 1
    return number & mask, (number >> 32) & mask, (number >> 64) & mask
