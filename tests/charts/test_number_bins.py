import math
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.charts.number_bins import axis_figures, figure, real_bins, whole_bins

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.integers(-(2**70), 2**70) | st.integers(-50, 50), min_size=1, max_size=30), st.integers(5, 30))
@settings(deadline=None, max_examples=200, derandomize=True)
def test_whole_numbers_stand_in_the_interval_that_has_them(numbers: list[int], most: int):
    bins = whole_bins(min(numbers), max(numbers), most)
    assert bins.count <= most + 1
    for number in numbers:
        place = bins.place(number)
        assert 0 <= place < bins.count
        assert bins.edge(place) <= number < bins.edge(place + 1)


@given(st.lists(NUMBERS, min_size=2, max_size=30, unique=True), st.integers(5, 30))
@settings(deadline=None, max_examples=300, derandomize=True)
def test_every_number_has_an_interval_near_it(numbers: list[float], most: int):
    low, high = min(numbers), max(numbers)
    bins = real_bins(low, high, most)
    assert bins.count <= 2 * most + 2
    for number in numbers:
        place = bins.place(number)
        assert 0 <= place < bins.count
        if bins.count > 1 and abs(bins.first) < 2**50:
            slack = bins.width * 1e-3 + sys.float_info.min
            assert bins.edge(place) - slack <= number
            assert number <= bins.edge(place + 1) + slack or place == bins.count - 1
    assert sorted(map(bins.place, sorted(numbers))) == [bins.place(number) for number in sorted(numbers)]


def test_few_whole_numbers_have_an_interval_each():
    bins = whole_bins(0, 10, 24)
    assert [bins.label(place) for place in range(bins.count)] == [str(number) for number in range(11)]


def test_intervals_are_round():
    assert [whole_bins(18, 93, 10).label(place) for place in range(2)] == ["10 – 19", "20 – 29"]
    assert [real_bins(0.03, 0.97, 10).label(place) for place in range(2)] == ["0 – 0.1", "0.1 – 0.2"]
    assert [real_bins(0, 10, 10).label(place) for place in (0, -1 + real_bins(0, 10, 10).count)] == ["0 – 1", "9 – 10"]
    assert [figure(number) for number in (2024, 1_000_000, 0.1 + 0.2, 1e300, -5.0)] == [
        "2024",
        "1,000,000",
        "0.3",
        "1e+300",
        "-5",
    ]


@given(st.floats(0, 1e300), st.integers(1, 8))
@settings(deadline=None, max_examples=100, derandomize=True)
def test_the_figures_of_an_axis_are_few_and_within_it(most: float, count: int):
    figures = axis_figures(most, count)
    assert 1 <= len(figures) <= count + 1
    assert all(math.isfinite(each) and 0 <= each <= most * 1.001 for each in figures)
