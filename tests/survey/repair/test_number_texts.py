import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.survey.repair.number_texts import number_in

NUMBERS = {
    "5": 5,
    "I think 5": 5,
    "I am 45 years old.": 45,
    "$5": 5,
    "**7**": 7,
    "5%": 5,
    "1,000": 1000,
    "about 1,234.5 kg": 1234.5,
    "20°C": 20,
    "Answer: -3.5": -3.5,
    "Answer:7": 7,
    "x = 7": 7,
    "7\nbecause 8 is too many": 7,
    "7.\n\nOr 8.": 7,
    "7, yes, 7": 7,
    "−4": -4,
    "1e3": 1000.0,
    "(0)": 0,
    "seven (7)": 7,
    ".5": 0.5,
}


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_found_in_a_sentence(text: str):
    assert number_in(text) == NUMBERS[text]
    assert type(number_in(text)) is type(NUMBERS[text])


@pytest.mark.parametrize(
    "text",
    [
        "", "five", "5 or 6", "between 5 and 6", "5-6", "5–6", "5/10", "5/5", "7 out of 10", "1,5", "5,5", "5 million",
        "5k", "5th", "not 5", "minus 5", "1.2.3", "5:30", "10^5", "2^2", "GPT-4 says 5", "1e999",
        "9" * 5000, "٣", "5 ± 1",
    ],
)  # fmt: skip
def test_what_may_mean_another_number_is_not_repaired(text: str):
    assert number_in(text) is None


@settings(max_examples=300)
@given(st.integers(-(10**12), 10**12) | st.floats(-1e15, 1e15), st.integers(-(10**12), 10**12))
def test_one_number_is_repaired_and_two_different_ones_never(number: float, other: int):
    for form in ("I would say {}.", "{}\nThat is what I think.", "{} units", "({})", "Answer: {}", "**{}**"):
        assert number_in(form.format(number)) == number
    if number != other:
        assert number_in(f"Either {number} or {other}") is None


@pytest.mark.parametrize("start", ["1 ", "1", "- ", "1,", "a1b ", "5 5 "])
def test_long_texts_take_little_time(start: str):
    began = time.process_time()
    number_in(start * (200_000 // len(start)))
    assert time.process_time() - began < 5
