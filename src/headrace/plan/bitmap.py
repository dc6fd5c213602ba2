"""A set of ordinals, the finished ones for instance, as one bit each: 125 KB per million."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_NOT_FULL = re.compile(rb"[^\xff]")
_BLOCK_BYTES = 1 << 16
_ENOUGH_BITS = 4096  # a writer's buffer: shifting a longer one costs more than a copy


class Bitmap:
    """A set of whole numbers below `length`."""

    __slots__ = ("_bits", "count", "length")

    def __init__(self, length: int) -> None:
        self.length = length
        self.count = 0
        self._bits = bytearray((length + 7) // 8)

    @classmethod
    def of(cls, length: int, bits: bytes | bytearray) -> Bitmap:
        """The set whose members are the bits that are set, the lowest bit of the first byte first."""
        made = cls(0)
        made.length, made._bits = length, bytearray(bits)
        made.count = int.from_bytes(bits, "little").bit_count()
        return made

    @property
    def bits(self) -> memoryview:
        return memoryview(self._bits)

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

    def inverted(self) -> Bitmap:
        """All numbers below `length` that are not in the set."""
        rest = Bitmap(self.length)
        rest.fill(self.length)
        rest.remove(self)
        return rest

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

    def gaps(self) -> Iterator[int]:
        """Each number that is not in the set, in order."""
        at = self.next_gap(0)
        while at < self.length:
            yield at
            at = self.next_gap(at + 1)

    def behind_gaps(self, count: int) -> int:
        """The first number below which there are `count` numbers that are not in the set."""
        if count <= 0:
            return 0
        left, at = count, 0
        for first in range(0, len(self._bits), _BLOCK_BYTES):
            block = self._bits[first : first + _BLOCK_BYTES]
            free = len(block) * 8 - int.from_bytes(block, "little").bit_count()
            if free >= left:
                break
            left, at = left - free, (first + len(block)) * 8
        while left and at < self.length:
            at = self.next_gap(at) + 1
            left -= 1
        return min(at, self.length)

    def count_every(self, step: int, first: int) -> int:
        """How many of `first`, `first + step`, `first + 2 * step` and so on are in the set."""
        block_bytes = step * max(1, 8192 // step)  # a whole number of steps
        places = sum(1 << at for at in range(first, block_bytes * 8, step))
        blocks = (self._bits[at : at + block_bytes] for at in range(0, len(self._bits), block_bytes))
        return sum((int.from_bytes(block, "little") & places).bit_count() for block in blocks)

    def repeated(self, times: int) -> Bitmap:
        """The set's bits so many times, one behind the other."""
        if times == 1:
            return self
        many = BitWriter()
        for _ in range(times):
            many.append_all(self)
        return many.bitmap()

    def copy(self) -> Bitmap:
        twin = Bitmap(0)
        twin.length, twin.count, twin._bits = self.length, self.count, bytearray(self._bits)
        return twin

    def _set_all(self, bits: int) -> None:
        self._bits = bytearray(bits.to_bytes(len(self._bits), "little"))
        self.count = bits.bit_count()

    def _after_full_bytes(self, byte: int) -> int:
        found = _NOT_FULL.search(self._bits, byte)
        return len(self._bits) if found is None else found.start()


class BitWriter:
    """Bits that are appended in groups of any length; the first is the lowest bit of the first byte."""

    def __init__(self) -> None:
        self._bytes = bytearray()
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

    def append_all(self, others: Bitmap) -> None:
        """Append as many bits as a set has places."""
        held, left = others.bits, others.length
        for first in range(0, len(held), _BLOCK_BYTES):
            block = held[first : first + _BLOCK_BYTES]
            count = min(left, len(block) * 8)
            self.append(int.from_bytes(block, "little"), count)
            left -= count

    def done(self) -> tuple[bytes, int]:
        """All bits as bytes, and how many these are."""
        tail = self._rest.to_bytes((self._rest_bits + 7) >> 3, "little")
        return bytes(self._bytes) + tail, len(self._bytes) * 8 + self._rest_bits

    def bitmap(self) -> Bitmap:
        bits, length = self.done()
        return Bitmap.of(length, bits)
