"""A set of ordinals against a plain set, in the blocks that it is held in: at their edges, packed, full, shared."""

import random
import threading
from itertools import islice

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from headrace.plan.bit_writer import BitWriter
from headrace.plan.bitmap import BLOCK_BITS, BLOCK_BYTES, Bitmap

LENGTH = 2 * BLOCK_BITS + 100
EDGES = sorted({at + by for at in (0, 8, BLOCK_BITS, 2 * BLOCK_BITS, LENGTH) for by in (-9, -8, -1, 0, 1, 7)})
near_edges = st.sampled_from([at for at in EDGES if 0 <= at < LENGTH])
FEW = settings(max_examples=50, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # an example has 100,000 numbers
places = near_edges | st.integers(0, LENGTH - 1)
ends = places | st.just(LENGTH)
# Blocks that are full, empty, regular and irregular, with some numbers put in and taken out.
stretches = st.lists(st.tuples(ends, ends, st.sampled_from([1, 2, 3, 7, 1_000])), max_size=3)
sets = st.builds(
    lambda parts, some: {*some, *(number for first, stop, step in parts for number in range(first, stop, step))},
    stretches,
    st.sets(places, max_size=40),
)


def bitmap_of(numbers: set[int], length: int = LENGTH) -> Bitmap:
    made = Bitmap(length)
    made.update(sorted(numbers))
    return made


def packed(numbers: set[int], length: int = LENGTH) -> Bitmap:
    """The same set, its blocks packed as those of a long plan are."""
    made = bitmap_of(numbers, length)
    for number in made.blocks:
        made.put_block(number, bytes(made.block(number)))
    return made


def numbers_in(made: Bitmap) -> set[int]:
    listed = list(made)
    assert listed == sorted(listed)
    return set(listed)


@FEW
@given(sets, sets, st.booleans())
def test_it_is_a_set_of_numbers(added: set[int], removed: set[int], is_packed: bool):
    bitmap = (packed if is_packed else bitmap_of)(added)
    removed = set(islice(removed, 200))
    for number in removed:
        bitmap.discard(number)
    left = added - removed
    assert numbers_in(bitmap) == left
    assert bitmap.count == len(left)
    looked_at = [*(at for at in EDGES if 0 <= at < LENGTH), *islice(added, 100), *removed]
    assert [number in bitmap for number in looked_at] == [number in left for number in looked_at]
    for number in removed:
        bitmap.add(number)
        bitmap.add(number)
    assert numbers_in(bitmap) == added | removed
    assert bitmap.count == len(added | removed)


@FEW
@given(sets, ends, st.booleans())
def test_the_next_gap_is_the_first_number_missing(held: set[int], start: int, is_packed: bool):
    bitmap = (packed if is_packed else bitmap_of)(held)
    assert bitmap.next_gap(start) == next((n for n in range(start, LENGTH) if n not in held), LENGTH)


@FEW
@given(sets, ends)
def test_counting_below_an_end(held: set[int], end: int):
    assert packed(held).count_below(end) == bitmap_of(held).count_below(end) == sum(number < end for number in held)


@FEW
@given(sets, ends)
def test_filling_up_to_an_end(held: set[int], end: int):
    bitmap = bitmap_of(held)
    bitmap.fill(end)
    assert numbers_in(bitmap) == held | set(range(end))
    assert bitmap.count == len(held | set(range(end)))


@FEW
@given(sets, sets, st.integers(1, LENGTH))
def test_adding_and_dropping_all_of_another_set(ours: set[int], theirs: set[int], length: int):
    theirs = {number for number in theirs if number < length}
    both, rest = bitmap_of(ours), packed(ours)
    both.include(packed(theirs, length))
    rest.remove(bitmap_of(theirs, length))
    assert (numbers_in(both), both.count) == (ours | theirs, len(ours | theirs))
    assert (numbers_in(rest), rest.count) == (ours - theirs, len(ours - theirs))
    for number in islice(theirs, 50):  # the sets share no block that can change
        both.discard(number)
    assert numbers_in(both) == (ours | theirs) - set(islice(theirs, 50))


@FEW
@given(sets)
def test_what_is_not_in_the_set(held: set[int]):
    bitmap, missing = packed(held), sorted(set(range(LENGTH)) - held)
    assert numbers_in(bitmap.inverted()) == set(missing)
    assert bitmap.inverted().count == len(missing)
    places = range(0, len(missing), 97)
    assert list(bitmap.gaps_at(places)) == [missing[place] for place in places]


@FEW
@given(sets, st.integers(0, LENGTH + 10))
def test_the_number_behind_so_many_gaps(held: set[int], gaps: int):
    missing = [number for number in range(LENGTH) if number not in held]
    expected = LENGTH if gaps > len(missing) else missing[gaps - 1] + 1 if gaps else 0
    assert packed(held).behind_gaps(gaps) == expected


@FEW
@given(sets, st.integers(1, 70_000), st.integers(0, 70_000))
def test_counting_every_nth_number(held: set[int], step: int, first: int):
    assert packed(held).count_every(step, first) == sum(n >= first and (n - first) % step == 0 for n in held)


@FEW
@given(st.lists(st.tuples(st.integers(0, 2**70), st.integers(0, 90)), max_size=20), sets)
def test_bits_are_written_behind_each_other_across_blocks(groups: list[tuple[int, int]], behind: set[int]):
    before = sum(length for _, length in groups)
    writer, at, expected = BitWriter(before + LENGTH), 0, set[int]()
    for bits, length in groups:
        bits &= (1 << length) - 1
        writer.append(bits, length)
        expected |= {at + place for place in range(length) if bits >> place & 1}
        at += length
    writer.append_all(packed(behind))
    made = writer.bitmap()
    assert numbers_in(made) == expected | {before + number for number in behind}
    assert (made.length, made.count) == (before + LENGTH, len(expected) + len(behind))


def test_a_copy_is_not_changed_with_its_original():
    bitmap = Bitmap(10)
    bitmap.add(1)
    twin = bitmap.copy()
    bitmap.add(3)
    twin.add(4)
    assert (3 in twin, 4 in bitmap) == (False, False)
    assert (twin.count, bitmap.count) == (2, 2)


def test_more_blocks_may_change_in_turn_than_are_held_plain():
    blocks = 50
    bitmap, expected = Bitmap(blocks * BLOCK_BITS), set[int]()
    chance = random.Random(1)
    for _ in range(2_000):
        number = chance.randrange(blocks * BLOCK_BITS)
        bitmap.add(number)
        expected.add(number)
    for number in islice(expected, 500):
        bitmap.discard(number)
    assert numbers_in(bitmap) == expected - set(islice(expected, 500))
    assert bitmap.held_bytes < 50 * BLOCK_BYTES


BILLION = 10**9


def in_order() -> Bitmap:
    made = Bitmap(BILLION)
    made.fill(10**8)
    return made


def every_second() -> Bitmap:
    block, made = b"\x55" * BLOCK_BYTES, Bitmap(BILLION)
    for number in made.blocks[:-1]:
        made.put_block(number, block)
    return made


@pytest.mark.parametrize(("make", "most_bytes"), [(in_order, 1_000_000), (every_second, 3_000_000)])
def test_a_plan_of_a_billion_takes_a_few_megabytes_where_it_is_regular(make, most_bytes):
    made = make()
    assert made.held_bytes < most_bytes
    rest, twin = made.inverted(), made.copy()
    twin.update(range(5 * 10**8, 5 * 10**8 + 100_000))
    assert rest.held_bytes < most_bytes
    assert twin.held_bytes < most_bytes + 100_000
    assert rest.count == BILLION - made.count
    assert made.next_gap(0) == (10**8 if make is in_order else 1)


def test_irregular_blocks_take_less_than_a_bit_a_number():
    chance, made = random.Random(1), Bitmap(100 * BLOCK_BITS)
    made.update(sorted(chance.sample(range(made.length), made.length // 100)))
    for number in made.blocks:
        made.put_block(number, bytes(made.block(number)))
    assert made.held_bytes < 100 * BLOCK_BYTES // 8


@pytest.mark.parametrize("one_in", [3, 8, 20, 100, 1_000, 30_000])
def test_numbers_at_random_places_are_the_same_packed(one_in: int):
    chance = random.Random(one_in)
    numbers = sorted(chance.sample(range(3 * BLOCK_BITS), 3 * BLOCK_BITS // one_in))
    made = Bitmap(3 * BLOCK_BITS)
    made.update(numbers)
    for number in made.blocks:
        made.put_block(number, bytes(made.block(number)))
    assert list(made) == numbers
    assert made.count == made.count_below(made.length) == len(numbers)
    assert [number in made for number in numbers[:100]] == [True] * len(numbers[:100])


def test_another_thread_sees_all_that_was_added_before_it_asks():
    blocks = 100
    bitmap, added, trouble = Bitmap(blocks * BLOCK_BITS), [0], list[int]()
    numbers = [block * BLOCK_BITS + 17 * at for at in range(40) for block in range(blocks)]
    is_over = threading.Event()

    def ask() -> None:
        chance = random.Random(2)
        while not is_over.is_set():
            at = chance.randrange(added[0] + 1)
            if at < added[0] and numbers[at] not in bitmap:
                trouble.append(numbers[at])

    asking = threading.Thread(target=ask)
    asking.start()
    for number in numbers:
        bitmap.add(number)
        added[0] += 1
    is_over.set()
    asking.join()
    assert trouble == []
    assert bitmap.count == len(numbers)
