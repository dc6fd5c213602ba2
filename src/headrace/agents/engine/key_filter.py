"""Tells at once, and without the disk, that a key is new. Covers: a filter of fixed size that may err only one way."""

from __future__ import annotations

from collections.abc import Iterable

_BITS = 23  # 1 MB: a million keys make one look-up in fifty needless
_MASK = (1 << _BITS) - 1


class KeyFilter:
    """Keys are digests, so their bytes are as good as chance."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        self._bits = bytearray(1 << (_BITS - 3))
        for key in keys:
            self.add(key)

    def add(self, key: bytes) -> bool:
        """Whether it is new for sure."""
        bits, is_new, number = self._bits, False, int.from_bytes(key[:12])
        for place in (number & _MASK, (number >> 32) & _MASK, (number >> 64) & _MASK):
            bit = 1 << (place & 7)
            if not bits[place >> 3] & bit:
                bits[place >> 3] |= bit
                is_new = True
        return is_new
