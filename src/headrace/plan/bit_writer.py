"""Writes bits one behind the other, in groups of any length, into a set of ordinals.

Does not cover: the set itself (bitmap).
"""

from __future__ import annotations

from headrace.plan.bitmap import BLOCK_BITS, BLOCK_BYTES, Bitmap

_ENOUGH_BITS = 4096  # gathered as one number: shifting a longer one costs more than a copy


class BitWriter:
    """Bits that are appended, `length` of them in all; the first says whether 0 is in the set."""

    def __init__(self, length: int) -> None:
        self._made = Bitmap(length)
        self._block = 0  # the next to be written
        self._bytes = bytearray()  # of that block, and at most what was appended last
        self._rest = self._rest_bits = 0

    def append(self, bits: int, count: int) -> None:
        """Append `count` bits, the lowest first."""
        self._rest |= bits << self._rest_bits
        self._rest_bits += count
        if self._rest_bits >= _ENOUGH_BITS:
            whole = self._rest_bits >> 3
            self._bytes += (self._rest & ((1 << whole * 8) - 1)).to_bytes(whole, "little")
            self._rest >>= whole * 8
            self._rest_bits &= 7
            while len(self._bytes) >= BLOCK_BYTES:
                self._put_block()

    def append_all(self, others: Bitmap) -> None:
        """Append as many bits as a set has places."""
        for number in others.blocks:
            count = min(BLOCK_BITS, others.length - number * BLOCK_BITS)
            self.append(int.from_bytes(others.block(number), "little"), count)

    def bitmap(self) -> Bitmap:
        """The set, once all is appended."""
        self._bytes += self._rest.to_bytes((self._rest_bits + 7) >> 3, "little")
        self._rest = self._rest_bits = 0
        while self._bytes:
            self._put_block()
        return self._made

    def _put_block(self) -> None:
        self._made.put_block(self._block, bytes(self._bytes[:BLOCK_BYTES]))
        del self._bytes[:BLOCK_BYTES]
        self._block += 1


def repeated(bits: Bitmap, times: int) -> Bitmap:
    """The places of a set so many times, one behind the other."""
    if times == 1:
        return bits
    many = BitWriter(bits.length * times)
    for _ in range(times):
        many.append_all(bits)
    return many.bitmap()
