"""A set of ordinals, the finished ones for instance, in memory that follows how irregular the set is.

    block of 65,536 numbers   held as
    none or all of them       one of two shared blocks: a pointer, 8 bytes
    changed lately            plain bits, 8 KB; at most 32 blocks a set: a plan of 2 million is never packed. Of packed
                              ones, up to 128 that were read lately are held plain as well
    any other                 packed by zstd: 20 bytes where every n-th number is in it, 0.9 KB for one in a hundred at
                              random, where the bytes that are zero are told apart from the others first

A plan of 10^9 done in order takes 0.1 MB, and 0.3 MB for what is changing; a bit each would be 125 MB. Copies share all
packed blocks.

One thread at a time may change a set; others may ask it for single numbers meanwhile: a packed block is never changed,
and is replaced by a plain one with the same bits. Does not cover: writing bits one behind the other (bit_writer), or
storing them (store.run_file).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, compress, islice
from typing import TypeAlias

import zstandard

BLOCK_BITS = 1 << 16
BLOCK_BYTES = BLOCK_BITS // 8
_SHIFT, _BYTE_MASK = 16, BLOCK_BYTES - 1
EMPTY_BLOCK = _EMPTY = bytes(BLOCK_BYTES)
_FULL = b"\xff" * BLOCK_BYTES
_NOT_FULL = re.compile(rb"[^\xff]")
_IN_FLAGS, _OUT_FLAGS = bytes.maketrans(b"01", b"\x00\x01"), bytes.maketrans(b"01", b"\x01\x00")
_MOST_PLAIN = 32
_MOST_READ = 128  # packed blocks kept unpacked, too: results that are sorted ask in any order
_WORTH_PACKING = BLOCK_BYTES * 3 // 4
_REGULAR_BYTES = 256  # packed into less than this, a block is regular
_MARK_BYTES = BLOCK_BYTES // 8  # a bit for each byte of a sparse block: whether it is zero
_MARK_DIGITS = b"0" + b"1" * 255
_SINGLE_BYTES = [bytes([byte]) for byte in range(256)]


class _Packed(bytes):
    """A block under zstd; any other block has its bits as they are."""

    __slots__ = ()


_Block: TypeAlias = bytes | bytearray


class Bitmap:
    """A set of whole numbers below `length`."""

    __slots__ = ("_blocks", "_plain", "_read", "count", "length")

    def __init__(self, length: int) -> None:
        self.length = length
        self.count = 0
        self._blocks: list[_Block] = [_EMPTY] * -(-length // BLOCK_BITS)
        self._plain = deque[int]()  # the numbers of the blocks that are bytearrays, in the order they became so
        self._read: dict[_Packed, bytes] = {}

    def __contains__(self, index: int) -> bool:
        block = self._blocks[index >> _SHIFT]
        if type(block) is _Packed:
            block = self._unpacked(block)
        return block[index >> 3 & _BYTE_MASK] >> (index & 7) & 1 == 1

    def __iter__(self) -> Iterator[int]:
        """Each number in the set, in order; it must not change meanwhile."""
        held = (number for number, block in enumerate(self._blocks) if block is not _EMPTY)
        return chain.from_iterable(map(self._numbers_of, held))

    def add(self, index: int) -> None:
        block = self._changeable(index >> _SHIFT)
        byte, bit = index >> 3 & _BYTE_MASK, 1 << (index & 7)
        if not block[byte] & bit:
            block[byte] |= bit
            self.count += 1

    def update(self, indices: Iterable[int]) -> None:
        """Add many; those of one block should be neighbours. Every interview passes this loop twice."""
        number, block, added = -1, bytearray(), 0
        for index in indices:
            if index >> _SHIFT != number:
                number = index >> _SHIFT
                block = self._changeable(number)
            byte, bit = index >> 3 & _BYTE_MASK, 1 << (index & 7)
            held = block[byte]
            if not held & bit:
                block[byte] = held | bit
                added += 1
        self.count += added

    def discard(self, index: int) -> None:
        if index in self:
            self._changeable(index >> _SHIFT)[index >> 3 & _BYTE_MASK] &= ~(1 << (index & 7))
            self.count -= 1

    def fill(self, end: int) -> None:
        """Add every number below `end`."""
        whole, rest = divmod(end, BLOCK_BITS)
        for number in range(whole):
            self._put(number, _FULL)
        if rest:
            self._put(whole, _as_bytes(_as_int(self._blocks[whole]) | (1 << rest) - 1))

    def include(self, others: Bitmap) -> None:
        """Add all of another set, which is no longer than this one."""
        for number, theirs in enumerate(others._blocks):
            ours = self._blocks[number]
            if theirs is _EMPTY or ours is _FULL:
                continue
            if ours is _EMPTY or theirs is _FULL:
                self._put(number, theirs)
            else:
                self._put(number, _as_bytes(_as_int(ours) | _as_int(theirs)))

    def remove(self, others: Bitmap) -> None:
        """Drop all of another set, which is no longer than this one."""
        for number, theirs in enumerate(others._blocks):
            ours = self._blocks[number]
            if theirs is _EMPTY or ours is _EMPTY:
                continue
            if theirs is _FULL:
                self._put(number, _EMPTY)
            else:
                self._put(number, _as_bytes(_as_int(ours) & ~_as_int(theirs)))

    def inverted(self) -> Bitmap:
        """All numbers below `length` that are not in the set."""
        rest = Bitmap(self.length)
        rest.fill(self.length)
        rest.remove(self)
        return rest

    def copy(self) -> Bitmap:
        twin = Bitmap(0)
        twin.length, twin.count = self.length, self.count
        twin._blocks = [bytearray(block) if type(block) is bytearray else block for block in self._blocks]
        twin._plain = deque(self._plain)
        return twin

    def count_below(self, end: int) -> int:
        """How many numbers below `end` are in the set."""
        whole, rest = divmod(min(end, self.length), BLOCK_BITS)
        count = sum(map(_count, islice(self._blocks, whole)))
        return count + ((_as_int(self._blocks[whole]) & (1 << rest) - 1).bit_count() if rest else 0)

    def next_gap(self, index: int) -> int:
        """The first number from `index` on that is not in the set; `length` where there is none."""
        if index >= self.length:
            return self.length
        number, at = index >> _SHIFT, index >> 3 & _BYTE_MASK
        block = self._blocks[number]
        if type(block) is _Packed:
            block = self._unpacked(block)
        byte = block[at]
        if not byte >> (index & 7) & 1:
            return index
        byte |= (1 << (index & 7)) - 1  # those before it count as being in the set
        while byte == 0xFF:
            found = None if block is _FULL else _NOT_FULL.search(block, at + 1)
            if found is not None:
                at = found.start()
                byte = block[at]
            elif number + 1 < len(self._blocks):
                number, at = number + 1, -1
                block = self.block(number)
            else:
                return self.length
        first_zero = (~byte & (byte + 1)).bit_length() - 1
        return min(number * BLOCK_BITS + at * 8 + first_zero, self.length)

    def gaps_at(self, places: Iterable[int]) -> Iterator[int]:
        """The numbers that are not in the set, at these places among all of them; places come in order."""
        number, first, free, gaps = -1, 0, 0, list[int]()
        for place in places:
            while place >= first + free:
                number, first, gaps = number + 1, first + free, []
                free = BLOCK_BITS - _count(self._blocks[number])
            gaps = gaps or list(self._gaps_of(number))  # at most a block
            yield gaps[place - first]

    def behind_gaps(self, count: int) -> int:
        """The first number below which there are `count` numbers that are not in the set."""
        left = count
        for number, block in enumerate(self._blocks):
            free = BLOCK_BITS - _count(block)
            if free >= left > 0:
                last = next(islice(self._gaps_of(number), left - 1, None), self.length)
                return min(last + 1, self.length)
            left -= free
        return self.length if count > 0 else 0

    def count_every(self, step: int, first: int) -> int:
        """How many of `first`, `first + step`, `first + 2 * step` and so on are in the set."""
        places, count = int(("0" * (step - 1) + "1") * -(-BLOCK_BITS // step), 2), 0
        for number, block in enumerate(self._blocks):
            offset = first - number * BLOCK_BITS
            offset = offset if offset >= 0 else offset % step
            if block is not _EMPTY and offset < BLOCK_BITS:
                count += (places << offset & _as_int(block)).bit_count()
        return count

    @property
    def blocks(self) -> range:
        """The numbers of all blocks."""
        return range(len(self._blocks))

    def block(self, number: int) -> _Block:
        """The bits of one block, the lowest bit of the first byte first; they may change with the set."""
        block = self._blocks[number]
        return self._unpacked(block) if type(block) is _Packed else block

    def put_block(self, number: int, bits: bytes) -> None:
        """Replace one block by these bits; a short one is filled up with zeros."""
        self._put(number, bits.ljust(BLOCK_BYTES, b"\0"))

    @property
    def held_bytes(self) -> int:
        """About how much memory the set takes; that of blocks shared with a copy is counted in both."""
        own = (block for block in self._blocks if block is not _EMPTY and block is not _FULL)
        return 8 * len(self._blocks) + sum(len(block) + 48 for block in own)

    def _put(self, number: int, block: _Block) -> None:
        """Replace a block, packed where that saves memory."""
        before = self._blocks[number]
        if type(before) is bytearray:
            self._plain.remove(number)
        self._blocks[number] = packed = _packed(block)
        self.count += _count(packed) - _count(before)

    def _numbers_of(self, number: int) -> Iterator[int]:
        return compress(self._places(number), _digits(self._blocks[number]).translate(_IN_FLAGS))

    def _gaps_of(self, number: int) -> Iterator[int]:
        return compress(self._places(number), _digits(self._blocks[number]).translate(_OUT_FLAGS))

    def _places(self, number: int) -> range:
        first = number * BLOCK_BITS
        return range(first, min(first + BLOCK_BITS, self.length))

    def _changeable(self, number: int) -> bytearray:
        block = self._blocks[number]
        if type(block) is bytearray:
            return block
        if len(self._plain) >= _MOST_PLAIN:
            oldest = self._plain.popleft()
            self._blocks[oldest] = _packed(self._blocks[oldest])
        made = self._blocks[number] = bytearray(self.block(number))
        self._plain.append(number)
        return made

    def _unpacked(self, packed: _Packed) -> bytes:
        """The bits of a packed block, kept for a while. A full store is replaced: another thread may be using it."""
        block = self._read.get(packed)
        if block is None:
            block = _unpack(packed)
            if len(self._read) >= _MOST_READ:
                self._read = {}
            self._read[packed] = block
        return block


def _packed(block: _Block) -> bytes:
    if type(block) is _Packed:
        return block
    if block == _EMPTY:
        return _EMPTY
    if block == _FULL:
        return _FULL
    # An object for each call: two threads must not share one, and most blocks are packed once.
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=False)
    packed = compressor.compress(block)
    if len(packed) > _REGULAR_BYTES and block.count(0) > BLOCK_BYTES // 2:
        packed = min(packed, compressor.compress(_sparse(block)), key=len)
    return _Packed(packed) if len(packed) < _WORTH_PACKING else bytes(block)


def _sparse(block: _Block) -> bytes:
    """Which bytes of the block are not zero, and then those bytes: shorter than any block."""
    marks = int(block.translate(_MARK_DIGITS), 2).to_bytes(_MARK_BYTES, "big")
    return marks + block.translate(None, b"\0")


def _content(packed: _Packed) -> bytes:
    """A block, or the shorter form that `_sparse` makes of one."""
    return zstandard.ZstdDecompressor().decompress(packed, max_output_size=BLOCK_BYTES)


def _unpack(packed: _Packed) -> bytes:
    content = _content(packed)
    if len(content) == BLOCK_BYTES:
        return content
    marks = f"{int.from_bytes(content[:_MARK_BYTES], 'big'):0{BLOCK_BYTES}b}".encode().translate(_IN_FLAGS)
    held = content[_MARK_BYTES:]
    pieces = [b""] * (2 * len(held) + 1)
    pieces[::2] = marks.split(b"\1")  # the zeros before, between and behind the others
    pieces[1::2] = map(_SINGLE_BYTES.__getitem__, held)
    return b"".join(pieces)


def _as_int(block: _Block) -> int:
    return int.from_bytes(_unpack(block) if type(block) is _Packed else block, "little")


def _as_bytes(bits: int) -> bytes:
    return bits.to_bytes(BLOCK_BYTES, "little")


def _count(block: _Block) -> int:
    if block is _EMPTY:
        return 0
    if type(block) is _Packed:
        content = _content(block)
        bits = content if len(content) == BLOCK_BYTES else content[_MARK_BYTES:]
        return int.from_bytes(bits, "little").bit_count()
    return BLOCK_BITS if block is _FULL else int.from_bytes(block, "little").bit_count()


def _digits(block: _Block) -> bytes:
    """The bits of a block as digits, the lowest first."""
    return f"{_as_int(block):0{BLOCK_BITS}b}".encode()[::-1]
