from hypothesis import given
from hypothesis import strategies as st

from headrace.plan.bitmap import Bitmap

numbers = st.sets(st.integers(0, 199))


@given(numbers, numbers)
def test_it_is_a_set_of_numbers(added: set[int], removed: set[int]):
    bitmap = Bitmap(200)
    bitmap.update(added)
    for number in removed:
        bitmap.discard(number)
    left = added - removed
    assert {number for number in range(200) if number in bitmap} == left
    assert bitmap.count == len(left)


@given(numbers, st.integers(0, 199))
def test_the_next_gap_is_the_first_number_missing(held: set[int], start: int):
    bitmap = Bitmap(200)
    for number in held:
        bitmap.add(number)
    assert bitmap.next_gap(start) == next((n for n in range(start, 200) if n not in held), 200)


@given(numbers, st.integers(0, 200))
def test_counting_below_an_end(held: set[int], end: int):
    bitmap = Bitmap(200)
    bitmap.update(held)
    assert bitmap.count_below(end) == sum(number < end for number in held)


@given(numbers, st.integers(0, 200))
def test_filling_up_to_an_end(held: set[int], end: int):
    bitmap = Bitmap(200)
    bitmap.update(held)
    bitmap.fill(end)
    assert {number for number in range(200) if number in bitmap} == held | set(range(end))
    assert bitmap.count == len(held | set(range(end)))


def test_a_copy_is_not_changed_with_its_original():
    bitmap = Bitmap(10)
    twin = bitmap.copy()
    bitmap.add(3)
    assert 3 not in twin
    assert twin.count == 0
