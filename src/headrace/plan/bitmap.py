"""A set of ordinals, the finished ones for instance, as one bit each: 125 KB per million."""

from __future__ import annotations

from collections.abc import Iterable


class Bitmap:
    """A set of whole numbers below `length`."""

    __slots__ = ("_bits", "count", "length")

    def __init__(self, length: int) -> None:
        self.length = length
        self.count = 0
        self._bits = bytearray((length + 7) // 8)

    def __contains__(self, index: int) -> bool:
        return bool(self._bits[index >> 3] & (1 << (index & 7)))

    def add(self, index: int) -> None:
        byte, bit = index >> 3, 1 << (index & 7)
        if not self._bits[byte] & bit:
            self._bits[byte] |= bit
            self.count += 1

    def fill(self, end: int) -> None:
        """Add every number below `end`."""
        whole, rest = end >> 3, end & 7
        self._bits[:whole] = b"\xff" * whole
        if rest:
            self._bits[whole] |= (1 << rest) - 1
        self.count = int.from_bytes(self._bits, "little").bit_count()

    def update(self, indices: Iterable[int]) -> None:
        """Adds many. Opening a finished run of a million spends its time in this loop."""
        bits = self._bits
        for index in indices:
            bits[index >> 3] |= 1 << (index & 7)
        self.count = int.from_bytes(bits, "little").bit_count()

    def count_below(self, end: int) -> int:
        """How many numbers below `end` are in the set."""
        whole = int.from_bytes(self._bits[: end >> 3], "little").bit_count()
        return whole + sum(index in self for index in range(end & ~7, end))

    def discard(self, index: int) -> None:
        byte, bit = index >> 3, 1 << (index & 7)
        if self._bits[byte] & bit:
            self._bits[byte] &= ~bit
            self.count -= 1

    def include(self, others: Bitmap) -> None:
        """Add all of another set of the same length."""
        self._set_all(int.from_bytes(self._bits, "little") | int.from_bytes(others._bits, "little"))

    def remove(self, others: Bitmap) -> None:
        """Drop all of another set of the same length."""
        self._set_all(int.from_bytes(self._bits, "little") & ~int.from_bytes(others._bits, "little"))

    def next_gap(self, index: int) -> int:
        """The first number from `index` on that is not in the set; `length` where there is none."""
        bits, end = self._bits, self.length
        while index < end:
            if index & 7 == 0 and bits[index >> 3] == 0xFF:
                index = self._after_full_bytes(index >> 3) << 3
            elif bits[index >> 3] & (1 << (index & 7)):
                index += 1
            else:
                return index
        return end

    def copy(self) -> Bitmap:
        twin = Bitmap(0)
        twin.length, twin.count, twin._bits = self.length, self.count, bytearray(self._bits)
        return twin

    def _set_all(self, bits: int) -> None:
        self._bits = bytearray(bits.to_bytes(len(self._bits), "little"))
        self.count = bits.bit_count()

    def _after_full_bytes(self, byte: int) -> int:
        bits = self._bits
        while byte < len(bits) and bits[byte] == 0xFF:
            byte += 1
        return byte
